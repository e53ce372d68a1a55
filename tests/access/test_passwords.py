import pytest

from gapwatch.access.passwords import WeakPassword, hash_password, is_password

COMMON = (
    *("password", "Passw0rd!", "p@ssw0rd", "12345678", "11111111", "qwertyuiop", "1qaz2wsx", "zaq12wsx"),
    *("Summer2026!", "iloveyou1", "letmein123", "abcd1234", "q1w2e3r4", "passpass", "trustno1", "abcabcabc"),
    *("administrator", "gapwatch1", "ROBOTICS!!", "87654321", "asdfghjkl"),
)


@pytest.mark.parametrize("password", COMMON)
def test_what_is_guessed_first_is_refused(password):
    with pytest.raises(WeakPassword, match="guessed"):
        hash_password(password)


@pytest.mark.parametrize("password", ["", "seven77", "x" * 257])
def test_a_password_has_eight_to_256_characters(password):
    with pytest.raises(WeakPassword, match="8 to 256"):
        hash_password(password)


def test_the_own_address_is_no_password():
    with pytest.raises(WeakPassword):
        hash_password("annaberg99", "annaberg@example.com")


@pytest.mark.parametrize(
    "password", ["correct horse battery", "9a41c0-77be01-aa33ff", "ключ от сарая", "wet-lamp-ox"]
)
def test_other_passwords_are_taken_whatever_they_are_made_of(password):
    hashed = hash_password(password, "anna@example.com")
    assert hashed.startswith("$argon2id$")
    assert is_password(password, hashed)
    assert not is_password(password + "x", hashed)


def test_nobody_has_a_password():
    assert not is_password("a password that nobody has", None)
