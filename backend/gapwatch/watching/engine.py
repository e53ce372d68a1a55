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
    findings: list[Finding] = []
    for rule in rules:
        watch = RULE_KINDS[rule.kind].watch
        if watch is None:
            continue
        is_joint = watch.is_joint(rule.params)
        for series in watch.series(rule, episodes, stored):
            key = (rule.name, series.name)
            watched[key] = run = _open(rule, watch, series, stored.get(key), findings, seed)
            if not is_joint:
                _feed(run, episodes, count, sim_counts)
        if is_joint:
            group = [run for (name, _), run in watched.items() if name == rule.name]
            feed_together(group, episodes, count)
            for run in group:
                _hold(run, len(episodes), count)
    for run in watched.values():
        findings += run.findings
    order = {rule.name: index for index, rule in enumerate(rules)}
    findings.sort(key=lambda finding: (finding.index, order[finding.rule.name], finding.series))
    return findings, {key: _close(run) for key, run in watched.items()}


def _open(
    rule: Rule,
    watch: EpisodeWatch,
    series: RuleSeries,
    stored: StoredDetector | None,
    findings: list[Finding],
    seed: int,
) -> DetectorRun:
    params = _stored_params(rule)
    if stored is not None and stored.params != params:
        if stored.state.get("alarmed"):
            findings.append(Finding(rule, series.name, "recovery", 0, {"note": "the rule was changed"}))
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


def _close(run: DetectorRun) -> StoredDetector:
    state = {
        "detector": run.detector.dump(),
        "marks": run.marks,
        "first": run.first,
        "pending_until": run.pending_until,
        "pending_evidence": run.pending_evidence,
        "policy_id": run.policy_id,
        "waiting": run.waiting,
        "sessions": run.sessions.dump(),
        "alarmed": run.detector.is_alarmed,
    }
    return StoredDetector(_stored_params(run.rule), state)


def _stored_params(rule: Rule) -> dict[str, Any]:
    return {"kind": rule.kind, **rule.params.model_dump(mode="json", exclude={"flap_minutes"})}


def _feed(run: DetectorRun, block: Sequence[SeenEpisode], count: int, sim_counts: SimCounts) -> None:
    queue = _Queue(run, block)
    if isinstance(run.detector, SimDetector) and run.policy_id is not None:
        run.detector.sim = sim_counts(run.policy_id)
    for index, episode in enumerate(block):
        if run.series.left is not None and run.series.left(episode):
            # The stage that was not kept was left: there is nothing more to recover from.
            queue.end_sessions(index)
            if run.detector.is_alarmed:
                run.detector.restart()
                note = {"note": "the stage was left"}
                run.findings.append(Finding(run.rule, run.series.name, "recovery", index, note))
        value = run.series.value(episode)
        if value is None:
            continue
        if isinstance(run.detector, SimDetector) and episode.policy_id != run.policy_id:
            queue.end_sessions(index)
            if run.policy_id is not None:
                run.detector.forget_processes()
            run.policy_id, run.detector.sim = episode.policy_id, sim_counts(episode.policy_id)
        if episode.session is not None or not run.sessions.is_empty:
            queue.add_in_session(index, episode, value)
        else:
            queue.add(index, [value])
    queue.run()
    _hold(run, len(block), count)


class _Queue:
    """What a detector is to be given, each with the index of the episode that completed it."""

    def __init__(self, run: DetectorRun, block: Sequence[SeenEpisode]) -> None:
        self._detector_run, self._block = run, block
        self._inputs: list[float | DetectorInput] = []
        self._indices: list[int] = []

    def add(self, index: int, inputs: Sequence[float | DetectorInput]) -> None:
        self._inputs += inputs
        self._indices += [index] * len(inputs)

    def add_in_session(self, index: int, episode: SeenEpisode, value: float) -> None:
        run, detector, size = self._detector_run, self._detector_run.detector, 0
        if not isinstance(detector, LevelDetector | SimDetector):
            self.add(index, [value])
            return
        self.add(index, run.sessions.end_before(episode))
        if run.sessions.begins(episode):
            # How it is judged depends on the sessions before it.
            self.run()
            size = detector.part_size()
        self.add(index, run.sessions.take(episode, value, size))

    def end_sessions(self, index: int) -> None:
        if not self._detector_run.sessions.is_empty:
            self.add(index, self._detector_run.sessions.end_all())
        self.run()

    def run(self) -> None:
        if self._inputs:
            _run(self._detector_run, self._block, self._inputs, self._indices)
            self._inputs, self._indices = [], []


