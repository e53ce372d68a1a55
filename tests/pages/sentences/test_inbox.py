import pytest

from gapwatch.pages.sentences.inbox import inbox

CALM = {"firing": 0, "no_data": 0, "acknowledged": 0}


@pytest.mark.parametrize(
    ("shown", "counts", "options", "words"),
    [
        (0, CALM, {}, "Nothing is on fire."),
        (2, CALM | {"acknowledged": 2}, {}, "Nothing waits for anybody."),
        (1, CALM | {"firing": 1}, {}, "▼ 1 alert waits for somebody."),
        (
            3,
            CALM | {"firing": 1, "no_data": 1, "acknowledged": 1},
            {},
            "▼ 2 alerts wait for somebody, 1 is taken on.",
        ),
        (
            50,
            CALM | {"firing": 40, "acknowledged": 10},
            {"more": True},
            "▼ More than 40 alerts wait for somebody, 10 are taken on.",
        ),
        (1, CALM | {"firing": 1}, {"filtered": True}, "1 alert that matches."),
        (50, CALM, {"filtered": True, "more": True}, "50 alerts that match, older ones on the next page."),
    ],
)
def test_the_inbox_says_what_waits(shown, counts, options, words):
    assert str(inbox(shown, counts, **{"filtered": False, "more": False} | options)) == words
