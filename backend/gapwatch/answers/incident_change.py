"""What is known of an incident's change: when it was, what may explain it, whom and what it concerns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gapwatch.answers.differing_contracts import contract_sentence
from gapwatch.statistics.change.fallen_robots import FallenRobots, RobotSides, fallen_robots
from gapwatch.store.alerting import events, incident_counts, watch_queue
from gapwatch.store.alerting.incident_counts import SeriesRow
from gapwatch.store.alerting.incident_list import changed_at, dating_alert
from gapwatch.store.core.database import Connection
from gapwatch.store.read.sides import Window
from gapwatch.watching.changes import (
    EPISODES_AROUND,
    AffectedRobots,
    ChangeSpan,
    LevelShare,
    change_span,
    rank_events,
    worst_slices,
)
from gapwatch.watching.series import OF_ROBOT, RATE_SERIES

# Episodes on either side of the change that are read for its figures, and the newest ones.
EPISODES_DRAWN, NEWEST_DRAWN = 500, 500
MOST_SERIES = 6
MOST_EVENTS = 8
SUCCESS, SILENCE = "success", "silence"


@dataclass(frozen=True)
class KnownChange:
    """`at` is when the detector counts from, in messages and everywhere; by the `n` episodes around it, the change
    lies between `earliest` and `latest` with 95 %. Without them, give or take an hour.
    """

    at: datetime
    earliest: datetime
    latest: datetime
    series: str
    n: int


@dataclass(frozen=True)
class IncidentChange:
    change: KnownChange
    events: list[dict[str, Any]]
    robots: FallenRobots
    slices: list[dict[str, Any]]
    failures: int
    computed_at: datetime
    # Whose contract differs from that of sim since the change, and in which field.
    contract: str | None = None


@dataclass(frozen=True)
class DrawnSeries:
    """An alerted series around its change, which is that of the incident where its alert knows no other."""

    series: str
    is_rate: bool
    values: list[tuple[datetime, float]]
    change: KnownChange
    # From when on the newest values are, if others between them and those next to the change were left out.
    newest_from: datetime | None


def incident_change(
    connection: Connection, project_id: int, incident: Mapping[str, Any]
) -> tuple[IncidentChange, list[DrawnSeries]]:
    """What is known now, and the alerted series around the change, that of the change first."""
    deployment_id, alerts = incident["deployment_id"], incident["alerts"]
    of_deployment = (connection, project_id, deployment_id)
    leading, estimate = _leading(alerts), incident["changed_at"]
    others = [alert["series"] for alert in alerts if drawn_name(alert["series"]) is not None]
    # Of a silence arrivals are drawn (`answers/arrivals.py`), and nothing else.
    is_silence = bool(alerts) and all(alert["kind"] == "no_data" for alert in alerts)
    wanted = [] if is_silence else _drawn([leading and leading["series"], *others])
    names = list(dict.fromkeys(wanted))[:MOST_SERIES]
    rows: list[SeriesRow] = []
    if names:
        rows = incident_counts.series_around(*of_deployment, names, estimate, EPISODES_DRAWN, NEWEST_DRAWN)
    values = [_values(rows, place) for place in range(len(names))]
    since = [at for at, _ in rows if at >= estimate]
    newest_from = since[EPISODES_DRAWN] if len(since) >= EPISODES_DRAWN + NEWEST_DRAWN else None
    first = names[0] if names else SILENCE
    span = _span(first, values[0] if values else [], estimate, leading)
    sides = [
        RobotSides(robot.robot, robot.before_successes, robot.before_n, robot.successes, robot.n)
        for robot in incident_counts.robots_around(*of_deployment, estimate)
    ]
    robots = fallen_robots(sides, _reference(alerts))
    levels = watch_queue.levels_since(*of_deployment, estimate)
    change = _known(first, span, estimate)
    of_series = {} if leading is None else {first: change}
    for alert in alerts:
        name, changed = drawn_name(alert["series"]), changed_at(alert)
        if name in names and name not in of_series and changed is not None:
            of_series[name] = _known(name, _span(name, values[names.index(name)], changed, alert), changed)
    series = [
        DrawnSeries(
            name,
            name.partition(OF_ROBOT)[0] in RATE_SERIES,
            values[place],
            of_series.get(name, change),
            newest_from,
        )
        for place, name in enumerate(names)
    ]
    computed_at = watch_queue.now(connection)
    found = IncidentChange(
        change=change,
        events=rank_events(
            events.events_near(*of_deployment, span),
            span,
            deployment=incident["deployment"],
            site=incident["site"],
            robots=AffectedRobots(robots.affected, robots.spared, robots.verdict),
            most=MOST_EVENTS,
        ),
        robots=robots,
        slices=worst_slices([LevelShare(one.condition, one.level, one.successes, one.n) for one in levels]),
        failures=incident_counts.failures_since(*of_deployment, estimate),
        computed_at=computed_at,
        contract=contract_sentence(
            connection, project_id, incident["deployment"], Window(estimate, None), computed_at
        ),
    )
    return found, series


def drawn_name(series: Any) -> str | None:
    """The series as it is drawn, without its stage; None for what has no line, such as a silent robot."""
    if not isinstance(series, str):
        return None
    if series.startswith(("signal:", "metric:")):
        return series
    name = series.partition("@")[0]
    if name not in (*RATE_SERIES, "reward", "duration"):
        return None
    return series if series.startswith(name + OF_ROBOT) else name


def _drawn(series: Sequence[Any]) -> list[str]:
    return [name for name in map(drawn_name, series) if name is not None] or [SUCCESS]


def _leading(alerts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The alert that dates the incident, if it is about a series that has values around its change."""
    leading = dating_alert(alerts)
    return leading if leading is not None and drawn_name(leading["series"]) is not None else None


def _span(
    series: str,
    values: Sequence[tuple[datetime, float]],
    estimate: datetime,
    alert: Mapping[str, Any] | None,
) -> ChangeSpan:
    if alert is None:
        return change_span(estimate, [], series, {})
    before = [row for row in values if row[0] < estimate][-EPISODES_AROUND:]
    after = [row for row in values if row[0] >= estimate][:EPISODES_AROUND]
    return change_span(estimate, before + after, series, alert["evidence"])


def _known(series: str, span: ChangeSpan, at: datetime) -> KnownChange:
    return KnownChange(at, min(span.earliest, at), max(span.latest, at), series, span.n)


def _values(rows: Sequence[SeriesRow], place: int) -> list[tuple[datetime, float]]:
    return [(at, value) for at, numbers in rows if (value := numbers[place]) is not None]


def _reference(alerts: Sequence[Mapping[str, Any]]) -> float | None:
    """What success was, by the alert that found it lower."""
    for alert in alerts:
        reference = alert["evidence"].get("reference")
        value = reference.get("value") if isinstance(reference, Mapping) else None
        if alert["series"].partition("@")[0] == SUCCESS and isinstance(value, int | float) and 0 <= value <= 1:
            return float(value)
    return None
