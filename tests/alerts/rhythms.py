"""Robots that were heard for weeks, without waiting for them."""

from datetime import timedelta

from alerts.stage import LINK

from gapwatch.alerts.deployment_labels import labels_of
from gapwatch.alerts.incident_updates import settle
from gapwatch.incidents import alert_moves
from gapwatch.store.alerting import alert_settings, presence
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


def fall_silent(stage, robot="ur5e-1"):
    """A silence that pages, however it came about: for tests of who is told, not of who is missed."""
    stage.run("UPDATE presence SET silence = 'died' WHERE robot = :robot", robot=robot)
    with stage.database.transaction() as connection:
        rules = [rule for rule in alert_settings.rules(connection, 1) if rule.enabled]
        silent = next(rule for rule in rules if rule.kind == "no_data")
        evidence = {"robot": robot, "heard_at": "2026-11-16T09:14:00Z"}
        alert_moves.apply_input(connection, 1, 1, silent, f"robot:{robot}", "breach", evidence)
        settle(connection, labels_of(connection, 1, 1), rules, LINK)
