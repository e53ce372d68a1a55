"""Was the simulator randomised around what reality is: declared ranges beside what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Any

from gapwatch.answers.answer import Answer, Interval
from gapwatch.answers.answer_kind import AnswerKind, AnswerTable, TableRow
from gapwatch.answers.needs import Need
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields
from gapwatch.statistics.ranges.parameter_ranges import (
    EDGE,
    FAR,
    RANGE_VERDICTS,
    AbsoluteRange,
    MeasuredValue,
    absolute_range,
    apart,
    judge_range,
    sim_spread_of,
    spread_of,
)
from gapwatch.store.read.range_measurements import IdentifiedValues, MeasuredSeries, RangesRead

NEEDS = ANSWER_FIELDS | Need.RANGES
MOST_FINDINGS = 20
METHOD = (
    f"ranges in the parameter's own unit; edge within {100 * EDGE:.0f} % of the width of an end, far inside where "
    f"the range is more than {FAR:.0f} times what was measured; of signals and conditions the median and the "
    "middle 90 % of the newest 2000 episodes of each side, by robot and site"
)


@dataclass(frozen=True)
class RangeMeasurement:
    """What was measured at one place. `n` episodes, or None for an identification, which is dated."""

    source: str
    site: str | None
    robot: str | None
    value: float
    interval: Interval | None
    n: int | None
    at: datetime
    title: str | None
    verdict: str


@dataclass(frozen=True)
class ParameterAnswer:
    """One parameter. `low` and `high` are absolute; `declared` is the range as it was sent.

    `sim_spread`: how far the values of sim's own episodes spread, where the parameter is mapped to one.
    """

    name: str
    unit: str | None
    verdict: str
    low: float | None
    high: float | None
    nominal: float | None
    declared: Mapping[str, Any] | None
    mapped_to: str | None
    sim_spread: float | None
    measured: tuple[RangeMeasurement, ...]
    reason: str | None = None


@dataclass(frozen=True)
class IdentificationConflict:
    """Two identifications of a parameter whose intervals do not overlap, the older one first."""

    parameter: str
    first: RangeMeasurement
    second: RangeMeasurement
    words: str


@dataclass(frozen=True, kw_only=True)
class RangesAnswer(Answer):
    """`counts`: parameters by verdict; the gravest come first in `parameters`."""

    declared_at: datetime | None
    parameters: tuple[ParameterAnswer, ...]
    findings: tuple[IdentificationConflict, ...]
    counts: Mapping[str, int]
    method: str


def answer_ranges(sides: Sides) -> RangesAnswer:
    read = sides.ranges
    parameters = sorted(parameters_of(read), key=lambda one: (RANGE_VERDICTS.index(one.verdict), one.name))
    counts: dict[str, int] = {}
    for one in parameters:
        counts[one.verdict] = counts.get(one.verdict, 0) + 1
    return RangesAnswer(
        **answer_fields(sides) | {"reason": _reason(sides, read)},
        declared_at=read.declared_at,
        parameters=tuple(parameters),
        findings=tuple(findings_of(read))[:MOST_FINDINGS],
        counts=counts,
        method=METHOD,
    )


def parameters_of(read: RangesRead) -> list[ParameterAnswer]:
    """Every declared parameter, and every one that was identified and not declared."""
    declared = {str(one["name"]): one for one in read.parameters}
    identified = dict.fromkeys(name for one in read.identified for name in one.values)
    return [_parameter(name, declared.get(name), read) for name in dict.fromkeys([*declared, *identified])]


def findings_of(read: RangesRead) -> Iterable[IdentificationConflict]:
    names = dict.fromkeys(name for one in read.identified for name in one.values)
    for name in names:
        # Oldest first, so that the words follow time.
        every = [one for one in reversed(read.identified) if name in one.values]
        for first, second in combinations(every[-6:], 2):
            if apart(_value_of(first.values[name]), _value_of(second.values[name])):
                before, after = (_identification(one, name, None) for one in (first, second))
                yield IdentificationConflict(name, before, after, _conflict_words(name, before, after))


def declared_range(parameter: Mapping[str, Any]) -> AbsoluteRange | None:
    return absolute_range(
        parameter["low"],
        parameter["high"],
        parameter["distribution"],
        parameter["operation"],
        parameter.get("nominal"),
    )


def mapped_names(parameters: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The signals and conditions that parameters are measured by, as (kind, name)."""
    return [
        (kind, str(parameter[kind]))
        for parameter in parameters
        for kind in ("signal", "condition")
        if parameter.get(kind)
    ]


