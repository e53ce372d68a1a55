"""Listening to robots in Postgres: who is missed, who is told, and what an answer teaches."""

from datetime import UTC, datetime, timedelta

import pytest
from alerts.stage import LINK
from sqlalchemy import text

from gapwatch.alerts.silence_watch import watch_silence
from gapwatch.errors import Conflict
from gapwatch.incidents.silence_answers import answer_silence
from gapwatch.store.alerting import presence
from gapwatch.store.core import uptime
from gapwatch.watching.silence import hear

HOUR, MINUTE, DAY = timedelta(hours=1), timedelta(minutes=1), timedelta(days=1)


def day_shift(now, days=21, quiet=timedelta(0), hours=4):
    """Work around this time of every day, from so many hours before until as many after; quiet for a while now."""
    times = []
    for day in range(days, -1, -1):
        begin = now - day * DAY - hours * HOUR
        times += [at for n in range(2 * hours * 12) if (at := begin + n * 5 * MINUTE) <= now - quiet]
    return times


def teach(stage, robots, deployment_id=1):
    """Store robots, by their arrivals, and the deployment as if they had been heard live."""
    everything = sorted(at for times in robots.values() for at in times)
    heard = [hear(None, name, deployment_id, [(at, at) for at in times]) for name, times in robots.items()]
    heard.append(hear(None, None, deployment_id, [(at, at) for at in everything]))
    with stage.database.transaction() as connection:
        presence.save(connection, 1, heard)


def database_now(stage):
    return stage.rows("SELECT now()")[0][0]


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

    def resting(_connection, _project_id):
        return {"ur5e-1"}

    watch_silence(stage.database, LINK, resting=resting)
    assert alerts(stage) == [("robot:ur5e-1", "info", "resolved")]
    stage.run("UPDATE deployment_presence SET heard_at = now() - interval '3 hours'")
    stage.run("UPDATE presence SET heard_at = now() - interval '3 hours'")
    both = lambda _connection, _project_id: {"ur5e-1", "ur5e-2"}  # noqa: E731
    assert watch_silence(stage.database, LINK, resting=both) == 0


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
