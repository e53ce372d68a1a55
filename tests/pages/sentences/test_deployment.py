from datetime import date

import pytest
from pages.answers_made import CONTACT, LARGE, NOBODY, REAL, SIM, STEP, a_drop, a_part, a_side, an_alert, an_onset

from gapwatch.answers.answer import Baseline
from gapwatch.pages.sentences.deployment import (
    baseline_words,
    getting_worse,
    headline,
    how_much,
    robots_words,
    who_knows,
    why,
    worsening,
)

STEADY = an_onset()
BOTH = (
    "In reality it succeeds 70.0 % of the time (840 of 1\u202f200, 67.3 to 72.5) "
    "against 95.0 % in simulation (380 of 400, 92.4 to 96.7)."
)


def test_the_headline_says_both_sides_what_is_lost_to_what_and_since_when():
    said = headline(LARGE, SIM, REAL, CONTACT, STEP)
    assert str(said) == (
        f"{BOTH} It loses 25.0 points (21.0 to 28.0), most of it to contact dynamics, "
        "and since 2 Nov it is getting worse."
    )
    assert said.emphasised("real") == ["70.0 %"] and said.emphasised("sim") == ["95.0 %"]
    assert said.emphasised("strong") == ["25.0 points", "contact dynamics", "getting worse"]


@pytest.mark.parametrize(
    ("drop", "lead", "ending"),
    [
        (LARGE, None, "It loses 25.0 points (21.0 to 28.0)."),
        (LARGE, a_part("Visual", 0.1), "It loses 25.0 points (21.0 to 28.0), the largest part to visual."),
        (
            a_drop(0.01, "none", (-0.01, 0.03)),
            None,
            "That is no drop that matters: 1.0 points (\u22121.0 to 3.0).",
        ),
        (
            a_drop(0.08, "too few episodes", (-0.1, 0.26), episodes_needed=1400),
            None,
            "The drop is 8.0 points (\u221210.0 to 26.0), too uncertain to call; about 1\u202f400 more real episodes settle it.",
        ),
        (
            a_drop(0.08, "too few episodes", (-0.1, 0.26)),
            None,
            "The drop is 8.0 points (\u221210.0 to 26.0), too uncertain to call.",
        ),
    ],
)
def test_the_headline_ends_by_the_verdict(drop, lead, ending):
    assert str(headline(drop, SIM, REAL, lead, STEADY)) == f"{BOTH} {ending}"


def test_the_headline_says_which_side_is_missing():
    unknown = a_drop(None, "too few episodes", reason="There are no real episodes.")
    assert str(headline(unknown, SIM, NOBODY, None, STEADY)) == (
        "No real episode of bin-pick 1.4.0 matches; 95.0 % in simulation (380 of 400, 92.4 to 96.7). "
        "There are no real episodes."
    )
    assert str(headline(a_drop(None, "too few episodes"), NOBODY, a_side(3, 4), None, STEADY)) == (
        "In reality it succeeds 75.0 % of the time (3 of 4); there is no simulation to compare it with."
    )


def test_the_headline_of_another_metric_says_which_way_is_worse():
    sides = {"sim": a_side(0, 40, value=12.0), "real": a_side(0, 60, (13.1, 14.9), value=14.0)}
    longer = a_drop(2.0, "large", (1.0, 3.0), metric="duration_s", better="lower", **sides)
    assert str(headline(longer, SIM, REAL, None, STEADY)) == (
        "duration_s is 14 (n 60, 13.1 to 14.9) in reality and 12 (n 40) in simulation. "
        "It is worse by 2 (1 to 3); lower is better."
    )
    shorter = a_drop(-2.0, "none", None, metric="duration_s", better="lower", **sides)
    assert str(headline(shorter, SIM, REAL, None, STEADY)).endswith("It is better by 2; lower is better.")
    none = a_drop(None, "too few episodes", metric="energy_j", reason="Sim does not send it.")
    assert str(headline(none, SIM, REAL, None, STEADY)) == "energy_j cannot be compared. Sim does not send it."


@pytest.mark.parametrize(
    ("onset", "words"),
    [
        (STEP, "since 2 Nov it is getting worse"),
        (an_onset("gradual_drift", change=0.1), "it is slowly getting worse"),
        (an_onset("release_regression"), "it began with a release"),
        (an_onset("site_specific"), "not everywhere alike"),
    ],
)
def test_what_is_known_of_the_beginning_ends_the_headline(onset, words):
    assert str(worsening(onset)) == words


