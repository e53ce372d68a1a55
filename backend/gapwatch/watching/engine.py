"""Episodes of one deployment through every rule: what came true, at which episode, on what evidence.

The same code watches live, replays for a preview, and is tested; it depends on the episodes and their order alone,
not on how they were cut into batches.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import accumulate, groupby
from typing import Any, cast

from gapwatch.statistics.change.drift import NOT_JUDGED, Crossing, RobotLimit
from gapwatch.statistics.change.drift_by_sessions import SessionPart
from gapwatch.statistics.change.strata import Circumstance
from gapwatch.watching.detector_run import (
    DetectorRun,
    Finding,
    LevelShares,
    MissingLevels,
    StoredDetector,
    evidence_of,
    keep_marks,
)
from gapwatch.watching.detectors import LevelDetector, RankDetector, SimDetector
from gapwatch.watching.joint_signals import feed_together
from gapwatch.watching.kinds import RULE_KINDS
from gapwatch.watching.rule_kind import EpisodeWatch, RuleSeries
from gapwatch.watching.rules import Rule
from gapwatch.watching.series import SeenEpisode, level_name, time_words
from gapwatch.watching.sessions import DetectorInput, Sessions
from gapwatch.watching.sim_mix import SimCells, SimMix, sim_mix

DAY_S = 86_400

SimCounts = Callable[[int], tuple[int, int]]
"""Sim successes and n of a policy version at the deployment's task."""


def watch_episodes(
    rules: Sequence[Rule],
    stored: Mapping[tuple[str, str], StoredDetector],
    episodes: Sequence[SeenEpisode],
    *,
    count: int,
    sim_counts: SimCounts,
    sim_cells: SimCells | None = None,
    seed: int = 0,
) -> tuple[list[Finding], dict[tuple[str, str], StoredDetector]]:
    """What came true in these episodes, in their order, and the detectors that were given any, after them.

    `count` is how many episodes of the deployment were watched before. With `sim_cells` sim is compared in real's
    mix of conditions. Detectors whose parameters changed begin anew; if one was alarmed, its alert is over.
    """
    watched: dict[tuple[str, str], DetectorRun] = {}
    findings: list[Finding] = []
    batch = _Batch(episodes, count, sim_counts, sim_cells)
    for rule in rules:
        watch = RULE_KINDS[rule.kind].watch
        if watch is None:
            continue
        is_joint = watch.is_joint(rule.params)
        for series in watch.series(rule, episodes, stored):
            key = (rule.name, series.name)
            watched[key] = run = _open(rule, watch, series, stored.get(key), findings, seed)
            if not is_joint:
                _feed(run, batch, watched.get((rule.name, series.whole or "")))
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
        mix=MissingLevels(**state.get("mix", {})),
        shares=LevelShares(**state.get("shares", {})),
    )


