"""Episodes of one deployment through every rule: what came true, at which episode, on what evidence.

The same code watches live, replays for a preview, and is tested; it depends on the episodes and their order alone,
not on how they were cut into batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast

from gapwatch.statistics.drift import Crossing
from gapwatch.statistics.multiplicity import e_benjamini_hochberg
from gapwatch.statistics.rates import wilson
from gapwatch.watching.detectors import Detector, RankDetector, SimDetector
from gapwatch.watching.making import UNITS, Unit, make_detector
from gapwatch.watching.rules import LEVELS, DriftParams, Rule
from gapwatch.watching.series import Seen

# Series that are judged together are so after every twentieth episode of the deployment, never in between.
JUDGED_EVERY = 20
SimCounts = Callable[[int], tuple[int, int]]
"""Sim successes and n of a policy version at the deployment's task."""


@dataclass
class Stored:
    """A detector as it lies in the database."""

    params: dict[str, Any]
    state: dict[str, Any]
    restart: bool = False


@dataclass(frozen=True)
class Found:
    """Something came true for a series under a rule. `index` is the place of the deciding episode in the batch."""

    rule: Rule
    series: str
    input: Literal["suspect", "breach", "recovery"]
    index: int
    evidence: dict[str, Any]


@dataclass
class _Watched:
    """A detector at work, with the times of the episodes it may still have to name."""

    rule: Rule
    unit: Unit
    detector: Detector
    marks: dict[str, list[str]]
    first: list[str] | None
    pending_until: int | None = None
    pending_evidence: dict[str, Any] | None = None
    policy_id: int | None = None
    # Values with time and id that wait for their block to be full.
    waiting: list[list[Any]] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)


def watch_episodes(
    rules: Sequence[Rule],
    stored: Mapping[tuple[str, str], Stored],
    episodes: Sequence[Seen],
    *,
    count: int,
    sim_counts: SimCounts,
    seed: int = 0,
) -> tuple[list[Found], dict[tuple[str, str], Stored]]:
    """What came true in these episodes, in their order, and the detectors after them.

    `count` is how many episodes of the deployment were watched before. Detectors whose parameters changed begin
    anew; if one was alarmed, its alert is over with it.
    """
    watched: dict[tuple[str, str], _Watched] = {}
    found: list[Found] = []
    for rule in rules:
        together = _is_judged_together(rule)
        for unit in UNITS[rule.kind](rule, episodes, stored):
            key = (rule.name, unit.series)
            watched[key] = one = _open(rule, unit, stored.get(key), found, seed)
            if not together:
                _feed(one, episodes, count, sim_counts)
        if together:
            group = [one for (name, _), one in watched.items() if name == rule.name]
            _feed_together(cast(DriftParams, rule.params), group, episodes, count)
    for one in watched.values():
        found += one.found
    order = {rule.name: place for place, rule in enumerate(rules)}
    found.sort(key=lambda f: (f.index, order[f.rule.name], f.series))
    return found, {key: _close(one) for key, one in watched.items()}


def _open(rule: Rule, unit: Unit, stored: Stored | None, found: list[Found], seed: int) -> _Watched:
    params = _stored_params(rule)
    if stored is not None and stored.params != params:
        if stored.state.get("alarmed"):
            found.append(Found(rule, unit.series, "recovery", 0, {"note": "the rule was changed"}))
        stored = None
    state = {} if stored is None else stored.state
    detector = make_detector(rule, unit, state.get("detector"), seed)
    if stored is not None and stored.restart:
        detector.restart()
        state = state | {"pending_until": None}
    return _Watched(
        rule,
        unit,
        detector,
        dict(state.get("marks", {})),
        state.get("first"),
        state.get("pending_until"),
        state.get("pending_evidence"),
        state.get("policy_id"),
        list(state.get("waiting", [])),
    )


