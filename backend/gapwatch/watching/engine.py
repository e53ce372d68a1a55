"""Episodes of one deployment through every rule: what came true, at which episode, on what evidence.

The same code watches live, replays for a preview, and is tested; it depends on the episodes and their order alone,
not on how they were cut into batches.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, groupby
from typing import Any, cast

from gapwatch.statistics.change.drift import Crossing
from gapwatch.statistics.change.drift_by_sessions import SessionPart
from gapwatch.watching.detector_run import (
    DetectorRun,
    Finding,
    StoredDetector,
    evidence_of,
    keep_marks,
)
from gapwatch.watching.detectors import LevelDetector, SimDetector
from gapwatch.watching.joint_signals import feed_together
from gapwatch.watching.kinds import RULE_KINDS
from gapwatch.watching.rule_kind import EpisodeWatch, RuleSeries
from gapwatch.watching.rules import Rule
from gapwatch.watching.series import SeenEpisode, time_words
from gapwatch.watching.sessions import DetectorInput, Sessions

SimCounts = Callable[[int], tuple[int, int]]
"""Sim successes and n of a policy version at the deployment's task."""


def watch_episodes(
    rules: Sequence[Rule],
    stored: Mapping[tuple[str, str], StoredDetector],
    episodes: Sequence[SeenEpisode],
    *,
    count: int,
    sim_counts: SimCounts,
    seed: int = 0,
) -> tuple[list[Finding], dict[tuple[str, str], StoredDetector]]:
    """What came true in these episodes, in their order, and the detectors after them.

    `count` is how many episodes of the deployment were watched before. Detectors whose parameters changed begin
    anew; if one was alarmed, its alert is over with it.
    """
    watched: dict[tuple[str, str], DetectorRun] = {}
    found: list[Finding] = []
    for rule in rules:
        watch = RULE_KINDS[rule.kind].watch
        if watch is None:
            continue
        is_joint = watch.is_joint(rule.params)
        for series in watch.series(rule, episodes, stored):
            key = (rule.name, series.series)
            watched[key] = one = _open(rule, watch, series, stored.get(key), found, seed)
            if not is_joint:
                _feed(one, episodes, count, sim_counts)
        if is_joint:
            group = [one for (name, _), one in watched.items() if name == rule.name]
            feed_together(group, episodes, count)
            for one in group:
                _hold(one, len(episodes), count)
    for one in watched.values():
        found += one.found
    order = {rule.name: place for place, rule in enumerate(rules)}
    found.sort(key=lambda f: (f.index, order[f.rule.name], f.series))
    return found, {key: _close(one) for key, one in watched.items()}


def _open(
    rule: Rule,
    watch: EpisodeWatch,
    series: RuleSeries,
    stored: StoredDetector | None,
    found: list[Finding],
    seed: int,
) -> DetectorRun:
    params = _stored_params(rule)
    if stored is not None and stored.params != params:
        if stored.state.get("alarmed"):
            found.append(Finding(rule, series.series, "recovery", 0, {"note": "the rule was changed"}))
        stored = None
    state = {} if stored is None else stored.state
    detector = watch.detector(rule, series, state.get("detector"), seed)
    if stored is not None and stored.restart:
        detector.restart()
        state = state | {"pending_until": None}
    return DetectorRun(
        rule,
        series,
        detector,
        dict(state.get("marks", {})),
        state.get("first"),
        state.get("pending_until"),
        state.get("pending_evidence"),
        state.get("policy_id"),
        list(state.get("waiting", [])),
        Sessions(state.get("sessions", ())),
    )


def _close(one: DetectorRun) -> StoredDetector:
    state = {
        "detector": one.detector.dump(),
        "marks": one.marks,
        "first": one.first,
        "pending_until": one.pending_until,
        "pending_evidence": one.pending_evidence,
        "policy_id": one.policy_id,
        "waiting": one.waiting,
        "sessions": one.sessions.dump(),
        "alarmed": one.detector.is_alarmed,
    }
    return StoredDetector(_stored_params(one.rule), state)


def _stored_params(rule: Rule) -> dict[str, Any]:
    return {"kind": rule.kind, **rule.params.model_dump(mode="json", exclude={"flap_minutes"})}


def _feed(one: DetectorRun, block: Sequence[SeenEpisode], count: int, sim_counts: SimCounts) -> None:
    queue = _Queue(one, block)
    if isinstance(one.detector, SimDetector) and one.policy_id is not None:
        one.detector.sim = sim_counts(one.policy_id)
    for place, episode in enumerate(block):
        if one.series.left is not None and one.series.left(episode):
            # The stage that was not kept was left: there is nothing more to recover from.
            queue.end_sessions(place)
            if one.detector.is_alarmed:
                one.detector.restart()
                note = {"note": "the stage was left"}
                one.found.append(Finding(one.rule, one.series.series, "recovery", place, note))
        value = one.series.value(episode)
        if value is None:
            continue
        if isinstance(one.detector, SimDetector) and episode.policy_id != one.policy_id:
            queue.end_sessions(place)
            if one.policy_id is not None:
                one.detector.forget_processes()
            one.policy_id, one.detector.sim = episode.policy_id, sim_counts(episode.policy_id)
        if episode.session is not None or not one.sessions.is_empty:
            queue.add_in_session(place, episode, value)
        else:
            queue.add(place, [value])
    queue.run()
    _hold(one, len(block), count)


