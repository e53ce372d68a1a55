"""Robots that rest, move and come back, and the maintenance of deployments, with the watch in this process."""

from datetime import UTC, datetime, timedelta

import pytest
from alerts.rhythms import DAY, HOUR, MINUTE, database_now, day_shift, teach
from alerts.test_time import let_pass, live

from gapwatch.incidents import robot_actions
from gapwatch.incidents.robot_actions import StatusWish
from gapwatch.store.alerting import alert_settings, robot_statuses, silence_windows
from gapwatch.store.alerting.robot_statuses import RobotPlace
from gapwatch.watching.matchers import Match
from gapwatch.watching.recurrence import Recurrence
from gapwatch.watching.working_hours import DAYS

WORDS = {
    "deployment": "berlin-line-3",
    "policy": "bin-pick",
    "task": "pick-mug",
    "site": "berlin",
    "stage": "full",
}


def say(stage, robot, status, *, by_robot=False, actor="anna", **more):
    with stage.database.transaction() as connection:
        wish = StatusWish(status, **more)
        return robot_actions.set_status(connection, 1, robot, wish, actor, by_robot=by_robot)


def ask(stage, question, *arguments, **named):
    with stage.database.transaction() as connection:
        return question(connection, 1, *arguments, **named)


def status_of(stage, robot):
    [listed] = ask(stage, robot_statuses.list_robots, only=robot)
    return listed.status


def fall_silent(stage, *others):
    """One robot of a shift that everybody else still works in, if there are others."""
    now = database_now(stage)
    shifts = {"ur5e-1": day_shift(now, quiet=40 * MINUTE)}
    teach(stage, shifts | {other: day_shift(now, quiet=2 * MINUTE) for other in others})
    assert stage.listen_for_silence() == 1


@pytest.mark.parametrize("status", ["parked", "repair", "retired"])
def test_a_robot_that_rests_is_not_silent_any_more_and_people_are_told_that_it_is_over(stage, status):
    stage.add_channel()
    fall_silent(stage)
    stage.send()
    say(stage, "ur5e-1", status, reason="gripper")
    assert stage.alerts() == {"robot-silent deployment": "resolved"}
    assert ask(stage, robot_statuses.resting_robots) == {"ur5e-1"}
    stage.send()
    assert [body["action"] for body in stage.receiver.webhooks()] == ["trigger", "resolve"]
    [comment] = [row[0] for row in stage.rows("SELECT comment FROM alert_transitions WHERE input = 'resolve'")]
    assert "ur5e-1" in comment and "gripper" in comment
    # When it works again its silence is news again.
    assert stage.rows("SELECT silence FROM presence WHERE robot = 'ur5e-1'") == [(None,)]


def open_alert_of_all(stage):
    stage.run(
        "INSERT INTO incidents (project_id, deployment_id, state, severity) VALUES (1, 1, 'firing', 'warning');"
        "INSERT INTO alerts (project_id, deployment_id, incident_id, rule, kind, series, state, severity)"
        " VALUES (1, 1, 1, 'robot-silent', 'no_data', 'robots', 'firing', 'warning')"
    )


def test_the_alert_of_a_whole_deployment_ends_with_its_last_robot_at_work(stage):
    live(stage, robot_id=1)
    live(stage, robot_id=2)
    open_alert_of_all(stage)
    say(stage, "ur5e-1", "parked")
    assert stage.alerts()["robot-silent robots"] == "firing"
    say(stage, "ur5e-2", "parked")
    assert stage.alerts()["robot-silent robots"] == "resolved"
    assert stage.rows("SELECT state FROM incidents") == [("resolved",)]


def test_an_alert_that_is_no_silence_stays_when_its_robot_rests(stage):
    stage.fall()
    before = stage.alerts()
    assert "firing" in before.values()
    say(stage, "ur5e-1", "repair")
    assert stage.alerts() == before