def _close(one: _Watched) -> Stored:
    state = {
        "detector": one.detector.dump(),
        "marks": one.marks,
        "first": one.first,
        "pending_until": one.pending_until,
        "pending_evidence": one.pending_evidence,
        "policy_id": one.policy_id,
        "waiting": one.waiting,
        "alarmed": one.detector.is_alarmed,
    }
    return Stored(_stored_params(one.rule), state)


def _stored_params(rule: Rule) -> dict[str, Any]:
    return {"kind": rule.kind, **rule.params.model_dump(mode="json", exclude={"flap_minutes"})}


def _feed(one: _Watched, block: Sequence[Seen], count: int, sim_counts: SimCounts) -> None:
    values: list[float] = []
    places: list[int] = []
    for place, episode in enumerate(block):
        if one.unit.left is not None and one.unit.left(episode):
            # The stage that was not kept was left: there is nothing more to recover from.
            _run(one, block, values, places)
            values, places = [], []
            if one.detector.is_alarmed:
                one.detector.restart()
                note = {"note": "the stage was left"}
                one.found.append(Found(one.rule, one.unit.series, "recovery", place, note))
        value = one.unit.value(episode)
        if value is None:
            continue
        if isinstance(one.detector, SimDetector) and episode.policy_id != one.policy_id:
            _run(one, block, values, places)
            values, places = [], []
            if one.policy_id is not None:
                one.detector.forget_processes()
            one.policy_id, one.detector.sim = episode.policy_id, sim_counts(episode.policy_id)
        values.append(value)
        places.append(place)
    if isinstance(one.detector, SimDetector) and one.policy_id is not None:
        one.detector.sim = sim_counts(one.policy_id)
    _run(one, block, values, places)
    _hold(one, len(block), count)


def _run(one: _Watched, block: Sequence[Seen], values: list[float], places: list[int]) -> None:
    if not values:
        return
    first_number = one.detector.n

    def mark_of(number: int) -> list[str] | None:
        if number < first_number:
            return one.marks.get(str(number))
        episode = block[places[min(number - first_number, len(places) - 1)]]
        return [_time(episode.started_at), episode.id]

    if one.first is None:
        one.first = mark_of(first_number)
    for crossing in one.detector.update(values):
        place = places[crossing.index]
        evidence = _evidence(one, crossing, block[place], mark_of)
        given: Literal["breach", "recovery"] = crossing.kind
        one.found.append(Found(one.rule, one.unit.series, given, place, evidence))
    _keep_marks(one, mark_of)


def _keep_marks(one: _Watched, mark_of: Callable[[int], list[str] | None]) -> None:
    """Only what the detector may still name is kept."""
    kept = {str(number): mark_of(number) for number in set(one.detector.candidates()) if number < one.detector.n}
    one.marks = {number: mark for number, mark in kept.items() if mark is not None}


def _hold(one: _Watched, size: int, count: int) -> None:
    """A breach that must last is a suspect until enough episodes of the deployment have passed."""
    wait = one.rule.params.for_episodes
    if not wait:
        return
    kept: list[Found] = []
    for f in one.found:
        _let_go(one, kept, until=f.index, offset_count=count)
        if f.input == "breach":
            one.pending_until, one.pending_evidence = count + f.index + wait, f.evidence
            kept.append(Found(f.rule, f.series, "suspect", f.index, f.evidence))
        else:
            one.pending_until = one.pending_evidence = None
            kept.append(f)
    _let_go(one, kept, until=size - 1, offset_count=count)
    one.found = kept


def _let_go(one: _Watched, kept: list[Found], *, until: int, offset_count: int) -> None:
    if one.pending_until is not None and one.pending_until <= offset_count + until:
        index = max(0, one.pending_until - offset_count)
        kept.append(Found(one.rule, one.unit.series, "breach", index, one.pending_evidence or {}))
        one.pending_until = one.pending_evidence = None


def _is_judged_together(rule: Rule) -> bool:
    params = rule.params
    return isinstance(params, DriftParams) and params.series in {"signals", "metrics"} and params.method != "cusum"


