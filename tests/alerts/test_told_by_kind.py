"""No reason swallows another: silence, safety, performance and gates joining one incident in any order."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from alerts.rhythms import fall_silent

from gapwatch.incidents import alert_actions
from gapwatch.store.alerting import alert_settings
from gapwatch.watching.matchers import Match

MINUTE = timedelta(minutes=1)


def let_pass(stage, time):
    for table, columns in {
        "incidents": ("opened_at", "paged_at", "page_at"),
        "notified_reasons": ("at", "over_at"),
        "deliveries": ("created_at", "due_at", "sent_at"),
        "heartbeats": ("beat_at",),
    }.items():
        for column in columns:
            stage.back_date(table, column, time)


def live(stage, rate, n, *, robots=(1,), seed=1, **columns):
    """Episodes that arrive as they happen, of robots in turn."""
    outcomes = np.random.default_rng(seed).random(n) < rate
    at = datetime.now(UTC) - MINUTE
    for index, robot in enumerate(robots):
        stage.accept(
            [bool(one) for one in outcomes[index :: len(robots)]],
            at=at + timedelta(seconds=index),
            robot_id=robot,
            **columns,
        )
    stage.watch()


def told(stage):
    """The kinds of reasons of every trigger, in order."""
    stage.send()
    return [[tell["kind"] for tell in body["tells"]] for body in stage.receiver.webhooks("trigger")]


def acknowledge(stage, actor="anna"):
    [(alert_id,)] = stage.rows("SELECT min(id) FROM alerts WHERE state = 'firing'")
    with stage.database.transaction() as connection:
        assert alert_actions.acknowledge(connection, 1, alert_id, actor, None)


@pytest.fixture
def fleet(stage):
    """Three robots at work on one deployment, judged against its past and its simulation."""
    stage.run("INSERT INTO robots (project_id, name) VALUES (1, 'ur5e-3')")
    stage.add_channel("/v2/enqueue", kind="pagerduty")
    stage.add_channel("/hook")
    for rule in ("stage-gate", "reward-drift", "interventions-drift", "gap-category"):
        kind = {"stage-gate": "stage_gate", "interventions-drift": "safety", "gap-category": "category"}
        stage.put_rule(rule, kind.get(rule, "drift"), enabled=False)
    live(stage, 0.92, 300, robots=(1, 2, 3))
    return stage


def test_a_robot_in_repair_does_not_hide_a_collapse_of_the_others(fleet):
    """As it was found: one robot silent, told as a warning; the others fall to 45 % over 370 episodes."""
    fall_silent(fleet)
    assert told(fleet) == [["silence"]]
    live(fleet, 0.45, 370, robots=(2, 3), seed=2)
    assert fleet.alerts()["success-drift success"] == "firing"
    assert told(fleet) == [["silence"], ["performance"]]
    silence, collapse = fleet.receiver.webhooks("trigger")
    assert collapse["incident"] == silence["incident"]
    assert collapse["headline"].startswith("berlin-line-3: success 9")
    assert collapse["headline"].endswith("it was silent before")
    assert collapse["reasons"][0]["rule"] == "success-drift"
    assert "Known before: ur5e-1 silent" in collapse["text"]


def test_the_collapse_alerts_a_person_who_acknowledged_the_silence_at_pagerduty(fleet):
    """A further event of an acknowledged alert notifies nobody there, so the collapse is an alert of its own."""
    fall_silent(fleet)
    fleet.send()
    acknowledge(fleet)
    fleet.send()
    live(fleet, 0.45, 370, robots=(2, 3), seed=2)
    fleet.send()
    at_pagerduty = fleet.receiver.incidents
    assert [(one["opened"], one["state"]) for one in at_pagerduty.values()] == [
        (1, "acknowledged"),
        (1, "triggered"),
    ]
    assert fleet.rows("SELECT state, acknowledged_by FROM incidents") == [("firing", None)]
    [again] = [body for body in fleet.receiver.webhooks("trigger") if body["reopened_from"]]
    assert "anna acknowledged what was known before" in again["text"]
    acknowledge(fleet, "ben")
    fleet.send()
    assert {one["state"] for one in at_pagerduty.values()} == {"acknowledged"}
    live(fleet, 0.97, 400, robots=(1, 2, 3), seed=3)
    fleet.send()
    assert {one["state"] for one in at_pagerduty.values()} == {"resolved"}
    assert len(fleet.receiver.webhooks("resolve")) == 1


def test_the_same_drop_in_other_words_is_told_once(fleet):
    fleet.put_rule("reward-drift", "drift", series="reward", worse="lower")
    live(fleet, 0.92, 300, robots=(1, 2, 3), reward=1.0)
    live(fleet, 0.3, 120, robots=(1, 2, 3), seed=2, reward=1.0)
    assert told(fleet) == [["performance"]]
    live(fleet, 0.3, 200, robots=(1, 2, 3), seed=3, reward=0.2)
    assert fleet.alerts()["reward-drift reward"] == "firing"
    assert told(fleet) == [["performance"]]
    assert fleet.rows("SELECT told_reasons FROM incidents") == [(["performance"],)]


def fall_below_the_gate(fleet):
    """Success falls; people are told of it before the gate is established to be missed."""
    for seed in range(2, 20):
        live(fleet, 0.35, 21, robots=(1, 2, 3), seed=seed)
        fleet.send()
        if fleet.alerts().get("stage-gate success@full") == "firing":
            return


def test_a_fall_that_breaks_the_gate_too_is_one_message_and_a_gate_that_is_left_is_no_news(fleet):
    fleet.put_rule("stage-gate", "stage_gate")
    fall_below_the_gate(fleet)
    opened = dict(fleet.rows("SELECT rule, min(opened_at) FROM alerts GROUP BY rule"))
    assert opened["success-drift"] < opened["stage-gate"]
    assert told(fleet) == [["performance"]]
    # The drift ends, here because its rules do; that the gate is broken people know.
    fleet.put_rule("success-drift", "drift", enabled=False)
    fleet.put_rule("success-below-sim", "drop", enabled=False)
    live(fleet, 0.35, 10, robots=(1, 2, 3), seed=5)
    assert fleet.rows("SELECT rule FROM alerts WHERE state = 'firing'") == [("stage-gate",)]
    assert told(fleet) == [["performance"]]


def test_a_gate_that_goes_to_somebody_else_is_told(fleet):
    channel = fleet.add_channel("/stage", min_severity="critical")
    fleet.put_rule("stage-gate", "stage_gate", channels=(channel,))
    fall_below_the_gate(fleet)
    assert [got.path for got in fleet.receiver.got].count("/stage") == 1


def test_a_silence_that_was_just_told_does_not_hold_back_a_violation(fleet):
    fleet.put_rule("safety-violation", "safety", severe=1, rate=False)
    fall_silent(fleet)
    live(fleet, 0.92, 4, robots=(2, 3), violations=1)
    assert told(fleet) == [["silence"], ["safety"]]


def test_a_silence_after_a_resolved_violation_does_not_wait_for_the_flap_window_of_safety(fleet):
    fleet.put_rule("safety-violation", "safety", severe=1, rate=False, clear_episodes=5)
    live(fleet, 1.0, 1, violations=1)
    fleet.send()
    live(fleet, 1.0, 30, robots=(2, 3), violations=0)
    assert fleet.rows("SELECT state FROM incidents") == [("resolved",)]
    fall_silent(fleet)
    assert told(fleet) == [["safety"], ["silence"]]


def test_a_silence_that_comes_back_within_the_incident_is_told_again_but_not_while_it_flaps(fleet):
    live(fleet, 0.3, 200, robots=(1, 2, 3), seed=2)
    fall_silent(fleet)
    assert told(fleet) == [["performance"], ["silence"]]
    live(fleet, 0.3, 3, robots=(1,))
    assert fleet.alerts()["robot-silent robot:ur5e-1"] == "resolved"
    fall_silent(fleet)
    assert told(fleet) == [["performance"], ["silence"]]
    let_pass(fleet, 11 * MINUTE)
    fleet.keep_time()
    assert told(fleet) == [["performance"], ["silence"], ["silence"]]
    assert "silent again" in fleet.receiver.webhooks("trigger")[-1]["headline"]


def test_a_second_silent_robot_is_the_same_news(fleet):
    fall_silent(fleet)
    fall_silent(fleet, "ur5e-2")
    assert told(fleet) == [["silence"]]


def test_what_a_silence_of_people_holds_back_is_told_when_it_ends_even_if_no_episode_comes(fleet):
    """An incident that people know of is looked at again, too."""
    now = datetime.now(UTC)
    with fleet.database.transaction() as connection:
        silence_id = alert_settings.add_silence(
            connection,
            1,
            match=Match(rule=["success-drift"]),
            owner="anna",
            reason="works on it",
            starts_at=now - MINUTE,
            ends_at=now + 60 * MINUTE,
        )
    fall_silent(fleet)
    live(fleet, 0.3, 200, robots=(2, 3), seed=2)
    fleet.keep_time()
    assert told(fleet) == [["silence"]]
    with fleet.database.transaction() as connection:
        assert alert_settings.end_silence(connection, 1, silence_id, "anna")
    fleet.keep_time()
    assert told(fleet) == [["silence"], ["performance"]]


def test_the_channels_that_one_rule_names_are_not_those_of_another(fleet):
    """The drop goes to everybody though the silence has a channel of its own."""
    named = fleet.add_channel("/field-service")
    fleet.put_rule("robot-silent", "no_data", channels=(named,))
    fall_silent(fleet)
    live(fleet, 0.3, 200, robots=(2, 3), seed=2)
    assert told(fleet) == [["performance"]]
    to_field_service = fleet.receiver.webhooks("trigger", "/field-service")
    assert [body["tells"][0]["kind"] for body in to_field_service] == ["silence", "performance"]


def test_an_escalation_of_what_was_taken_on_is_taken_back_and_the_news_escalates_by_itself(fleet):
    fleet.add_channel("/boss", escalate_after_minutes=15)
    fall_silent(fleet)
    acknowledge(fleet)
    live(fleet, 0.3, 200, robots=(2, 3), seed=2)
    let_pass(fleet, 16 * MINUTE)
    fleet.send()
    [to_boss] = fleet.receiver.webhooks("trigger", "/boss")
    assert [tell["kind"] for tell in to_boss["tells"]] == ["performance"]


def test_a_channel_that_wants_only_what_is_critical_is_not_told_of_a_warning_that_joins(fleet):
    fleet.put_rule("safety-violation", "safety", severity="critical", severe=1, rate=False)
    fleet.add_channel("/critical", min_severity="critical")
    live(fleet, 0.92, 4, robots=(2, 3), violations=1)
    live(fleet, 0.3, 200, robots=(2, 3), seed=2)
    assert told(fleet) == [["safety"], ["performance"]]
    [only] = fleet.receiver.webhooks("trigger", "/critical")
    assert only["severity"] == "critical"


def test_a_kind_that_is_worth_knowing_joins_quietly_and_does_not_reopen(fleet):
    fleet.add_channel("/curious", min_severity="info")
    fall_silent(fleet)
    acknowledge(fleet)
    fleet.put_rule("success-drift", "drift", severity="info", arl=20_000)
    live(fleet, 0.3, 200, robots=(2, 3), seed=2)
    assert fleet.alerts()["success-drift success"] == "firing"
    assert told(fleet) == [["silence"]]
    assert fleet.rows("SELECT state FROM incidents") == [("acknowledged",)]


def test_what_waits_for_the_end_of_quiet_hours_does_not_hold_up_what_is_critical(fleet):
    now = datetime.now(UTC)
    around = {"start": (now - 60 * MINUTE).strftime("%H:%M"), "end": (now + 60 * MINUTE).strftime("%H:%M")}
    fleet.add_channel("/night", quiet_hours=around)
    fleet.put_rule("safety-violation", "safety", severity="critical", severe=1, rate=False)
    fall_silent(fleet)
    live(fleet, 0.92, 4, robots=(2, 3), violations=1)
    fleet.send()
    [woken] = fleet.receiver.webhooks("trigger", "/night")
    assert [tell["kind"] for tell in woken["tells"]] == ["safety"]