@pytest.mark.parametrize(
    "onset",
    [
        an_onset("at_deploy"),
        an_onset("none"),
        an_onset("gradual_drift", change=-0.1),
        an_onset("step_change", change=-0.1, change_day=date(2026, 11, 2)),
    ],
)
def test_what_got_better_or_never_changed_is_not_called_worse(onset):
    assert worsening(onset) is None


@pytest.mark.parametrize(
    ("onset", "words"),
    [
        (STEP, "Yes, since 2 Nov"),
        (an_onset("gradual_drift"), "Yes, gradually"),
        (an_onset("at_deploy", risen_day=date(2026, 10, 9)), "No, better since 9 Oct"),
        (an_onset("release_regression"), "Since a release"),
        (an_onset("site_specific"), "Only in places"),
        (an_onset("at_deploy"), "No, steady"),
        (an_onset("none"), "No sign of it"),
        (an_onset("unknown"), "Not known yet"),
    ],
)
def test_whether_it_gets_worse_in_three_words(onset, words):
    answer = getting_worse(onset)
    assert str(answer.large) == words
    assert [str(line) for line in answer.below] == [onset.sentence]


@pytest.mark.parametrize(
    ("drop", "large", "below"),
    [
        (LARGE, "25.0 points", "[21.0, 28.0], n 1\u202f200 real, for further episodes of this robot"),
        (
            a_drop(0.25, "large", (0.2, 0.3), real=a_side(70, 100, sessions=5)),
            "25.0 points",
            "[20.0, 30.0], n 100 real in 5 sessions, for further episodes of this robot",
        ),
        (a_drop(None, "too few episodes", reason="Too few."), "unknown", "Too few."),
        (a_drop(None, "too few episodes"), "unknown", "n 1\u202f200 real"),
        (a_drop(0.5, "large", (0.2, 0.7), metric="reward"), "0.5", "n 1\u202f200 real"),
    ],
)
def test_how_much_is_lost_with_its_interval_and_n(drop, large, below):
    answer = how_much(drop)
    assert (str(answer.large), str(answer.below[0])) == (large, below)


def test_why_names_the_leading_category_and_its_share():
    answer = why(LARGE, CONTACT, 0.25, 3)
    assert str(answer.large) == "Contact dynamics"
    assert str(answer.below[0]) == "15.0 points [10.0, 20.0], 60 % of the drop"
    assert str(why(a_drop(0.0, "none", (0, 0)), None, 0.0, 1).large) == "No drop to split"
    unknown = why(LARGE, None, None, 1)
    assert (str(unknown.large), str(unknown.below[0])) == ("Not enough evidence", "1 way to fail so far")
    unexplained = why(LARGE, None, 0.25, 3, ("Slips and forces.", "The object."))
    assert str(unexplained.large) == "Not explained by what is logged"
    assert str(unexplained.below[0]) == "Log: Slips and forces; The object."
    whole = str(headline(LARGE, SIM, REAL, None, STEADY, is_unexplained=True))
    assert whole.endswith(", most of it not explained by what is logged.")


def test_who_knows_names_the_one_who_took_it_on():
    alerts = [an_alert(acknowledged_by="ada@example.com", state="acknowledged"), an_alert(), an_alert()]
    answer = who_knows(alerts)
    assert str(answer.large) == "ada@example.com"
    assert [str(line) for line in answer.below] == [
        "success fell from 91 % to 70 %, ada@example.com is on it",
        "success fell from 91 % to 70 %, nobody has taken it on",
    ]
    assert answer.below[0].parts[0].href == "/alerts/7"
    assert str(who_knows([an_alert(state="pending")]).large) == "Nobody yet"
    assert who_knows([]).below == () and str(who_knows([]).large) == "No open alert"


def test_baseline_and_robots_in_words():
    baseline = Baseline("mujoco", "3.3.0", "pinned", 1, None)
    assert baseline_words(baseline) == "mujoco 3.3.0, 1 episode, pinned"
    assert baseline_words(baseline, with_pin=False) == "mujoco 3.3.0, 1 episode"
    assert baseline_words(None) == "none"
    assert robots_words(["r-1", "r-2"]) == "r-1, r-2"
    assert robots_words([f"r-{n}" for n in range(6)]) == "r-0, r-1, r-2, r-3 and 2 more"