def _feed_together(params: DriftParams, group: Sequence[_Watched], episodes: Sequence[Seen], count: int) -> None:
    """Series that share one promise wait for each other: whole blocks of the deployment's episodes at a time."""
    at = 0
    while at < len(episodes):
        end = min(len(episodes), at + JUDGED_EVERY - (count + at) % JUDGED_EVERY)
        block = episodes[at:end]
        if (count + end) % JUDGED_EVERY == 0:
            for one in group:
                _take_block(one, block, end - 1)
            _judge_together(params, group, end - 1, block[-1])
        else:
            for one in group:
                for episode in block:
                    value = one.unit.value(episode)
                    if value is not None:
                        one.waiting.append([value, _time(episode.started_at), episode.id])
        at = end
    for one in group:
        _hold(one, len(episodes), count)


def _take_block(one: _Watched, block: Sequence[Seen], index: int) -> None:
    """What waited and the rest of its block, at once."""
    detector, waiting, value_of = cast(RankDetector, one.detector), one.waiting, one.unit.value
    values, sources = [value for value, _, _ in waiting], []
    for episode in block:
        value = value_of(episode)
        if value is not None:
            values.append(value)
            sources.append(episode)
    if not values:
        return
    first_number = detector.n

    def mark_of(number: int) -> list[str] | None:
        place = number - first_number
        if place < 0:
            return one.marks.get(str(number))
        if place < len(waiting):
            return list(waiting[place][1:])
        episode = sources[place - len(waiting)]
        return [_time(episode.started_at), episode.id]

    if one.first is None:
        one.first = mark_of(first_number)
    for _ in detector.update_block(values):
        one.found.append(Found(one.rule, one.unit.series, "recovery", index, {}))
    _keep_marks(one, mark_of)
    one.waiting = []


def _judge_together(params: DriftParams, group: Sequence[_Watched], index: int, episode: Seen) -> None:
    """e-BH over the evidence of the series, in units of the run length."""
    judged = [(one, cast(RankDetector, one.detector)) for one in group]
    judged = [(one, detector) for one, detector in judged if detector.has_learned]
    if not judged:
        return
    stand = e_benjamini_hochberg([detector.strength / params.arl for _, detector in judged], level=1.0)
    for place in stand:
        one, detector = judged[place]
        crossing = detector.declare(0, params.arl * len(judged) / len(stand))
        evidence = _evidence(one, crossing, episode, _marks_of(one))
        evidence["series_judged"] = len(judged)
        one.found.append(Found(one.rule, one.unit.series, "breach", index, evidence))


def _marks_of(one: _Watched) -> Callable[[int], list[str] | None]:
    return lambda number: one.marks.get(str(number))


def _evidence(
    one: _Watched, crossing: Crossing, episode: Seen, mark_of: Callable[[int], list[str] | None]
) -> dict[str, Any]:
    change = mark_of(crossing.change)
    params = one.rule.params
    promise = {name: getattr(params, name) for name in ("arl", "alpha") if hasattr(params, name)}
    evidence: dict[str, Any] = {
        "series": one.unit.series,
        "statistic": crossing.statistic,
        "e_value": crossing.value,
        "threshold": crossing.threshold,
        **promise,
        **crossing.facts,
        "decided_by": {"episode": episode.id, "at": _time(episode.started_at)},
    }
    since = crossing.facts.get("since", {})
    if one.unit.series.partition("@")[0] in LEVELS and since.get("value") is not None:
        low, high = wilson(since["value"] * since["n"], since["n"])
        evidence["since"] = since | {"interval": [low, high]}
    if change is not None and crossing.kind == "breach":
        evidence["change_point"] = {"at": change[0], "first_episode": change[1]}
    reference = evidence.get("reference")
    if reference is not None and "end" in reference and one.first is not None:
        end = mark_of(reference["end"])
        known = {name: value for name, value in reference.items() if name != "end"}
        evidence["reference"] = known | {"from": one.first[0], "to": None if end is None else end[0]}
    return evidence


def _time(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
