import pytest
from pages.answers_made import LARGE, REAL, a_drop, a_side

from gapwatch.pages.sentences.stage import checks, ladder


@pytest.mark.parametrize(
    ("stage", "places"),
    [
        (None, ["ahead", "ahead", "ahead", "ahead"]),
        ("offline", ["current", "ahead", "ahead", "ahead"]),
        ("supervised", ["done", "done", "current", "ahead"]),
        ("full", ["done", "done", "done", "current"]),
    ],
)
def test_the_ladder_says_what_is_done_current_and_ahead(stage, places):
    rungs = ladder(stage)
    assert [rung.name for rung in rungs] == ["offline", "shadow", "supervised", "full"]
    assert [rung.place for rung in rungs] == places


def test_every_check_that_is_met():
    met = checks(REAL, a_drop(0.01, "none", (-0.01, 0.02)), "comparable")
    assert [check.text for check in met] == ["1\u202f200 real episodes", "No drop that matters", "Contracts agree"]
    assert all(check.is_met for check in met)


def test_every_check_that_is_not_met_says_what_is_missing():
    missed = checks(a_side(40, 92), LARGE, "differs")
    assert [check.text for check in missed] == [
        "92 real episodes, fewer than the 93 that pin a rate to ± 10 points",
        "The drop is large",
        "Contracts differ",
    ]
    assert not any(check.is_met for check in missed)


def test_what_is_not_known_is_not_met():
    _, drop, contract = checks(REAL, a_drop(None, "too few episodes"), "unknown")
    assert (drop.text, drop.is_met) == ("Whether there is a drop is not settled", False)
    assert (contract.text, contract.is_met) == ("A side sends no contract", False)
