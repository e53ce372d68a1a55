"""Episodes of one deployment through every rule: what came true, at which episode, on what evidence.

The same code watches live, replays for a preview, and is tested; it depends on the episodes and their order alone,
not on how they were cut into batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

from gapwatch.watching.detectors import SimDetector
from gapwatch.watching.making import UNITS, Unit, make_detector
from gapwatch.watching.rules import DriftParams, Rule
from gapwatch.watching.series import Seen
from gapwatch.watching.together import feed_together, is_judged_together
from gapwatch.watching.watched import Found, Stored, Watched, evidence_of, keep_marks, time_words

SimCounts = Callable[[int], tuple[int, int]]
"""Sim successes and n of a policy version at the deployment's task."""


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
    watched: dict[tuple[str, str], Watched] = {}
    found: list[Found] = []
    for rule in rules:
        together = is_judged_together(rule)
        for unit in UNITS[rule.kind](rule, episodes, stored):
            key = (rule.name, unit.series)
            watched[key] = one = _open(rule, unit, stored.get(key), found, seed)
            if not together:
                _feed(one, episodes, count, sim_counts)
        if together:
            group = [one for (name, _), one in watched.items() if name == rule.name]
            feed_together(cast(DriftParams, rule.params), group, episodes, count)
            for one in group:
                _hold(one, len(episodes), count)
    for one in watched.values():
        found += one.found
    order = {rule.name: place for place, rule in enumerate(rules)}
    found.sort(key=lambda f: (f.index, order[f.rule.name], f.series))
    return found, {key: _close(one) for key, one in watched.items()}


def _open(rule: Rule, unit: Unit, stored: Stored | None, found: list[Found], seed: int) -> Watched:
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
    return Watched(
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


def _close(one: Watched) -> Stored:
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


def _feed(one: Watched, block: Sequence[Seen], count: int, sim_counts: SimCounts) -> None:
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


def _run(one: Watched, block: Sequence[Seen], values: list[float], places: list[int]) -> None:
    if not values:
        return
    first_number = one.detector.n

    def mark_of(number: int) -> list[str] | None:
        if number < first_number:
            return one.marks.get(str(number))
        episode = block[places[min(number - first_number, len(places) - 1)]]
        return [time_words(episode.started_at), episode.id]

    if one.first is None:
        one.first = mark_of(first_number)
    for crossing in one.detector.update(values):
        place = places[crossing.index]
        evidence = evidence_of(one, crossing, block[place], mark_of)
        given: Literal["breach", "recovery"] = crossing.kind
        one.found.append(Found(one.rule, one.unit.series, given, place, evidence))
    keep_marks(one, mark_of)


def _hold(one: Watched, size: int, count: int) -> None:
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


def _let_go(one: Watched, kept: list[Found], *, until: int, offset_count: int) -> None:
    if one.pending_until is not None and one.pending_until <= offset_count + until:
        index = max(0, one.pending_until - offset_count)
        kept.append(Found(one.rule, one.unit.series, "breach", index, one.pending_evidence or {}))
        one.pending_until = one.pending_evidence = None
