"""Listening to robots in Postgres: who is missed, who is told, and what an answer teaches."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from alerts.rhythms import DAY, HOUR, MINUTE, database_now, day_shift, teach
from sqlalchemy import text

from gapwatch.errors import Conflict
from gapwatch.incidents.silence_answers import answer_silence, answer_silences_of
from gapwatch.store.alerting import presence
from gapwatch.store.core import uptime


def rest(stage, robot, status, until="NULL"):
    stage.run("DELETE FROM robot_statuses WHERE robot = :r", r=robot)
    stage.run(
        "INSERT INTO robot_statuses (project_id, robot, status, since, until, actor)"
        f" VALUES (1, :r, :s, now() - interval '5 hours', {until}, 'anna')",
        r=robot,
        s=status,
    )


def live(stage, robot_id=1, deployment=1, late=MINUTE):
    stage.accept([True], at=datetime.now(UTC) - late, robot_id=robot_id, deployment=deployment)
    stage.watch()


def alerts(stage):
    return stage.rows("SELECT series, severity, state FROM alerts ORDER BY id")


def test_all_robots_of_a_deployment_silent_at_work_are_one_page(stage):
    stage.add_channel()
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, quiet=40 * MINUTE), "ur5e-2": day_shift(now, quiet=42 * MINUTE)})
    assert stage.listen_for_silence() == 1
    assert stage.listen_for_silence() == 0
    assert alerts(stage) == [("deployment", "warning", "firing")]
    stage.send()
    [notification] = stage.receiver.webhooks()
    assert "all 2 robots silent since" in notification["headline"]
    live(stage)
    assert alerts(stage) == [("deployment", "warning", "resolved")]
    stage.send()
    assert [body["action"] for body in stage.receiver.webhooks()] == ["trigger", "resolve"]


def test_one_robot_of_many_is_information_and_tells_nobody(stage):
    stage.add_channel()
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, quiet=40 * MINUTE), "ur5e-2": day_shift(now, quiet=2 * MINUTE)})
    assert stage.listen_for_silence() == 1
    assert alerts(stage) == [("robot:ur5e-1", "info", "firing")]
    assert stage.deliveries() == []
    # The others fall silent too: now it is the deployment.
    stage.run("UPDATE presence SET heard_at = heard_at - interval '50 minutes' WHERE robot = 'ur5e-2'")
    stage.run("UPDATE deployment_presence SET heard_at = heard_at - interval '50 minutes'")
    assert stage.listen_for_silence() == 1
    assert ("deployment", "warning", "firing") in alerts(stage)


def test_one_robot_alone_is_all_robots(stage):
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, quiet=40 * MINUTE)})
    stage.listen_for_silence()
    [(series, severity, evidence)] = stage.rows("SELECT series, severity, evidence FROM alerts")
    assert (series, severity, evidence["robot"]) == ("deployment", "warning", "ur5e-1")


def test_a_deployment_that_does_not_begin_to_work_is_information_at_first(stage):
    now = database_now(stage)
    # It works from an hour ago until seven hours from now, and did not begin today.
    teach(stage, {"ur5e-1": day_shift(now + 3 * HOUR, quiet=4 * HOUR + 5 * MINUTE)})
    stage.listen_for_silence()
    assert alerts(stage) == [("deployment", "info", "firing")]
    stage.run("UPDATE deployment_presence SET heard_at = heard_at - interval '10 days'")
    stage.listen_for_silence()
    assert alerts(stage) == [("deployment", "warning", "firing")]


def test_the_first_week_pages_nobody(stage):
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, days=4, quiet=40 * MINUTE)})
    stage.listen_for_silence()
    assert alerts(stage) == [("deployment", "info", "firing")]


def test_a_night_stops_no_data_and_moves_no_alert(stage):
    stage.fall()
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now - 8 * HOUR, quiet=-4 * HOUR)})
    before = stage.alerts()
    assert stage.listen_for_silence() == 0
    assert stage.alerts() == before


def test_our_own_downtime_is_nobodys_silence(stage):
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, quiet=3 * HOUR + 5 * MINUTE)})
    away = "INSERT INTO service_spans VALUES ('ingest', now() - interval '9 days', now() - interval '3 hours'),"
    stage.run(f"{away} ('ingest', now() - interval '10 minutes', now())")
    assert stage.listen_for_silence() == 0
    stage.run("DELETE FROM service_spans")
    assert stage.listen_for_silence() == 1


def test_marks_leave_a_hole_where_the_service_was_away(stage):
    with stage.database.transaction() as connection:
        uptime.mark_alive(connection, "ingest")
        uptime.mark_alive(connection, "ingest")
    stage.run(
        "UPDATE service_spans SET alive_from = now() - interval '8 hours', alive_until = now() - interval '5 hours'"
    )
    with stage.database.transaction() as connection:
        uptime.mark_alive(connection, "ingest")
        now = connection.execute(text("SELECT now()")).scalar_one()
        [(start, end)] = uptime.absences(connection, now - DAY, now)
    assert timedelta(hours=4.9) < end - start < timedelta(hours=5.1)


def test_robots_that_rest_are_not_missed_and_their_alerts_end(stage):
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, quiet=40 * MINUTE), "ur5e-2": day_shift(now, quiet=2 * MINUTE)})
    stage.listen_for_silence()
    rest(stage, "ur5e-1", "repair")
    stage.listen_for_silence()
    assert alerts(stage) == [("robot:ur5e-1", "info", "resolved")]
    stage.run("UPDATE deployment_presence SET heard_at = now() - interval '3 hours'")
    stage.run("UPDATE presence SET heard_at = now() - interval '3 hours'")
    rest(stage, "ur5e-2", "retired")
    assert stage.listen_for_silence() == 0


def test_after_a_rest_silence_counts_from_its_end(stage):
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, quiet=3 * HOUR)})
    rest(stage, "ur5e-1", "repair", until="now() - interval '20 minutes'")
    assert stage.listen_for_silence() == 0
    rest(stage, "ur5e-1", "repair", until="now() - interval '50 minutes'")
    assert stage.listen_for_silence() == 1


def test_a_deployment_in_maintenance_is_not_silent(stage):
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, quiet=3 * HOUR)})
    stage.run(
        "INSERT INTO silences (project_id, match, owner, reason, kind, starts_at, ends_at) VALUES"
        " (1, '{}', 'anna', 'belts', 'maintenance', now() - interval '4 hours', now() - interval '10 minutes')"
    )
    assert stage.listen_for_silence() == 0
    stage.run("UPDATE silences SET ends_at = now() - interval '2 hours'")
    assert stage.listen_for_silence() == 1


def test_a_calendar_says_when_silence_counts(stage):
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, quiet=3 * HOUR)})
    days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    hours = {"from": f"{(now + 5 * HOUR):%H}:00", "to": f"{(now + 7 * HOUR):%H}:00"}
    calendar = {"time_zone": "UTC", "shifts": [{"days": days, **hours}]}
    stage.run(
        "INSERT INTO work_calendars (project_id, deployment_id, calendar, changed_by)"
        f" VALUES (1, 1, '{json.dumps(calendar)}', 'anna')"
    )
    assert stage.listen_for_silence() == 0
    stage.run('UPDATE work_calendars SET calendar = \'{"time_zone": "UTC", "shifts": []}\'')
    stage.run("DELETE FROM work_calendars")
    assert stage.listen_for_silence() == 1


def test_who_sends_what_it_kept_is_not_silent(stage):
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, quiet=3 * HOUR)})
    stage.run("UPDATE presence SET spool_oldest_at = now() - interval '2 days', spool_told_at = now()")
    assert stage.listen_for_silence() == 0
    stage.run("UPDATE presence SET spool_told_at = now() - interval '1 hour'")
    assert stage.listen_for_silence() == 1


def test_a_robot_that_moved_is_missed_nowhere(stage):
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, quiet=40 * MINUTE)})
    stage.listen_for_silence()
    live(stage, deployment=2)
    stage.run("UPDATE presence SET heard_at = now() - interval '35 minutes'")
    stage.listen_for_silence()
    assert alerts(stage) == [("deployment", "warning", "resolved")]


def test_deployments_of_one_site_that_fall_silent_together_are_one_page(stage):
    stage.add_channel()
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, quiet=40 * MINUTE)})
    teach(stage, {"ur5e-2": day_shift(now, quiet=43 * MINUTE)}, deployment_id=2)
    assert stage.listen_for_silence() == 2
    assert alerts(stage) == [("deployment", "warning", "firing"), ("deployment", "info", "firing")]
    assert len(stage.deliveries()) == 1
    # The first is back and the second is not: now the second is told.
    live(stage)
    stage.listen_for_silence()
    assert alerts(stage) == [("deployment", "warning", "resolved"), ("deployment", "warning", "firing")]


def test_who_waits_to_be_watched_is_not_silent(stage):
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, quiet=40 * MINUTE)})
    stage.accept([True], at=now)
    stage.run("UPDATE work SET created_at = now() - interval '10 minutes'")
    assert stage.listen_for_silence() == 0


def answer(stage, normal, series="deployment"):
    [(alert_id,)] = stage.rows("SELECT max(id) FROM alerts WHERE series = :s", s=series)
    with stage.database.transaction() as connection:
        assert answer_silence(connection, 1, alert_id, "anna", "cleaning", normal=normal)


@pytest.mark.parametrize(("normal", "state"), [(True, "resolved"), (False, "firing")])
def test_one_answer_teaches_a_silence(stage, normal, state):
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, quiet=40 * MINUTE)})
    stage.listen_for_silence()
    answer(stage, normal)
    assert alerts(stage) == [("deployment", "warning", state)]
    # It lasts, and is told no second time.
    assert stage.listen_for_silence() == 0
    live(stage)
    with stage.database.transaction() as connection:
        known = presence.deployment(connection, 1, 1)
    start = (now - 40 * MINUTE).timestamp()
    ended = [gap.ended for gap in known.rhythm.gaps if abs(gap.start - start) < 301]
    assert ended == (["normal"] if normal else [])
    comment = stage.rows("SELECT comment FROM alert_transitions WHERE actor = 'anna'")
    assert comment == [("normal: cleaning" if normal else "not normal: cleaning",)]


def test_an_answer_after_the_silence_teaches_too(stage):
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, quiet=40 * MINUTE)})
    stage.listen_for_silence()
    live(stage)
    answer(stage, normal=True)
    with stage.database.transaction() as connection:
        assert presence.deployment(connection, 1, 1).rhythm.gaps[-1].ended == "normal"
        assert not answer_silence(connection, 1, 999, "anna", None, normal=True)


def test_only_a_silence_is_asked_about(stage):
    stage.fall()
    [(alert_id,), *_] = stage.rows("SELECT id FROM alerts")
    with stage.database.transaction() as connection, pytest.raises(Conflict):
        answer_silence(connection, 1, alert_id, "anna", None, normal=True)


def test_one_answer_to_an_incident_teaches_all_its_silences(stage):
    now = database_now(stage)
    teach(stage, {"ur5e-1": day_shift(now, quiet=40 * MINUTE)})
    stage.listen_for_silence()
    [(incident_id,)] = stage.rows("SELECT id FROM incidents")
    with stage.database.transaction() as connection:
        assert not answer_silences_of(connection, 1, 999, "anna", None, normal=True)
        assert answer_silences_of(connection, 1, incident_id, "anna", "cleaning", normal=True)
    assert alerts(stage) == [("deployment", "warning", "resolved")]
    assert stage.rows("SELECT state FROM incidents") == [("resolved",)]
    assert stage.rows("SELECT silence FROM deployment_presence") == [("normal",)]
    with pytest.raises(Conflict), stage.database.transaction() as connection:
        answer_silences_of(connection, 1, incident_id, "anna", None, normal=False)