def _close(run: DetectorRun) -> StoredDetector:
    state: dict[str, Any] = {
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
    if run.mix.level is not None:
        state["mix"] = asdict(run.mix)
    if run.shares.n:
        state["shares"] = asdict(run.shares)
    if run.series.robots:
        state["robots"] = list(run.series.robots)
    if run.series.levels:
        state["levels"] = list(run.series.levels)
    clusters = run.detector.unnamed_clusters() if isinstance(run.detector, LevelDetector) else None
    if clusters is not None and run.series.name == "success":
        state["clusters"] = list(clusters)
    return StoredDetector(_stored_params(run.rule), state)


def _stored_params(rule: Rule) -> dict[str, Any]:
    return {"kind": rule.kind, **rule.params.model_dump(mode="json", exclude={"flap_minutes"})}


class _Batch:
    """Episodes that are watched together, and what all detectors ask of them."""

    def __init__(
        self, episodes: Sequence[SeenEpisode], count: int, sim_counts: SimCounts, sim_cells: SimCells | None
    ) -> None:
        self.episodes, self.count, self.sim_counts = episodes, count, sim_counts
        self._sim_cells = sim_cells
        self._mixes: dict[int, SimMix] = {}

    @cached_property
    def circumstances(self) -> list[Circumstance]:
        return [
            Circumstance(
                int(one.started_at.timestamp() // DAY_S), (one.robot, self._cell(one)), self.shift_in_sim(index)
            )
            for index, one in enumerate(self.episodes)
        ]

    @cached_property
    def indices_by_robot(self) -> dict[str, list[int]]:
        indices: dict[str, list[int]] = {}
        for index, episode in enumerate(self.episodes):
            if episode.robot is not None:
                indices.setdefault(episode.robot, []).append(index)
        return indices

    @cached_property
    def indices_by_level(self) -> dict[str, list[int]]:
        indices: dict[str, list[int]] = {}
        for index, episode in enumerate(self.episodes):
            for condition, level in episode.levels.items():
                indices.setdefault(level_name(condition, level), []).append(index)
        return indices

    def indices_of(self, series: RuleSeries) -> Sequence[int]:
        """Those of the episodes that a series may have a value of."""
        if series.robot is not None:
            return self.indices_by_robot[series.robot]
        return range(len(self.episodes)) if series.level is None else self.indices_by_level[series.level]

    def shift_in_sim(self, index: int) -> float:
        """By how much sim lies above its mean under the conditions of an episode."""
        episode = self.episodes[index]
        return self._mix(episode.policy_id).shift(episode.levels) if episode.levels else 0.0

    def missing_in_sim(self, index: int) -> str | None:
        """A level of an episode that sim has not."""
        episode = self.episodes[index]
        return self._mix(episode.policy_id).missing(episode.levels) if episode.levels else None

    def _cell(self, episode: SeenEpisode) -> str | None:
        """The levels of the conditions that matter in sim; of all conditions where sim does not tell."""
        if not episode.levels:
            return None
        names = self._mix(episode.policy_id).conditions or sorted(episode.levels)
        return "|".join(f"{name}={episode.levels.get(name, '')}" for name in names)

    def _mix(self, policy_id: int) -> SimMix:
        if policy_id not in self._mixes:
            self._mixes[policy_id] = sim_mix(self._sim_cells(policy_id)) if self._sim_cells else SimMix()
        return self._mixes[policy_id]


def _feed(run: DetectorRun, batch: _Batch, whole: DetectorRun | None) -> None:
    """Feed a detector. `whole` is the run of all episodes, where this one is of one robot or level."""
    block, sim_counts = batch.episodes, batch.sim_counts
    queue = _Queue(run, batch, whole)
    if isinstance(run.detector, SimDetector) and run.policy_id is not None:
        run.detector.sim = sim_counts(run.policy_id)
    for index in batch.indices_of(run.series):
        episode = block[index]
        if index < run.series.since:
            continue
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
        if isinstance(run.detector, SimDetector):
            queue.note_mix(index)
        elif run.series.levels and episode.levels:
            queue.note_levels(index)
        if episode.session is not None or not run.sessions.is_empty:
            queue.add_in_session(index, episode, value)
        else:
            queue.add(index, [value])
    queue.run()
    queue.fill_limits()
    _hold(run, len(block), batch.count)


class _Queue:
    """What a detector is to be given, each with the index of the episode that completed it."""

    def __init__(self, run: DetectorRun, batch: _Batch, whole: DetectorRun | None) -> None:
        self._detector_run, self._batch, self._whole = run, batch, whole
        self._inputs: list[float | DetectorInput] = []
        self._indices: list[int] = []
        self._limit_at: dict[int, RobotLimit] | None = None
        self._mix_at: dict[int, dict[str, Any]] = {}
        if (run.series.robots or run.series.levels) and isinstance(run.detector, LevelDetector):
            self._limit_at = {}

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
        if isinstance(detector, SimDetector):
            shift = self._batch.shift_in_sim(index)
        else:
            # What it expects is learned from every episode before it, which single ones wait for here.
            if detector.compares_strata_next or not all(map(_is_part, self._inputs)):
                self.run()
            shift = detector.expect_in_session(self._batch.circumstances[index], value)
        self.add(index, run.sessions.take(episode, value, size, shift))

    def note_mix(self, index: int) -> None:
        self._detector_run.mix.add(self._batch.missing_in_sim(index))
        self._mix_at[index] = self._detector_run.mix.facts()

    def note_levels(self, index: int) -> None:
        shares = self._detector_run.shares
        shares.add(self._batch.episodes[index].levels)
        self._mix_at[index] = shares.facts

    def end_sessions(self, index: int) -> None:
        if not self._detector_run.sessions.is_empty:
            self.add(index, self._detector_run.sessions.end_all())
        self.run()

    def run(self) -> None:
        if self._inputs:
            self._update()
            self._inputs, self._indices = [], []

    def fill_limits(self) -> None:
        """Say of each episode of the batch by which limit it is judged as one of its robot."""
        if self._limit_at is not None:
            size = len(self._batch.episodes)
            self._detector_run.limits = [self._limit_at.get(index, NOT_JUDGED) for index in range(size)]

    def _update(self) -> None:
        run, block, queue, indices = self._detector_run, self._batch.episodes, self._inputs, self._indices
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
            crossings = self._update_by_sessions()
        else:
            values = cast(Sequence[float], queue)
            crossings = [(crossing.index, crossing) for crossing in self._update_values(values, indices)]
        for at, crossing in crossings:
            index = indices[at]
            evidence = evidence_of(run, crossing, block[index], mark_of) | self._mix_at.get(index, {})
            run.findings.append(Finding(run.rule, run.series.name, crossing.kind, index, evidence))
        keep_marks(run, mark_of)

    def _update_values(self, values: Sequence[float], indices: Sequence[int]) -> list[Crossing]:
        """Single episodes."""
        detector, batch = self._detector_run.detector, self._batch
        if isinstance(detector, LevelDetector):
            circumstances = batch.circumstances
            here = circumstances if len(indices) == len(circumstances) else [circumstances[i] for i in indices]
            used: list[RobotLimit] | None = None if self._limit_at is None else []
            crossings = detector.update(values, here, self._given_limits(indices), used)
            self._note_limits(indices, used)
            return crossings
        if isinstance(detector, SimDetector):
            days = [batch.circumstances[i].day for i in indices]
            return detector.update(values, days, [batch.shift_in_sim(i) for i in indices])
        if isinstance(detector, RankDetector):
            return detector.update(values, [batch.circumstances[i].day for i in indices])
        return detector.update(values)

    def _update_parts(self, parts: Sequence[SessionPart], indices: Sequence[int]) -> list[Crossing]:
        detector = self._detector_run.detector
        if isinstance(detector, LevelDetector):
            used: list[RobotLimit] | None = None if self._limit_at is None else []
            crossings = detector.update_by_sessions(parts, self._given_limits(indices), used)
            self._note_limits(indices, used)
            return crossings
        return cast(SimDetector, detector).update_by_sessions(parts)

    def _given_limits(self, indices: Sequence[int]) -> list[RobotLimit] | None:
        return None if self._whole is None else [self._whole.limits[i] for i in indices]

    def _note_limits(self, indices: Sequence[int], used: list[RobotLimit] | None) -> None:
        if self._limit_at is not None and used is not None:
            self._limit_at.update(zip(indices, used, strict=True))

    def _update_by_sessions(self) -> list[tuple[int, Crossing]]:
        """Single episodes as if there were no sessions, parts of sessions as such, in their order."""
        values = [item.value if isinstance(item, DetectorInput) else item for item in self._inputs]
        crossings_at: list[tuple[int, Crossing]] = []
        at = 0
        for are_parts, group in groupby(values, lambda item: isinstance(item, SessionPart)):
            items = list(group)
            indices = self._indices[at : at + len(items)]
            if are_parts:
                crossings = self._update_parts(cast(Sequence[SessionPart], items), indices)
            else:
                crossings = self._update_values(cast(Sequence[float], items), indices)
            crossings_at += [(at + crossing.index, crossing) for crossing in crossings]
            at += len(items)
        return crossings_at


def _is_part(item: float | DetectorInput) -> bool:
    return isinstance(item, DetectorInput) and isinstance(item.value, SessionPart)


def _size(item: float | DetectorInput) -> int:
    return item.n if isinstance(item, DetectorInput) else 1


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