def _parameter(name: str, declared: Mapping[str, Any] | None, read: RangesRead) -> ParameterAnswer:
    absolute = None if declared is None else declared_range(declared)
    unit = None if declared is None else declared.get("unit")
    mapped = next(iter(mapped_names([declared])), None) if declared is not None else None
    identified, other_unit = _identified(name, unit, absolute, read.identified)
    measured = [*identified, *_measured(mapped, absolute, read.measured)]
    sim_values = [
        value
        for one in read.measured
        if one.side == "sim" and (one.kind, one.name) == mapped
        for value in one.values
    ]
    sim_spread = sim_spread_of(sim_values) if mapped else None
    reason = None
    if declared is not None and absolute is None:
        reason = f"The range is relative ({declared['operation']}) and the nominal is not known: send it."
        verdict = "not measured"
    else:
        verdict = judge_range(absolute, [_measured_value(one) for one in measured], sim_spread)
        if other_unit:
            reason = f"An identification is in {other_unit}, the range in {unit}; it was left out."
        elif verdict == "not measured":
            reason = "Nothing was identified, and no signal or condition of real episodes measures it."
    return ParameterAnswer(
        name,
        unit,
        verdict,
        None if absolute is None else absolute.low,
        None if absolute is None else absolute.high,
        None if declared is None else declared.get("nominal"),
        None if declared is None else {k: declared[k] for k in ("low", "high", "distribution", "operation")},
        None if mapped is None else " ".join(mapped),
        sim_spread,
        tuple(measured),
        reason,
    )


def _identified(
    name: str, unit: str | None, absolute: AbsoluteRange | None, events: Sequence[IdentifiedValues]
) -> tuple[list[RangeMeasurement], str | None]:
    """The newest identification of each place, and a unit that is not that of the range."""
    found: dict[tuple[str | None, tuple[str, ...]], RangeMeasurement] = {}
    other_unit = None
    for one in events:
        if name not in one.values or (one.site, one.robots) in found:
            continue
        own = one.values[name].get("unit")
        if own and unit and own != unit:
            other_unit = str(own)
            continue
        found[one.site, one.robots] = _identification(one, name, absolute)
    return list(found.values()), other_unit


def _identification(one: IdentifiedValues, name: str, absolute: AbsoluteRange | None) -> RangeMeasurement:
    value = _value_of(one.values[name])
    interval = None if value.low is None or value.high is None else (value.low, value.high)
    verdict = judge_range(absolute, [value])
    robots = ", ".join(one.robots) or None
    return RangeMeasurement(
        "identification", one.site, robots, value.value, interval, None, one.at, one.title, verdict
    )


def _measured(
    mapped: tuple[str, str] | None, absolute: AbsoluteRange | None, series: Sequence[MeasuredSeries]
) -> list[RangeMeasurement]:
    found = []
    for one in series:
        if one.side != "real" or (one.kind, one.name) != mapped:
            continue
        value = spread_of(one.values)
        if value is not None and value.low is not None and value.high is not None:
            verdict = judge_range(absolute, [value])
            interval = (value.low, value.high)
            found.append(
                RangeMeasurement(
                    one.kind,
                    one.site,
                    one.robot,
                    value.value,
                    interval,
                    len(one.values),
                    one.newest_at,
                    None,
                    verdict,
                )
            )
    return found


def _value_of(written: Mapping[str, Any]) -> MeasuredValue:
    low, high = written.get("interval") or (None, None)
    return MeasuredValue(float(written["value"]), low, high)


def _measured_value(one: RangeMeasurement) -> MeasuredValue:
    return MeasuredValue(one.value, *(one.interval or (None, None)))


def _place(one: RangeMeasurement) -> str:
    return ", ".join(word for word in (one.robot, one.site) if word)


def _conflict_words(name: str, first: RangeMeasurement, second: RangeMeasurement) -> str:
    before, after = (
        f"{one.value:g} [{one.interval[0]:g}, {one.interval[1]:g}]" if one.interval else f"{one.value:g}"
        for one in (first, second)
    )
    if _place(first) == _place(second):
        return f"{name} was identified as {before} and then as {after}: it moved, or one of them is wrong."
    at_first, at_second = (_place(one) or "elsewhere" for one in (first, second))
    return f"{name} is {before} at {at_first} and {after} at {at_second}: no single value is right for both."


def _reason(sides: Sides, read: RangesRead) -> str | None:
    if sides.baseline is None:
        return "No simulator has episodes of this policy, so there are no ranges to hold against."
    if not read.parameters:
        simulator = f"{sides.baseline.simulator} {sides.baseline.version}"
        return f"No ranges were declared for {simulator}; send them, or import the env.yaml of the training run."
    return None


def table_rows(answer: RangesAnswer) -> list[TableRow]:
    head = [
        "parameter",
        "unit",
        "verdict",
        "low",
        "high",
        "source",
        "site",
        "robot",
        "value",
        "value_low",
        "value_high",
    ]
    rows: list[TableRow] = []
    for one in answer.parameters:
        first = [one.name, one.unit, one.verdict, one.low, one.high]
        for measured in one.measured:
            ends = measured.interval or (None, None)
            rows.append([*first, measured.source, measured.site, measured.robot, measured.value, *ends])
        if not one.measured:
            rows.append([*first, *[None] * 6])
    return [head, *rows]


KIND = AnswerKind(
    name="ranges",
    answer_type=RangesAnswer,
    answer=answer_ranges,
    needs=NEEDS,
    summary="Was it randomised around reality",
    gives="A verdict per parameter of the simulator.",
    description=(
        "The randomisation ranges of the baseline's simulator beside what was measured: identified values (events "
        "with `values`) and the signals or conditions that parameters are mapped to, by site and robot.\n\n"
        "Verdicts: outside, edge, inside, far inside, declared, not applied (sim's own episodes show no spread), "
        "not randomised, not measured. `findings` are identifications that do not overlap."
    ),
    table=AnswerTable("ranges", table_rows),
)