def _run(
    run: DetectorRun, block: Sequence[SeenEpisode], queue: Sequence[float | DetectorInput], indices: Sequence[int]
) -> None:
    first_number = run.detector.n
    has_parts = any(isinstance(item, DetectorInput) for item in queue)
    starts = list(accumulate(map(_size, queue), initial=first_number)) if has_parts else []

    def mark_of(number: int) -> list[str] | None:
        if number < first_number:
            return run.marks.get(str(number))
        at = min(bisect_right(starts, number) - 1 if has_parts else number - first_number, len(queue) - 1)
        item = queue[at]
        if isinstance(item, DetectorInput):
            return item.first
        episode = block[indices[at]]
        return [time_words(episode.started_at), episode.id]

    if run.first is None:
        run.first = mark_of(first_number)
    if has_parts:
        crossings = _update_by_sessions(run, queue)
    else:
        crossings = [(crossing.index, crossing) for crossing in run.detector.update(cast(Sequence[float], queue))]
    for at, crossing in crossings:
        index = indices[at]
        evidence = evidence_of(run, crossing, block[index], mark_of)
        run.findings.append(Finding(run.rule, run.series.name, crossing.kind, index, evidence))
    keep_marks(run, mark_of)


def _size(item: float | DetectorInput) -> int:
    return item.n if isinstance(item, DetectorInput) else 1


def _update_by_sessions(run: DetectorRun, queue: Sequence[float | DetectorInput]) -> list[tuple[int, Crossing]]:
    """Single episodes as if there were no sessions, parts of sessions as such, in their order."""
    values = [item.value if isinstance(item, DetectorInput) else item for item in queue]
    crossings_at: list[tuple[int, Crossing]] = []
    at = 0
    for are_parts, group in groupby(values, lambda item: isinstance(item, SessionPart)):
        items = list(group)
        if are_parts:
            crossings = cast(LevelDetector | SimDetector, run.detector).update_by_sessions(
                cast(Sequence[SessionPart], items)
            )
        else:
            crossings = run.detector.update(cast(Sequence[float], items))
        crossings_at += [(at + crossing.index, crossing) for crossing in crossings]
        at += len(items)
    return crossings_at


def _hold(run: DetectorRun, size: int, count: int) -> None:
    """A breach that must last is a suspect until enough episodes of the deployment have passed."""
    wait = run.rule.params.for_episodes
    if not wait:
        return
    kept: list[Finding] = []
    for finding in run.findings:
        _let_go(run, kept, until=finding.index, offset_count=count)
        if finding.input == "breach":
            run.pending_until, run.pending_evidence = count + finding.index + wait, finding.evidence
            kept.append(Finding(finding.rule, finding.series, "suspect", finding.index, finding.evidence))
        else:
            run.pending_until = run.pending_evidence = None
            kept.append(finding)
    _let_go(run, kept, until=size - 1, offset_count=count)
    run.findings = kept


def _let_go(run: DetectorRun, kept: list[Finding], *, until: int, offset_count: int) -> None:
    if run.pending_until is not None and run.pending_until <= offset_count + until:
        index = max(0, run.pending_until - offset_count)
        kept.append(Finding(run.rule, run.series.name, "breach", index, run.pending_evidence or {}))
        run.pending_until = run.pending_evidence = None