class _Queue:
    """What a detector is to be given, each with the place of the episode that completed it."""

    def __init__(self, one: DetectorRun, block: Sequence[SeenEpisode]) -> None:
        self._one, self._block = one, block
        self._given: list[float | DetectorInput] = []
        self._places: list[int] = []

    def add(self, place: int, given: Sequence[float | DetectorInput]) -> None:
        self._given += given
        self._places += [place] * len(given)

    def add_in_session(self, place: int, episode: SeenEpisode, value: float) -> None:
        one, detector, size = self._one, self._one.detector, 0
        if not isinstance(detector, LevelDetector | SimDetector):
            self.add(place, [value])
            return
        self.add(place, one.sessions.end_before(episode))
        if one.sessions.begins(episode):
            # How it is judged depends on the sessions before it.
            self.run()
            size = detector.part_size()
        self.add(place, one.sessions.take(episode, value, size))

    def end_sessions(self, place: int) -> None:
        if not self._one.sessions.is_empty:
            self.add(place, self._one.sessions.end_all())
        self.run()

    def run(self) -> None:
        if self._given:
            _run(self._one, self._block, self._given, self._places)
            self._given, self._places = [], []


def _run(
    one: DetectorRun, block: Sequence[SeenEpisode], queue: Sequence[float | DetectorInput], places: Sequence[int]
) -> None:
    first_number = one.detector.n
    has_parts = any(isinstance(given, DetectorInput) for given in queue)
    starts = list(accumulate(map(_size, queue), initial=first_number)) if has_parts else []

    def mark_of(number: int) -> list[str] | None:
        if number < first_number:
            return one.marks.get(str(number))
        at = min(bisect_right(starts, number) - 1 if has_parts else number - first_number, len(queue) - 1)
        given = queue[at]
        if isinstance(given, DetectorInput):
            return given.first
        episode = block[places[at]]
        return [time_words(episode.started_at), episode.id]

    if one.first is None:
        one.first = mark_of(first_number)
    if has_parts:
        crossings = _update_by_sessions(one, queue)
    else:
        crossings = [(crossing.index, crossing) for crossing in one.detector.update(cast(Sequence[float], queue))]
    for at, crossing in crossings:
        place = places[at]
        evidence = evidence_of(one, crossing, block[place], mark_of)
        one.found.append(Finding(one.rule, one.series.series, crossing.kind, place, evidence))
    keep_marks(one, mark_of)


def _size(given: float | DetectorInput) -> int:
    return given.n if isinstance(given, DetectorInput) else 1


def _update_by_sessions(one: DetectorRun, queue: Sequence[float | DetectorInput]) -> list[tuple[int, Crossing]]:
    """Single episodes as if there were no sessions, parts of sessions as such, in their order."""
    given = [item.given if isinstance(item, DetectorInput) else item for item in queue]
    found: list[tuple[int, Crossing]] = []
    at = 0
    for are_parts, run in groupby(given, lambda item: isinstance(item, SessionPart)):
        items = list(run)
        if are_parts:
            crossings = cast(LevelDetector | SimDetector, one.detector).update_by_sessions(
                cast(Sequence[SessionPart], items)
            )
        else:
            crossings = one.detector.update(cast(Sequence[float], items))
        found += [(at + crossing.index, crossing) for crossing in crossings]
        at += len(items)
    return found


def _hold(one: DetectorRun, size: int, count: int) -> None:
    """A breach that must last is a suspect until enough episodes of the deployment have passed."""
    wait = one.rule.params.for_episodes
    if not wait:
        return
    kept: list[Finding] = []
    for f in one.found:
        _let_go(one, kept, until=f.index, offset_count=count)
        if f.input == "breach":
            one.pending_until, one.pending_evidence = count + f.index + wait, f.evidence
            kept.append(Finding(f.rule, f.series, "suspect", f.index, f.evidence))
        else:
            one.pending_until = one.pending_evidence = None
            kept.append(f)
    _let_go(one, kept, until=size - 1, offset_count=count)
    one.found = kept


def _let_go(one: DetectorRun, kept: list[Finding], *, until: int, offset_count: int) -> None:
    if one.pending_until is not None and one.pending_until <= offset_count + until:
        index = max(0, one.pending_until - offset_count)
        kept.append(Finding(one.rule, one.series.series, "breach", index, one.pending_evidence or {}))
        one.pending_until = one.pending_evidence = None
