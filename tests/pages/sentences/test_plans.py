import pytest

from gapwatch.pages.sentences.plans import calibrated, progress, promise

PREDICTED = {"interval_width": 0.2, "between": [0.18, 0.23], "of": "the drop", "reaches_goal": 0.85}
FOUND = {
    "state": "done",
    "planned": 60,
    "episodes": 60,
    "remaining": 0,
    "interval_width": 0.21,
    "of_predicted": 1.05,
    "kept": True,
}


@pytest.mark.parametrize(
    ("goal", "words"),
    [("verdict", "settled then with 85 %"), ("gate", "gate is passed then with 85 %"), ("cause", "told from")],
)
def test_a_promise_says_what_and_how_surely(goal, words):
    said = promise(goal, PREDICTED)
    assert "about 20 points wide (18 to 23 with 80 % probability)" in said
    assert words in said


def test_coverage_promises_a_width_only():
    assert promise("coverage", PREDICTED | {"reaches_goal": None}).endswith("probability).")


def test_progress_in_each_state():
    assert progress(FOUND | {"state": "not begun"}) == "None of 60 episodes was made yet."
    under_way = progress(FOUND | {"state": "under way", "episodes": 20, "remaining": 40})
    assert under_way == "20 of 60 episodes made, 40 remain. The interval is 21 points wide now."
    assert "as promised (105 % of the promise)" in progress(FOUND)
    assert "wider than promised" in progress(FOUND | {"kept": False, "of_predicted": 1.5})
    assert "narrower than promised" in progress(FOUND | {"kept": False, "of_predicted": 0.5})
    assert progress(FOUND | {"kept": None}) == "All of 60 episodes made."


def test_calibration_in_a_sentence():
    assert "No plan is done yet" in calibrated({"plans": 0})
    assert "Of 3 plans" in calibrated({"plans": 3, "kept": 3, "within_range": 2})
