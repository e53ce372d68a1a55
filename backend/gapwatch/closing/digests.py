"""The digest of the week to channels that ask for it: once a week each, through the outbox."""

from __future__ import annotations

from datetime import datetime

from gapwatch.closing.week import answer_week
from gapwatch.closing.week_words import week_headline, week_lines, week_name
from gapwatch.store.alerting import alert_settings, outbox
from gapwatch.store.core.database import Connection
from gapwatch.store.rollout.rollouts import project_slug


def tell_digests(connection: Connection, project_id: int, now: datetime, link_base: str) -> int:
    """Put what is due into the outbox; return how many. Run twice, or beside another, it tells once."""
    slug = project_slug(connection, project_id)
    due = []
    for target in alert_settings.targets(connection, project_id):
        day = None if target.routing.digest is None else target.routing.digest.due_day(now)
        if day is not None:
            key = f"gapwatch/{slug}/digest-{day.isoformat()}"
            if not outbox.is_enqueued(connection, project_id, target.id, key):
                due.append((target.id, key))
    if not due:
        return 0
    week = answer_week(connection, project_id, now)
    content = {
        "headline": f"{slug}, {week_name(week)}: {week_headline(week)}",
        "lines": week_lines(week),
        "severity": "info",
        "reasons": [],
        "week": {
            "since": week.since.isoformat(),
            "until": week.until.isoformat(),
            "moved": [{"deployment": one.deployment, "points": one.points, "interval": one.interval}
                      for one in week.moved],
            "incidents": {
                "opened": week.incidents.opened,
                "closed": week.incidents.closed,
                "open": week.incidents.open,
                "unowned": week.incidents.unowned,
            },
        },
        "link": f"{link_base}/week",
    }  # fmt: skip
    for channel_id, key in due:
        outbox.enqueue(connection, project_id, channel_id, "digest", content, reason="digest", key=key)
    return len(due)
