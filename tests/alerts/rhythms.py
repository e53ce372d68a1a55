"""Robots that were heard for weeks, without waiting for them."""

from datetime import timedelta

from gapwatch.store.alerting import presence
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
