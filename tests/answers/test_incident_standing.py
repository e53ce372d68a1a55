"""What an incident is held against: its own past, or sim where only sim shows a loss."""

from gapwatch.answers.incident_standing import incident_standing
from gapwatch.store.alerting.incident_counts import BeforeAndNow

OF_SIM = [{"evidence": {"reference": {"side": "sim", "value": 0.94, "n": 1000}}}]


def counts(before, now):
    return BeforeAndNow(now, 100, before, 300, None)


def test_a_fall_from_its_own_past_is_held_against_that():
    standing = incident_standing(counts(282, 58), OF_SIM)
    assert (standing.before_is, standing.before.n) == ("before", 300)
    assert standing.loss_interval[0] > 0


def test_what_never_was_as_good_as_sim_is_held_against_sim():
    standing = incident_standing(counts(249, 79), OF_SIM)
    assert (standing.before_is, standing.before.n) == ("sim", 1000)
    assert standing.loss_interval[0] > 0


def test_without_an_alert_about_sim_its_past_is_all_there_is():
    standing = incident_standing(counts(249, 79), [{"evidence": {}}])
    assert (standing.before_is, standing.loss_interval[0] > 0) == ("before", False)