def test_repair_and_parking_end_by_themselves_and_silence_counts_from_then(stage):
    live(stage)
    say(stage, "ur5e-1", "repair", until=datetime.now(UTC) + HOUR)
    assert status_of(stage, "ur5e-1") == "repair"
    stage.run("UPDATE robot_statuses SET since = since - interval '2 hours', until = until - interval '2 hours'")
    assert status_of(stage, "ur5e-1") == "working"
    assert ask(stage, robot_statuses.resting_robots) == set()
    [(until,)] = stage.rows("SELECT until FROM robot_statuses")
    assert ask(stage, robot_statuses.at_work_since) == {"ur5e-1": until}


def test_what_a_robot_said_of_itself_ends_with_its_next_live_episode_and_not_with_a_late_one(stage):
    live(stage)
    say(stage, "ur5e-1", "parked", by_robot=True, actor="key/gw_1", reason="shift is over")
    # The last episode of the shift, sent after the robot parked.
    stage.accept([True], at=datetime.now(UTC) - timedelta(minutes=2))
    stage.watch()
    assert status_of(stage, "ur5e-1") == "parked"
    stage.run("UPDATE robot_statuses SET since = since - interval '14 hours'")
    # History says nothing about now.
    stage.accept([True], at=datetime.now(UTC) - 3 * DAY)
    stage.watch()
    assert status_of(stage, "ur5e-1") == "parked"
    live(stage, 1)
    assert status_of(stage, "ur5e-1") == "working"
    changes = [(one.change, one.actor) for one in ask(stage, robot_statuses.history_of, "ur5e-1")]
    assert changes == [("working", "gapwatch"), ("parked", "key/gw_1")]


def test_what_people_said_does_not_end_with_a_test_run(stage):
    live(stage)
    say(stage, "ur5e-1", "repair")
    stage.run("UPDATE robot_statuses SET since = since - interval '2 hours'")
    live(stage, 3)
    assert status_of(stage, "ur5e-1") == "repair"
    assert say(stage, "ur5e-1", "working", by_robot=True) == "set by people"
    assert say(stage, "ur5e-1", "working") is None
    assert status_of(stage, "ur5e-1") == "working"


def test_the_newest_statement_wins_whenever_it_arrives(stage):
    live(stage)
    say(stage, "ur5e-1", "working")
    assert say(stage, "ur5e-1", "parked", by_robot=True, age=5 * HOUR) == "older"
    assert status_of(stage, "ur5e-1") == "working"


def test_a_robot_that_moved_is_missed_at_its_new_deployment_only(stage):
    fall_silent(stage, "ur5e-2")
    with stage.database.transaction() as connection:
        assert robot_actions.move_robot(connection, 1, "ur5e-1", RobotPlace(2, "oslo-1"), "anna", "fair")
    assert stage.alerts() == {"robot-silent robot:ur5e-1": "resolved"}
    [listed] = ask(stage, robot_statuses.list_robots, only="ur5e-1")
    assert (listed.deployment, listed.status, listed.alert_id) == ("oslo-1", "working", None)
    assert [one.change for one in ask(stage, robot_statuses.history_of, "ur5e-1")] == ["moved"]
    titles = stage.rows("SELECT deployment_id, title FROM events ORDER BY deployment_id")
    assert titles == [(d, "ur5e-1 moved from berlin-line-3 to oslo-1: fair") for d in (1, 2)]
    assert "ur5e-1" in ask(stage, robot_statuses.at_work_since)


def test_a_robot_that_was_never_heard_live_cannot_be_moved(stage):
    with stage.database.transaction() as connection:
        assert not robot_actions.move_robot(connection, 1, "ur5e-1", RobotPlace(2, "oslo-1"), "anna")


def test_repair_is_on_the_time_line_and_a_nightly_rest_is_not(stage):
    live(stage)
    for status in ("parked", "working", "repair", "working", "retired"):
        say(stage, "ur5e-1", status)
    titles = [row[0] for row in stage.rows("SELECT title FROM events ORDER BY id")]
    assert titles == ["ur5e-1 in repair", "ur5e-1 back at work", "ur5e-1 retired"]


