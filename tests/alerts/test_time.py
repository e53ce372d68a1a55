"""What time does: silent robots, missing data, flapping, silences, quiet hours, escalation, repeats."""

from datetime import UTC, datetime, timedelta

from alerts.rhythms import day_shift, teach
from alerts.stage import LINK

from gapwatch.alerts import timed_rounds
from gapwatch.incidents import alert_actions
from gapwatch.store.alerting import alert_settings
from gapwatch.watching.matchers import Match

HOUR = timedelta(hours=1)


def let_pass(stage, time):
    """Everything that happened was so much earlier."""
    for table, columns in {
        "presence": ("heard_at",),
        "deployment_presence": ("heard_at",),
        "incidents": ("opened_at", "paged_at", "page_at"),
        "notified_reasons": ("at",),
        "deliveries": ("created_at", "due_at", "sent_at"),
        "heartbeats": ("beat_at",),
        "silences": ("starts_at", "ends_at"),
    }.items():
        for column in columns if table != "silences" else ("starts_at", "ends_at"):
            stage.back_date(table, column, time)


def live(stage, n=30, robot_id=1):
    """Episodes that arrive as they happen."""
    stage.accept([True] * n, at=datetime.now(UTC) - timedelta(minutes=1), robot_id=robot_id)
    stage.watch()


def test_history_and_robots_of_few_episodes_are_not_missed(stage):
    stage.accept([True] * 50, at=datetime.now(UTC) - timedelta(days=30))
    live(stage, 5, robot_id=2)
    let_pass(stage, timedelta(days=2))
    assert stage.listen_for_silence() == 0


def test_missing_data_resolves_nothing_and_an_alert_returns_to_where_it_was(stage):
    stage.add_channel()
    stage.only("success-drift", "drift")
    stage.put_rule("robot-silent", "no_data")
    now = datetime.now(UTC)
    stage.accept([True] * 300, at=now - HOUR)
    stage.accept([False] * 30, at=now - timedelta(minutes=5))
    stage.watch()
    [(alert_id,)] = stage.rows("SELECT id FROM alerts")
    with stage.database.transaction() as connection:
        alert_actions.acknowledge(connection, 1, alert_id, "anna", None)
    teach(stage, {"ur5e-1": day_shift(now, quiet=2 * HOUR)})
    stage.listen_for_silence()
    assert stage.alerts() == {"success-drift success": "no_data", "robot-silent deployment": "firing"}
    # Who took on the drop did not take on the silence.
    assert stage.rows("SELECT state FROM incidents") == [("firing",)]
    stage.send()
    assert "resolve" not in {body["action"] for body in stage.receiver.webhooks()}
    stage.accept([False] * 3, at=datetime.now(UTC))
    stage.watch()
    assert stage.alerts() == {"success-drift success": "acknowledged", "robot-silent deployment": "resolved"}


def test_flapping_is_one_notification_a_window_and_the_state_stays_exact(stage):
    stage.add_channel()
    stage.only("safety", "safety", severe=1, rate=False, clear_episodes=5, flap_minutes=10)
    for _ in range(6):
        stage.accept([True], violations=1)
        stage.watch()
        stage.send()
        stage.accept([True] * 5, violations=0)
        stage.watch()
        stage.send()
    assert stage.rows("SELECT count(*), count(*) FILTER (WHERE state = 'resolved') FROM alerts") == [(6, 6)]
    assert [body["action"] for body in stage.receiver.webhooks()] == ["trigger", "resolve"]
    stage.accept([True], violations=1)
    stage.watch()
    stage.keep_time()
    assert stage.send() == 0
    let_pass(stage, timedelta(minutes=11))
    # A restart of everything later finds the time to tell in the database.
    stage.keep_time()
    stage.send()
    assert [body["action"] for body in stage.receiver.webhooks()] == ["trigger", "resolve", "trigger"]


def silence(stage, minutes=60, **match):
    now = datetime.now(UTC)
    with stage.database.transaction() as connection:
        return alert_settings.add_silence(
            connection,
            1,
            match=Match(**match),
            owner="anna",
            reason="maintenance",
            starts_at=now - HOUR,
            ends_at=now + timedelta(minutes=minutes),
        )


