from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from gapwatch.watching.matchers import Match
from gapwatch.watching.routing import ChannelTarget, QuietHours, Routing, plan

NOW = datetime(2026, 11, 16, 23, 30, tzinfo=UTC)
WORDS = {"deployment": "berlin-line-3", "site": "berlin", "stage": "full", "rule": "success-drift"}


def channels(planned):
    return [one.channel_id for one in planned]


def planned_for(*routings, severity="warning", only=(), now=NOW):
    targets = [ChannelTarget(number, Routing.model_validate(given)) for number, given in enumerate(routings, 1)]
    return plan(targets, severity=severity, words=WORDS, only=only, now=now)


def test_without_any_routing_every_channel_gets_it_at_once():
    planned = planned_for({}, {})
    assert channels(planned) == [1, 2]
    assert {one.due_at for one in planned} == {NOW}


def test_info_goes_only_where_it_is_asked_for_or_named_by_the_rule():
    assert channels(planned_for({}, {"min_severity": "info"}, severity="info")) == [2]
    assert channels(planned_for({}, {}, severity="info", only=[1])) == [1]


def test_site_stage_and_severity_decide():
    berlin = {"match": {"site": ["ber*"]}}
    planned = planned_for(berlin, {"match": {"site": ["oslo"]}}, {"match": {"stage": ["full"]}})
    assert channels(planned) == [1, 3]
    assert channels(planned_for({"min_severity": "critical"})) == []
    assert channels(planned_for({"match": {"severity": ["critical"]}}, severity="critical")) == [1]


def test_a_channel_for_escalation_waits():
    [one] = planned_for({"escalate_after_minutes": 15})
    assert one.due_at == NOW + timedelta(minutes=15)
    assert one.reason == "escalation"


@pytest.mark.parametrize(
    ("start", "end", "zone", "now", "over"),
    [
        ("22:00", "07:00", "UTC", "2026-11-16T23:30", "2026-11-17T07:00"),
        ("22:00", "07:00", "UTC", "2026-11-16T06:59", "2026-11-16T07:00"),
        ("22:00", "07:00", "UTC", "2026-11-16T07:00", None),
        ("22:00", "07:00", "Europe/Berlin", "2026-11-16T21:30", "2026-11-17T06:00"),
        ("12:00", "13:00", "UTC", "2026-11-16T12:10", "2026-11-16T13:00"),
    ],
)
def test_quiet_hours(start, end, zone, now, over):
    quiet = QuietHours(start=start, end=end, timezone=zone)
    found = quiet.over_at(datetime.fromisoformat(f"{now}+00:00"))
    assert found == (None if over is None else datetime.fromisoformat(f"{over}+00:00"))


def test_in_quiet_hours_only_what_is_critical_is_told():
    quiet = {"quiet_hours": {"start": "22:00", "end": "07:00"}}
    [warning] = planned_for(quiet)
    assert warning.due_at == datetime(2026, 11, 17, 7, tzinfo=UTC)
    [critical] = planned_for(quiet, severity="critical")
    assert critical.due_at == NOW


@pytest.mark.parametrize(
    "given",
    [
        {"quiet_hours": {"start": "24:00", "end": "07:00"}},
        {"quiet_hours": {"start": "22:00", "end": "07:00", "timezone": "../../etc/passwd"}},
        {"quiet_hours": {"start": "22:00", "end": "07:00", "timezone": "Nowhere/Land"}},
        {"repeat_minutes": 0},
        {"min_severity": "fatal"},
        {"match": {"sight": ["x"]}},
    ],
)
def test_bad_routing_is_refused(given):
    with pytest.raises(ValidationError):
        Routing.model_validate(given)


def test_a_match_needs_every_field_and_one_of_each_list():
    match = Match(deployment=["oslo-*", "berlin-*"], stage=["full"])
    assert match.fits(WORDS)
    assert not match.fits(WORDS | {"stage": None})
    assert not match.fits(WORDS | {"deployment": "paris-1"})
    assert Match().fits({})


def test_one_word_stands_for_a_list_of_one():
    assert Match.model_validate({"site": "ber*"}).site == ["ber*"]


def test_a_long_glob_against_a_long_word_is_quick():
    """A hundred stars would take a backtracking matcher for ever."""
    assert not Match(deployment=["*a" * 90]).fits({"deployment": "a" * 60 + "b"})
