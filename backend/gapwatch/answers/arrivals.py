"""The arrivals of who fell silent: episodes an hour or a day around the silence, and how many were usual then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from gapwatch.store.alerting import incident_counts
from gapwatch.store.alerting.incident_list import changed_at
from gapwatch.store.core.database import Connection

HOUR, DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)
# What is usual is learned from so many weeks before the silence.
LEARNED = 4 * WEEK
# A short silence is drawn by the hour, after so much of the time before it; a longer one by the day.
BY_HOUR_UP_TO, HOURS_BEFORE, LONGEST_DRAWN = 4 * DAY, 3 * DAY, 60 * DAY
MOST_SENDERS = 3
OF_ONE_ROBOT = "robot:"


@dataclass(frozen=True)
class ArrivalStep:
    """Episodes of one hour or day; `usual`: of the same hour of the weeks before, None where there were none."""

    at: datetime
    n: int
    usual: float | None


@dataclass(frozen=True)
class DrawnArrivals:
    """`robot` is None for all robots of the deployment, which were last heard at `heard_at`."""

    robot: str | None
    heard_at: datetime
    tier: Literal["hour", "day"]
    steps: list[ArrivalStep]


def drawn_arrivals(
    connection: Connection, project_id: int, incident: Mapping[str, Any], now: datetime
) -> list[DrawnArrivals]:
    """The arrivals of everybody whose silence is in an incident, the deployment first; three at most."""
    silent = [alert for alert in incident["alerts"] if alert["kind"] == "no_data" and changed_at(alert)]
    silent.sort(key=lambda one: (one["series"].startswith(OF_ONE_ROBOT), one["state"] == "resolved", one["id"]))
    drawn = []
    for alert in silent[:MOST_SENDERS]:
        heard_at = changed_at(alert) or now
        is_robot = alert["series"].startswith(OF_ONE_ROBOT)
        robot = alert["series"].removeprefix(OF_ONE_ROBOT) if is_robot else None
        until = min(max(alert["resolved_at"] or now, heard_at), heard_at + LONGEST_DRAWN)
        since = _hour_of(heard_at) - LEARNED
        counts = incident_counts.arrivals_by_hour(
            connection, project_id, incident["deployment_id"], robot, since, until
        )
        drawn.append(arrivals_around(robot, counts, heard_at, until))
    return drawn


def arrivals_around(
    robot: str | None, counts: Mapping[datetime, int], heard_at: datetime, until: datetime
) -> DrawnArrivals:
    """Counts by hour as what is drawn of a silence from `heard_at` on."""
    tier: Literal["hour", "day"] = "hour" if until - heard_at <= BY_HOUR_UP_TO else "day"
    last = _hour_of(until)
    if tier == "hour":
        begin, pace = _hour_of(heard_at) - HOURS_BEFORE, HOUR
    else:
        begin, pace = _hour_of(heard_at).replace(hour=0) - LEARNED, DAY
    steps = []
    while begin <= last:
        hours = [begin + HOUR * number for number in range(pace // HOUR)]
        usual = [one for hour in hours if (one := _usual(hour, counts, heard_at)) is not None]
        steps.append(ArrivalStep(begin, sum(counts.get(h, 0) for h in hours), sum(usual) if usual else None))
        begin += pace
    return DrawnArrivals(robot, heard_at, tier, steps)


def _usual(hour: datetime, counts: Mapping[datetime, int], heard_at: datetime) -> float | None:
    """The mean of the same hour of the week, of weeks in which it was heard already and not silent yet."""
    first = min(counts, default=heard_at)
    same = [hour - WEEK * weeks for weeks in range(1, (hour - first) // WEEK + 1)]
    known = [counts.get(one, 0) for one in same if one + HOUR <= heard_at]
    return sum(known) / len(known) if known else None


def _hour_of(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
