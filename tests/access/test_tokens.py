from gapwatch.access.tokens import SETUP_LASTS_S, is_setup_token, setup_token

SECRET, OTHER = b"s" * 32, b"o" * 32


def test_a_set_up_token_works_for_a_day_with_the_secret_that_made_it():
    token = setup_token(SECRET, 1000)
    assert is_setup_token(SECRET, token, 1000)
    assert is_setup_token(SECRET, token, 1000 + SETUP_LASTS_S - 1)
    assert not is_setup_token(SECRET, token, 1000 + SETUP_LASTS_S)
    assert not is_setup_token(OTHER, token, 1000)


def test_a_longer_life_cannot_be_written_into_it():
    _, _, vouched = setup_token(SECRET, 1000).partition(".")
    for forged in (f"9999999999.{vouched}", "", ".", f".{vouched}", "9999999999", "é.é", "²." + vouched):
        assert not is_setup_token(SECRET, forged, 1000)
