"""What a notification tells beside the alarm: the leading category, the worst slices, what changed before, which
robots.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gapwatch.alerts.categories import leading_category
from gapwatch.alerts.deployment_labels import DeploymentLabels
from gapwatch.store.alerting import events, watch_queue
from gapwatch.store.alerting.alert_transitions import OpenAlert
from gapwatch.store.core.database import Connection
from gapwatch.watching.changes import LevelShare, RobotShare, affected_robots, rank_events, worst_slices
from gapwatch.watching.notification import IncidentFacts
from gapwatch.watching.phrases import AlertReason

# Series whose change is a change of success; only for these do slices and robots say something.
OF_SUCCESS = ("success", "success@")


def gather(
    connection: Connection, place: DeploymentLabels, alerts: Sequence[OpenAlert], link: str, now: datetime
) -> IncidentFacts:
    reasons = [
        AlertReason(
            one.rule,
            one.kind,
            one.severity,
            one.series,
            one.evidence,
            one.opened_at,
            one.regressed,
            one.escalating,
        )
        for one in alerts
    ]
    since = min((at for at in map(_change_at, alerts) if at is not None), default=None)
    base = {
        "deployment": place.slug,
        "policy": place.policy,
        "version": place.version,
        "task": place.task,
        "site": place.site,
        "stage": place.stage,
        "link": link,
        "reasons": reasons,
    }
    if since is None:
        return IncidentFacts(**base)  # type: ignore[arg-type]
    of_place = (connection, place.project_id, place.deployment_id)
    about_success = [one for one in alerts if one.series.startswith(OF_SUCCESS)]
    robots = affected_robots([], 1.0)
    slices = []
    if about_success:
        reference = (about_success[0].evidence.get("reference") or {}).get("value") or 1.0
        shares = [RobotShare(r.robot, r.successes, r.n) for r in watch_queue.robots_since(*of_place, since)]
        robots = affected_robots(shares, reference)
        levels = watch_queue.levels_since(*of_place, since)
        slices = worst_slices([LevelShare(one.condition, one.level, one.successes, one.n) for one in levels])
    near = events.events_near(*of_place, since)
    return IncidentFacts(
        **base,  # type: ignore[arg-type]
        category=leading_category(connection, place, since, now) if about_success else None,
        slices=slices,
        changes=rank_events(near, since, deployment=place.slug, site=place.site, robots=robots),
        robots=robots,
    )


def _change_at(alert: OpenAlert) -> datetime | None:
    at = alert.evidence.get("change_point", {}).get("at")
    return None if at is None else datetime.fromisoformat(at)
