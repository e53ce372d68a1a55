"""Series that share one promise: the signals of a deployment, judged by e-BH over whole blocks of its episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from gapwatch.statistics.estimates.multiplicity import e_benjamini_hochberg
from gapwatch.watching.detector_run import (
    DetectorRun,
    Finding,
    evidence_of,
    keep_marks,
)
from gapwatch.watching.detectors import RankDetector
from gapwatch.watching.kinds.drift import DriftParams
from gapwatch.watching.series import SeenEpisode, time_words

# They are judged after every twentieth episode of the deployment, never in between.
JUDGED_EVERY = 20


def feed_together(group: Sequence[DetectorRun], episodes: Sequence[SeenEpisode], count: int) -> None:
    """Series that share one promise wait for each other: whole blocks of the deployment's episodes at a time."""
    at = 0
    while at < len(episodes):
        end = min(len(episodes), at + JUDGED_EVERY - (count + at) % JUDGED_EVERY)
        block = episodes[at:end]
        if (count + end) % JUDGED_EVERY == 0:
            for run in group:
                _take_block(run, block, end - 1)
            _judge_together(group, end - 1, block[-1])
        else:
            for run in group:
                for episode in block:
                    value = run.series.value(episode)
                    if value is not None:
                        run.waiting.append([value, time_words(episode.started_at), episode.id])
        at = end


def _take_block(run: DetectorRun, block: Sequence[SeenEpisode], index: int) -> None:
    """Feed a detector the values that waited together with the rest of their block."""
    detector, waiting, value_of = cast(RankDetector, run.detector), run.waiting, run.series.value
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
            return run.marks.get(str(number))
        if place < len(waiting):
            return list(waiting[place][1:])
        episode = sources[place - len(waiting)]
        return [time_words(episode.started_at), episode.id]

    if run.first is None:
        run.first = mark_of(first_number)
    for _ in detector.update_block(values):
        run.findings.append(Finding(run.rule, run.series.name, "recovery", index, {}))
    keep_marks(run, mark_of)
    run.waiting = []


def _judge_together(group: Sequence[DetectorRun], index: int, episode: SeenEpisode) -> None:
    """Declare the series that stand under e-BH, by their evidence in units of the run length."""
    judged = [(run, cast(RankDetector, run.detector)) for run in group]
    judged = [(run, detector) for run, detector in judged if detector.has_learned]
    if not judged:
        return
    arl = cast(DriftParams, group[0].rule.params).arl
    stand = e_benjamini_hochberg([detector.strength / arl for _, detector in judged], level=1.0)
    for place in stand:
        run, detector = judged[place]
        crossing = detector.declare(0, arl * len(judged) / len(stand))
        evidence = evidence_of(run, crossing, episode, _marks_of(run))
        evidence["series_judged"] = len(judged)
        run.findings.append(Finding(run.rule, run.series.name, "breach", index, evidence))


def _marks_of(run: DetectorRun) -> Callable[[int], list[str] | None]:
    return lambda number: run.marks.get(str(number))
