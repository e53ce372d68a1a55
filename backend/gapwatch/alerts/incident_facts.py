"""What a notification tells beside the alarm: the leading category, the worst slices, what changed before, which
robots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from gapwatch.alerts.categories import leading_category
from gapwatch.alerts.deployment_labels import DeploymentLabels
from gapwatch.answers.robots_sites import compare_units, odd_sentence
from gapwatch.statistics.change.fallen_robots import RobotSides
from gapwatch.store.alerting import alert_settings, events, incident_counts, watch_queue
from gapwatch.store.core.database import Connection
from gapwatch.watching.alert_changes import OpenAlert
from gapwatch.watching.changes import (
    EPISODES_AROUND,
    ChangeSpan,
    LevelShare,
    affected_robots,
    change_span,
    rank_events,
    worst_slices,
)
from gapwatch.watching.notification import IncidentFacts
from gapwatch.watching.phrases import AlertReason
from gapwatch.watching.reason_kinds import ReasonKind


@dataclass(frozen=True)
class IncidentNews:
    """What of an incident is news, as headlines by kind of reason; what people know, and who took that on."""

    headlines: Mapping[ReasonKind, str]
    known: Sequence[ReasonKind]
    acknowledged_by: str | None


# Series whose change is a change of success; only for these do slices and robots say something.
OF_SUCCESS = ("success", "success@")


def gather(
    connection: Connection,
    labels: DeploymentLabels,
    alerts: Sequence[OpenAlert],
    link: str,
    now: datetime,
    news: IncidentNews,
) -> IncidentFacts:
    reasons = [
        AlertReason(
            alert.rule,
            alert.kind,
            alert.severity,
            alert.series,
            alert.evidence,
            alert.opened_at,
            alert.regressed,
            alert.escalating,
        )
        for alert in alerts
    ]
    known = alert_settings.runbooks(connection, labels.project_id)
    since = min((at for at in map(_change_at, alerts) if at is not None), default=None)
    base = {
        "deployment": labels.slug,
        "policy": labels.policy,
        "version": labels.version,
        "task": labels.task,
        "site": labels.site,
        "stage": labels.stage,
        "link": link,
        "reasons": reasons,
        "runbooks": [known[name] for name in dict.fromkeys(alert.rule for alert in alerts) if name in known],
        "headlines": news.headlines,
        "known": news.known,
        "acknowledged_by": news.acknowledged_by,
    }
    if since is None:
        return IncidentFacts(**base)  # type: ignore[arg-type]
    of_deployment = (connection, labels.project_id, labels.deployment_id)
    about_success = [alert for alert in alerts if alert.series.startswith(OF_SUCCESS)]
    robots = affected_robots([], None)
    slices = []
    odd_one = None
    if about_success:
        reference = (about_success[0].evidence.get("reference") or {}).get("value")
        around = incident_counts.robots_around(*of_deployment, since)
        sides = [RobotSides(r.robot, r.before_successes, r.before_n, r.successes, r.n) for r in around]
        robots = affected_robots(sides, reference)
        odd_one = odd_sentence(compare_units({r.robot: (r.successes, r.n) for r in around}, "robot"), None)
        levels = watch_queue.levels_since(*of_deployment, since)
        slices = worst_slices(
            [LevelShare(level.condition, level.level, level.successes, level.n) for level in levels]
        )
    leading = min(about_success or alerts, key=lambda alert: _change_at(alert) or now)
    change = _span(connection, labels, leading, since)
    near = events.events_near(*of_deployment, change)
    category, contract = leading_category(connection, labels, since, now) if about_success else (None, None)
    return IncidentFacts(
        **base,  # type: ignore[arg-type]
        category=category,
        contract=contract,
        slices=slices,
        changes=rank_events(near, change, deployment=labels.slug, site=labels.site, robots=robots),
        robots=robots,
        odd_one=odd_one,
    )


def _span(connection: Connection, labels: DeploymentLabels, alert: OpenAlert, since: datetime) -> ChangeSpan:
    """From when to when the change may lie, by the values of the series around it."""
    estimate = _change_at(alert) or since
    rows = incident_counts.series_around(
        connection, labels.project_id, labels.deployment_id, [alert.series], estimate, EPISODES_AROUND
    )
    values = [(at, value) for at, (value,) in rows if value is not None]
    return change_span(estimate, values, alert.series, alert.evidence)


def _change_at(alert: OpenAlert) -> datetime | None:
    at = (alert.evidence.get("change_point") or {}).get("at")
    return None if at is None else datetime.fromisoformat(at)
