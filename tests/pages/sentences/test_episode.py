import pytest

from gapwatch.answers.episode_evidence import SimilarFailures
from gapwatch.pages.sentences.episode import failed_how, headline

ALIKE = SimilarFailures(14, 1200, 0, 400)


@pytest.mark.parametrize(
    ("note", "alike", "words"),
    [
        (None, None, ""),
        ("It slipped", None, "It slipped."),
        ("It slipped.", None, "It slipped."),
        ("Again!", None, "Again!"),
        (None, ALIKE, "One of 14 of 1\u202f200 real episodes that fail like this; none of 400 in simulation."),
        (
            "It slipped",
            SimilarFailures(14, 1200, 2, 400),
            "It slipped. One of 14 of 1\u202f200 real episodes that fail like this; 2 of 400 in simulation.",
        ),
    ],
)
def test_the_note_and_how_many_fail_alike(note, alike, words):
    assert str(headline(note, alike)) == words


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        ({"phase": "lift", "labels": ["slip", "drop"]}, "phase lift, labels slip, drop"),
        ({"labels": ["slip"]}, "labels slip"),
        ({"phase": "lift", "category": "visual"}, "phase lift; category visual, given"),
        ({"category": "visual"}, "category visual, given"),
        ({"note": "only a note"}, ""),
    ],
)
def test_how_it_failed(failure, words):
    assert str(failed_how(failure, "/episodes?phase=lift")) == words