def test_robots_of_imported_history_are_listed_with_their_deployment(stage):
    stage.happen(0.9, 5, at=datetime.now(UTC) - 30 * DAY, robot_id=2)
    [listed] = ask(stage, robot_statuses.list_robots)
    assert (listed.robot, listed.deployment, listed.heard_at) == ("ur5e-2", "berlin-line-3", None)


def hours_around_now(before=1, after=1):
    """A window of every day around the present hour, in UTC."""
    now = datetime.now(UTC)
    start, end = now - before * HOUR, now + after * HOUR
    return Recurrence.model_validate(
        {"days": list(DAYS), "from": f"{start:%H:%M}", "to": f"{end:%H:%M}", "time_zone": "UTC"}
    )


def add(stage, kind, *, recurrence, **match):
    now = datetime.now(UTC)
    return ask(
        stage,
        alert_settings.add_silence,
        match=Match(**match),
        owner="anna",
        reason="cleaning",
        starts_at=now - 10 * DAY,
        ends_at=None,
        kind=kind,
        recurrence=recurrence,
    )


@pytest.mark.parametrize("kind", ["silence", "maintenance"])
def test_a_series_holds_back_in_its_hours_and_lets_go_when_they_are_over(stage, kind):
    stage.add_channel()
    stage.put_rule("robot-silent", "no_data", enabled=False)
    number = add(stage, kind, recurrence=hours_around_now(), deployment=["berlin-*"])
    stage.fall()
    stage.keep_time()
    assert stage.deliveries() == []
    [(held_until,)] = stage.rows("SELECT page_at FROM incidents")
    assert timedelta(minutes=58) < held_until - datetime.now(UTC) <= HOUR
    # Two hours later, for what is stored: the incident's time has come, and the hours are not those of now.
    later = hours_around_now(before=3, after=-1).model_dump_json(by_alias=True)
    stage.run("UPDATE silences SET recurrence = CAST(:r AS jsonb) WHERE id = :id", r=later, id=number)
    let_pass(stage, 2 * HOUR)
    stage.keep_time()
    stage.send()
    assert len(stage.receiver.webhooks("trigger")) == 1


def test_maintenance_is_known_with_its_end_and_its_past(stage):
    now = datetime.now(UTC)
    assert ask(stage, silence_windows.maintenance_until, WORDS) is None
    add(stage, "silence", recurrence=hours_around_now(), deployment=["berlin-*"])
    assert ask(stage, silence_windows.maintenance_until, WORDS) is None
    add(stage, "maintenance", recurrence=hours_around_now(), deployment=["berlin-*"])
    ends = ask(stage, silence_windows.maintenance_until, WORDS)
    assert timedelta(minutes=58) < ends - now <= HOUR
    assert ask(stage, silence_windows.maintenance_until, WORDS | {"deployment": "oslo-1"}) is None
    assert len(ask(stage, silence_windows.maintenance_windows, WORDS, now - 3 * DAY)) == 4


def test_in_maintenance_nothing_is_told_again_and_afterwards_it_is(stage):
    stage.add_channel(repeat_minutes=30)
    stage.fall()
    stage.send()
    number = add(stage, "maintenance", recurrence=hours_around_now(), site=["berlin"])
    let_pass(stage, timedelta(minutes=31))
    stage.keep_time()
    assert stage.send() == 0
    ask(stage, alert_settings.end_silence, number, "anna")
    let_pass(stage, timedelta(minutes=2))
    stage.send()
    assert len(stage.receiver.webhooks("trigger")) == 2


def test_a_series_of_a_time_zone_that_this_machine_lost_silences_nothing(stage):
    add(stage, "silence", recurrence=hours_around_now())
    stage.run("""UPDATE silences SET recurrence = recurrence || '{"time_zone": "Atlantis/Centre"}'""")
    assert ask(stage, alert_settings.silencing, WORDS) is False
