"""Ranges watched by the clock: has what was measured left what the simulator was randomised over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gapwatch.alerts.deployment_labels import DeploymentLabels, labels_of
from gapwatch.alerts.incident_updates import settle
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.needs import Need
from gapwatch.answers.question import Question
from gapwatch.answers.ranges import declared_range, parameters_of
from gapwatch.answers.subjects import deployment_subject
from gapwatch.incidents import alert_moves
from gapwatch.statistics.ranges.parameter_ranges import (
    AbsoluteRange,
    MeasuredValue,
    is_surely_outside,
    sure_median,
)
from gapwatch.store.alerting import alert_settings, alert_transitions, range_watches, watch_queue
from gapwatch.store.core.database import Connection, Database
from gapwatch.store.read.range_measurements import RangesRead
from gapwatch.watching.kinds.range import RangeParams
from gapwatch.watching.rules import Rule

SERIES = "range:"


def watch_ranges(database: Database, link_base: str) -> int:
    """Judge every deployment of a project with ranges or identifications; return how many parameters are out."""
    return sum(
        database.run(_step(project_id, deployment_id, link_base))
        for project_id, deployment_id in database.run(range_watches.deployments_to_judge)
    )


def _step(project_id: int, deployment_id: int, link_base: str) -> Callable[[Connection], int]:
    def step(connection: Connection) -> int:
        watch_queue.lock_deployment(connection, project_id, deployment_id)
        labels = labels_of(connection, project_id, deployment_id)
        rules = [rule for rule in alert_settings.rules(connection, project_id) if rule.enabled]
        mine = [rule for rule in rules if rule.kind == "range" and rule.match.fits({**labels.words, "rule": None})]
        if not mine:
            return 0
        read = _read(connection, labels)
        out = sum(_judge(connection, labels, rule, read) for rule in mine)
        settle(connection, labels, rules, link_base)
        return out

    return step


def _read(connection: Connection, labels: DeploymentLabels) -> RangesRead:
    subject = deployment_subject(connection, labels.project_id, labels.slug)
    question = Question(watch_queue.now(connection))
    return load_sides(connection, labels.project_id, subject, question, Need.RANGES).ranges


@dataclass(frozen=True)
class LeftRange:
    """A parameter whose newest measurement at some place lies beyond its range, interval and all."""

    parameter: str
    evidence: dict[str, Any]


def left_ranges(read: RangesRead, params: RangeParams) -> list[LeftRange]:
    """Identifications count by their interval; of signals and conditions the median of the newest episodes."""
    declared = {str(one["name"]): one for one in read.parameters}
    found = []
    for answer in parameters_of(read):
        parameter = declared.get(answer.name)
        absolute = None if parameter is None else declared_range(parameter)
        if parameter is None or absolute is None or absolute.width <= 0:
            continue
        if params.parameter and answer.name not in params.parameter:
            continue
        measured = [
            (MeasuredValue(one.value, *(one.interval or (None, None))), one.robot or one.site, one.source)
            for one in answer.measured
            if one.source == "identification"
        ]
        mapped = tuple((answer.mapped_to or "").split(" ", 1))
        for series in read.measured:
            if series.side == "real" and (series.kind, series.name) == mapped:
                median = sure_median(series.values[: params.newest])
                if median is not None:
                    measured.append((median, series.robot or series.site, series.kind))
        out = [one for one in measured if is_surely_outside(absolute, one[0])]
        if out:
            found.append(LeftRange(answer.name, _evidence(absolute, answer.unit, max(out, key=_beyond(absolute)))))
    return found


def _beyond(absolute: AbsoluteRange) -> Callable[[tuple[MeasuredValue, str | None, str]], float]:
    return lambda one: max(absolute.low - one[0].value, one[0].value - absolute.high)


def _evidence(
    absolute: AbsoluteRange, unit: str | None, measured: tuple[MeasuredValue, str | None, str]
) -> dict[str, Any]:
    value, place, source = measured
    return {
        "value": value.value,
        "interval": list(value.ends),
        "low": absolute.low,
        "high": absolute.high,
        "unit": unit,
        "place": place,
        "source": source,
    }


def _judge(connection: Connection, labels: DeploymentLabels, rule: Rule, read: RangesRead) -> int:
    assert isinstance(rule.params, RangeParams)  # noqa: S101 - chosen by its kind
    project_id, deployment_id = labels.project_id, labels.deployment_id
    left = {SERIES + one.parameter: one for one in left_ranges(read, rule.params)}
    open_alerts = alert_transitions.open_alerts(connection, project_id, deployment_id)
    alarmed = {alert.series for alert in open_alerts if alert.rule == rule.name}
    for series in sorted(left.keys() - alarmed):
        evidence = left[series].evidence
        alert_moves.apply_input(connection, project_id, deployment_id, rule, series, "breach", evidence)
    for series in sorted(alarmed - left.keys() - set(_still_outside(read))):
        note = {"note": "measured within its range again"}
        alert_moves.apply_input(connection, project_id, deployment_id, rule, series, "recovery", note)
    return len(left)


def _still_outside(read: RangesRead) -> Sequence[str]:
    """What is outside by its value but not for certain keeps its alert: it goes when the value is within."""
    return [SERIES + one.name for one in parameters_of(read) if one.verdict == "outside"]
