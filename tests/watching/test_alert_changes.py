"""What inputs write to alerts, and which alerts they reach."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gapwatch.watching import alert_changes
from gapwatch.watching.alert_changes import OpenAlert, change_alert

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
EARLIER = NOW - timedelta(hours=1)
ALERT = OpenAlert(
    id=1,
    rule="success-drift",
    kind="drift",
    series="success",
    state="firing",
    severity="warning",
    evidence={"n": 1},
    before_no_data=None,
    incident_id=7,
    deployment_id=3,
    dry_run=False,
    opened_at=EARLIER,
    state_since=EARLIER,
    resolved_at=None,
    acknowledged_at=None,
    acknowledged_by=None,
    regressed=False,
    escalating=False,
)


def change(given, comment=None, evidence=None, **fields):
    return change_alert(replace(ALERT, **fields), given, actor="anna", comment=comment, now=NOW, evidence=evidence)


@pytest.mark.parametrize(
    ("state", "given"),
    [("firing", "breach"), ("pending", "suspect"), ("acknowledged", "acknowledge"), ("pending", "data_stopped")],
)
def test_an_input_that_moves_nothing_changes_nothing(state, given):
    assert change(given, state=state) is None


@pytest.mark.parametrize(
    ("state", "given", "evidence", "stored"),
    [
        ("pending", "breach", {"n": 2}, {"n": 2}),
        ("pending", "recovery", {"n": 2}, {"n": 1}),
        ("firing", "recovery", {"n": 2}, {"n": 1}),
        ("pending", "breach", None, {"n": 1}),
    ],
)
def test_evidence_is_that_of_the_alarm(state, given, evidence, stored):
    assert change(given, evidence=evidence, state=state).evidence == stored


def test_acknowledging_is_dated_and_signed_once():
    first = change("acknowledge")
    assert (first.state, first.state_since, first.is_told) == ("acknowledged", NOW, True)
    assert (first.acknowledged_at, first.acknowledged_by) == (NOW, "anna")
    again = change("acknowledge", "me too", state="acknowledged", acknowledged_at=EARLIER, acknowledged_by="ben")
    assert (again.acknowledged_at, again.acknowledged_by, again.is_told) == (EARLIER, "ben", False)
    assert again.state_since == EARLIER


def test_resolving_is_dated_once():
    assert change("resolve").resolved_at == NOW
    later = change("acknowledge", "what was it?", state="resolved", resolved_at=EARLIER)
    assert (later.state, later.resolved_at) == ("resolved", EARLIER)


def test_an_alert_without_data_remembers_where_it_was():
    assert change("data_stopped").before_no_data == "firing"
    back = change("data_again", state="no_data", before_no_data="acknowledged")
    assert (back.state, back.before_no_data) == ("acknowledged", None)


@pytest.mark.parametrize(
    ("given", "state"),
    [("suspect", "pending"), ("breach", "firing"), ("recovery", None), ("data_stopped", None), ("resolve", None)],
)
def test_what_opens_an_alert(given, state):
    assert alert_changes.opening_state(given) == state


@pytest.mark.parametrize(("days", "regressed"), [(None, False), (1, True), (6.9, True), (7, False), (30, False)])
def test_a_series_that_comes_back_within_a_week_has_regressed(days, regressed):
    resolved_at = None if days is None else NOW - timedelta(days=days)
    assert alert_changes.has_regressed(resolved_at, NOW) == regressed


@pytest.mark.parametrize(
    ("fields", "counts"),
    [({}, True), ({"state": "pending"}, False), ({"dry_run": True}, False), ({"state": "no_data"}, True)],
)
def test_suspects_and_rules_on_trial_make_no_incident(fields, counts):
    assert replace(ALERT, **fields).is_in_incidents == counts


def test_silence_itself_does_not_wait_for_data():
    silence = replace(ALERT, id=2, kind="no_data")
    assert alert_changes.without_data([ALERT, silence]) == [ALERT]


def test_a_rule_that_is_gone_has_no_open_alert():
    other = replace(ALERT, id=2, rule="gone")
    assert alert_changes.of_missing_rules([ALERT, other], {"success-drift"}) == [other]


def test_who_takes_on_an_alert_takes_on_its_incident():
    taken, elsewhere = replace(ALERT, id=2, state="acknowledged"), replace(ALERT, id=3, incident_id=8)
    waiting = replace(ALERT, id=4, state="no_data")
    assert alert_changes.acknowledged_with(ALERT, [ALERT, taken, elsewhere, waiting]) == [ALERT, waiting]
    assert alert_changes.acknowledged_with(taken, [ALERT, taken]) == [ALERT, taken]
    lonely = replace(ALERT, incident_id=None)
    assert alert_changes.acknowledged_with(lonely, [lonely, elsewhere]) == [lonely]