def test_silenced_alerts_are_recorded_and_told_when_the_silence_is_over_and_they_are_not(stage):
    stage.add_channel()
    stage.put_rule("robot-silent", "no_data", enabled=False)
    silence(stage, deployment=["berlin-*"])
    stage.fall()
    assert stage.alerts()["success-drift success"] == "firing"
    stage.keep_time()
    assert stage.deliveries() == []
    let_pass(stage, 2 * HOUR)
    stage.keep_time()
    stage.send()
    assert len(stage.receiver.webhooks("trigger")) == 1


def test_a_silence_of_one_rule_leaves_the_others(stage):
    stage.add_channel()
    silence(stage, rule=["stage-gate"])
    stage.fall()
    stage.send()
    [notification] = stage.receiver.webhooks()
    assert [reason["rule"] for reason in notification["reasons"]] == ["success-drift"]


def test_what_recovers_while_silenced_is_never_told(stage):
    stage.add_channel()
    stage.only("success-drift", "drift")
    silence(stage)
    stage.fall()
    stage.recover()
    let_pass(stage, 2 * HOUR)
    stage.keep_time()
    assert stage.deliveries() == []


def test_a_silence_that_is_ended_early_lets_the_notification_go(stage):
    stage.add_channel()
    silence_id = silence(stage)
    stage.fall()
    with stage.database.transaction() as connection:
        assert alert_settings.end_silence(connection, 1, silence_id, "anna")
    stage.keep_time()
    assert stage.send() == 1


def test_escalation_waits_and_is_not_sent_once_somebody_took_it_on(stage):
    stage.add_channel("/hook")
    stage.add_channel("/boss", escalate_after_minutes=15)
    stage.fall()
    stage.send()
    assert [got.path for got in stage.receiver.got] == ["/hook"]
    let_pass(stage, timedelta(minutes=16))
    stage.send()
    assert [got.path for got in stage.receiver.got] == ["/hook", "/boss"]


def test_an_acknowledged_incident_does_not_escalate_or_repeat(stage):
    stage.only("success-drift", "drift")
    stage.add_channel("/hook", repeat_minutes=30)
    stage.add_channel("/boss", escalate_after_minutes=15)
    stage.fall()
    stage.send()
    [(alert_id,), *_] = stage.rows("SELECT id FROM alerts ORDER BY id")
    with stage.database.transaction() as connection:
        alert_actions.acknowledge(connection, 1, alert_id, "anna", None)
    let_pass(stage, HOUR)
    stage.keep_time()
    stage.send()
    assert [(got.path, got.json["action"]) for got in stage.receiver.got] == [
        ("/hook", "trigger"),
        ("/hook", "acknowledge"),
    ]


def test_an_incident_nobody_took_on_is_told_again(stage):
    stage.only("success-drift", "drift")
    stage.add_channel("/hook", repeat_minutes=30)
    stage.fall()
    stage.send()
    stage.keep_time()
    assert stage.send() == 0
    for _ in range(2):
        let_pass(stage, timedelta(minutes=31))
        stage.keep_time()
        stage.send()
    assert len(stage.receiver.webhooks("trigger")) == 3


def test_in_quiet_hours_a_notification_waits_and_one_that_is_over_by_then_is_not_sent(stage):
    now = datetime.now(UTC)
    around = {"start": (now - HOUR).strftime("%H:%M"), "end": (now + HOUR).strftime("%H:%M")}
    stage.add_channel("/hook", quiet_hours=around)
    stage.fall()
    assert stage.send() == 0
    stage.recover()
    for _ in range(2):
        # The resolve may find its trigger in the hands of another sender, and then comes back a moment later.
        let_pass(stage, 2 * HOUR)
        stage.send()
    assert stage.receiver.got == []
    assert {state for _, state, _ in stage.deliveries()} == {"superseded"}


def test_the_heartbeat_goes_out_once_a_minute(stage):
    url = f"{stage.receiver.url}/alive"
    for _ in range(3):
        timed_rounds.keep_time(stage.database, LINK, url)
    assert [got.path for got in stage.receiver.got] == ["/alive"]
    let_pass(stage, timedelta(minutes=2))
    timed_rounds.keep_time(stage.database, LINK, url)
    assert len(stage.receiver.got) == 2
