"""What the clock drives: held notifications, repeats, silent robots, ranges, gates, and the heartbeat to the
outside.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from gapwatch.alerts.backfill_line import tell_backfills
from gapwatch.alerts.delivery_queue import enqueue_repeats
from gapwatch.alerts.incident_updates import settle_one
from gapwatch.alerts.range_watch import watch_ranges
from gapwatch.alerts.silence_watch import watch_silence
from gapwatch.channels.egress import Egress
from gapwatch.closing.closures import keep_settled
from gapwatch.closing.digests import tell_digests
from gapwatch.rollouts.watching import judge_rollouts
from gapwatch.store.alerting import incidents
from gapwatch.store.alerting.outbox import projects_with_digests
from gapwatch.store.alerting.watch_queue import now
from gapwatch.store.core import heartbeats
from gapwatch.store.core.database import Connection, Database
from gapwatch.store.read.fix_rows import projects_to_measure
from gapwatch.store.rollout.rollouts import projects_with_rollouts

log = structlog.get_logger()

SILENCE_EVERY_S = 15.0
HEARTBEAT_EVERY_S = 60.0
ROLLOUTS_EVERY_S = 15.0
RANGES_EVERY_S = 60.0
CLOSURES_EVERY_S = 600.0
DIGESTS_EVERY_S = 30.0


def keep_time(database: Database, link_base: str, heartbeat_url: str | None) -> None:
    """Run one round. All times are stored, so a restart changes none of them."""
    for place in database.run(incidents.incidents_to_notify):
        database.run(_settle(place.project_id, place.deployment_id, link_base))
    tell_backfills(database, link_base)
    database.run(enqueue_repeats)
    if database.run(_claim("silence", SILENCE_EVERY_S)):
        watch_silence(database, link_base)
    if database.run(_claim("rollouts", ROLLOUTS_EVERY_S)):
        for project_id in database.run(projects_with_rollouts):
            database.run(_judge(project_id, link_base))
    if database.run(_claim("ranges", RANGES_EVERY_S)):
        watch_ranges(database, link_base)
    if database.run(_claim("closures", CLOSURES_EVERY_S)):
        for project_id in database.run(projects_to_measure):
            database.run(_keep_closures(project_id))
    if database.run(_claim("digests", DIGESTS_EVERY_S)):
        for project_id in database.run(projects_with_digests):
            database.run(_tell_digests(project_id, link_base))
    if heartbeat_url is not None and database.run(_claim("dead man", HEARTBEAT_EVERY_S)):
        beat(heartbeat_url)


def beat(url: str) -> None:
    """Tell the outside that beat, broker, worker and database work together."""
    # The operator's own setting, not a user's: it may point anywhere.
    attempt = Egress(allow_private=True).post(url, b"", {})
    if attempt.outcome != "sent":
        log.warning("heartbeat not accepted", status=attempt.status, answer=attempt.answer[:200])


def _settle(project_id: int, deployment_id: int, link_base: str) -> Callable[[Connection], None]:
    return lambda connection: settle_one(connection, project_id, deployment_id, link_base)


def _judge(project_id: int, link_base: str) -> Callable[[Connection], int]:
    return lambda connection: judge_rollouts(connection, project_id, link_base)


def _keep_closures(project_id: int) -> Callable[[Connection], int]:
    return lambda connection: keep_settled(connection, project_id, now(connection))


def _tell_digests(project_id: int, link_base: str) -> Callable[[Connection], int]:
    return lambda connection: tell_digests(connection, project_id, now(connection), link_base)


def _claim(part: str, every_s: float) -> Callable[[Connection], bool]:
    def claim(connection: Connection) -> bool:
        return heartbeats.claim_round(connection, part, every_s)

    return claim
