"""History: which episodes it is, what it would have opened and closed, and what stays of what is stored."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from gapwatch.watching import history
from gapwatch.watching.history import AlertSpan, KnownAlert, Reason, Restart
from gapwatch.watching.import_line import WrongNow, line_content
from gapwatch.watching.kinds import read_params
from gapwatch.watching.phrases import AlertReason
from gapwatch.watching.rules import Rule
from gapwatch.watching.series import SeenEpisode

START = datetime(2026, 3, 1, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
DRIFT = Rule("success-drift", "drift", read_params("drift", {}), "warning")
SIGNAL = Rule("signal-drift", "drift", read_params("drift", {"series": "signals"}), "info")


def day(number):
    return START + number * DAY


def episode(at, received_at, success=True):
    return SeenEpisode(f"e{at.timestamp():.0f}", at, received_at, "success" if success else "failure", 1)


def stream(*stretches):
    """Ten episodes a day; each stretch is a success rate and a number of days."""
    generator = np.random.default_rng(3)
    rates = np.repeat([rate for rate, _ in stretches], [10 * days for _, days in stretches])
    return [
        episode(START + number * DAY / 10, day(500), bool(generator.random() < rate))
        for number, rate in enumerate(rates)
    ]


def replay(episodes, **more):
    return history.replay(
        [DRIFT], episodes, count=0, sim_counts=lambda _: (0, 0), costs=lambda *_: [], seed=1, **more
    )


def test_what_arrives_a_day_after_it_began_is_history():
    assert not history.is_history(episode(START, START + 23 * HOUR))
    assert history.is_history(episode(START, START + 24 * HOUR))


@pytest.mark.parametrize(
    ("age", "is_new", "last_import", "expected"),
    [
        (2, False, None, False),
        (8, False, None, True),
        (2, True, None, True),
        # Its last days are of the import too, and what comes an hour later is not.
        (2, False, timedelta(minutes=5), True),
        (2, False, timedelta(minutes=60), False),
    ],
)
def test_an_import_is_told_from_what_a_robot_kept_while_it_was_off_line(age, is_new, last_import, expected):
    received = day(100)
    oldest = episode(received - age * DAY, received)
    at = None if last_import is None else received - last_import
    assert history.is_import(oldest, is_new=is_new, last_import_at=at) == expected


def test_pauses_grow_with_the_cost_and_the_number_of_runs_up_to_an_hour():
    assert history.pause_s(0.01, 1, is_import=False) == 2
    assert history.pause_s(1.0, 1, is_import=False) == 20
    assert history.pause_s(1.0, 3, is_import=False) == 80
    assert history.pause_s(1.0, 50, is_import=False) == 3600
    assert history.pause_s(1.0, 50, is_import=True) == 300


def test_a_fall_and_a_recovery_have_the_times_of_their_episodes():
    replayed = replay(stream((0.95, 30), (0.3, 10), (0.95, 30)))
    [span] = replayed.spans
    assert day(29) < span.changed_at < day(31)
    assert span.changed_at < span.opened_at < day(33)
    assert day(40) < span.resolved_at < day(55)
    assert not replayed.states["success-drift", "success"].state["alarmed"]


def test_chunks_of_the_replay_change_nothing(monkeypatch):
    episodes = stream((0.95, 30), (0.3, 10), (0.95, 30), (0.4, 20))
    whole = replay(episodes)
    monkeypatch.setattr(history, "CHUNK", 37)
    assert replay(episodes) == whole


def test_a_person_who_resolved_ends_a_span_and_the_detector_begins_anew():
    episodes = stream((0.95, 30), (0.3, 30))
    [unbroken] = replay(episodes).spans
    resolved_at = unbroken.opened_at + DAY
    first, second = replay(episodes, restarts=[Restart(resolved_at, "success-drift", "success")]).spans
    assert first.resolved_at == resolved_at
    assert second.resolved_at is None and second.opened_at > resolved_at and second.regressed


def span(first, last=None, *, rule=DRIFT, series="success", is_cut=False):
    resolved_at = None if last is None else day(last)
    return AlertSpan(rule, series, day(first), {}, day(first), resolved_at, is_cut=is_cut)


def known(number, first, last=None, *, kept=False, series="success"):
    state = "firing" if last is None else "resolved"
    resolved_at = None if last is None else day(last)
    return KnownAlert(number, "success-drift", series, state, day(first), resolved_at, kept)


def test_history_that_ended_long_ago_is_over_with_its_last_episode():
    [cut] = history.cut_off([span(5)], day(9), day(30))
    assert (cut.resolved_at, cut.is_cut) == (day(9), True)
    assert history.cut_off([span(5)], day(9), day(12)) == [span(5)]


@pytest.mark.parametrize(
    ("spans", "stored", "expected"),
    [
        ([span(1, 3)], [], {"new": [span(1, 3)]}),
        ([span(1, 3)], [known(1, 2, 4)], {"rewritten": [(1, span(1, 3))]}),
        ([], [known(1, 2, 4)], {"gone": [1]}),
        # What people know of stays: confirmed, ended, or not confirmed.
        ([span(1)], [known(1, 2, kept=True)], {"confirmed": [(1, span(1))]}),
        ([span(1, 3)], [known(1, 2, 4, kept=True)], {"confirmed": [(1, span(1, 3))]}),
        ([span(1, 3)], [known(1, 2, kept=True)], {"over": [(1, day(3))]}),
        ([], [known(1, 2, kept=True)], {"over": [(1, None)]}),
        ([], [known(1, 2, 4, kept=True)], {}),
        # That data stopped ends nothing that people know of.
        ([span(1, 3, is_cut=True)], [known(1, 2, kept=True)], {"confirmed": [(1, span(1, 3, is_cut=True))]}),
        # It was taken to be over, and is not.
        ([span(1)], [known(1, 2, 4, kept=True)], {"new": [span(1)]}),
        # What is open is continued by what is open.
        (
            [span(1)],
            [known(1, 2, 4), known(2, 5)],
            {"rewritten": [(2, span(1))], "gone": [1]},
        ),
        ([span(1, 3)], [known(1, 2, 4, series="reward")], {"new": [span(1, 3)], "gone": [1]}),
    ],
)
def test_what_becomes_of_stored_alerts(spans, stored, expected):
    plan = history.plan_alerts(spans, stored)
    assert {name: value for name, value in plan.__dict__.items() if value} == expected


def reason(number, first, last=None, severity="warning", changed=None):
    return Reason(
        number,
        severity,
        day(first),
        None if changed is None else day(changed),
        None if last is None else day(last),
    )


def test_alerts_that_overlap_are_one_incident_from_the_first_to_the_last():
    first, second = history.incidents_of(
        [reason(1, 2, 5, changed=1), reason(2, 4, 8), reason(3, 9, None, changed=9), reason(4, 10, 12)]
    )
    assert (first.alerts, first.opened_at, first.changed_at, first.resolved_at) == ([1, 2], day(2), day(1), day(8))
    assert (second.alerts, second.opened_at, second.resolved_at) == ([3, 4], day(9), None)


def test_a_signal_that_stays_odd_does_not_keep_an_incident_of_history_open():
    first, second = history.incidents_of([reason(1, 1, 5), reason(2, 2, None, "info")])
    assert (first.severity, first.resolved_at) == ("warning", day(5))
    assert (second.severity, second.alerts, second.resolved_at) == ("info", [2], None)


def test_an_incident_is_as_old_as_its_loss_not_as_a_signal_that_moved_before():
    [incident] = history.incidents_of(
        [
            reason(1, 2, severity="info", changed=1),
            reason(2, 6, changed=5),
            reason(3, 7, severity="info", changed=3),
        ]
    )
    assert (incident.opened_at, incident.changed_at) == (day(2), day(5))
    [only_moved] = history.incidents_of([reason(1, 2, severity="info", changed=1)])
    assert only_moved.changed_at == day(1)


def wrong(deployment, *, from_start=False, severity="warning"):
    evidence = {"since": {"value": 0.6, "n": 50}, "reference": {"value": 0.9}}
    return WrongNow(
        deployment,
        day(3),
        from_start,
        [AlertReason("success-drift", "drift", severity, "success", evidence, START)],
    )


def test_the_line_names_what_changed_first_and_fits_a_phone():
    content = line_content(12300, [wrong("old", from_start=True), wrong("fell")], "https://g.example/alerts")
    assert content["headline"] == "Import of 12\u202f300 episodes: 2 deployments are wrong now: fell, old"
    assert content["severity"] == "warning"
    assert [reason["sentence"] for reason in content["reasons"]] == [
        "fell: success 90 % → 60 % (n 50), since 4 Mar 00:00 UTC.",
        "old: success 90 % → 60 % (n 50), from the first day.",
    ]
    many = line_content(9, [wrong(f"deployment-{number}") for number in range(50)], "")
    assert len(many["headline"]) <= 100 and len(many["reasons"]) == 20


def test_what_was_so_from_the_first_day_is_worth_knowing_and_never_more_than_a_warning():
    assert line_content(9, [wrong("old", from_start=True)], "")["severity"] == "info"
    assert line_content(9, [wrong("odd", severity="info")], "")["severity"] == "info"
    assert line_content(9, [wrong("bad", severity="critical")], "")["severity"] == "warning"
