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
            for one in group:
                _take_block(one, block, end - 1)
            _judge_together(group, end - 1, block[-1])
        else:
            for one in group:
                for episode in block:
                    value = one.series.value(episode)
                    if value is not None:
                        one.waiting.append([value, time_words(episode.started_at), episode.id])
        at = end


def _take_block(one: DetectorRun, block: Sequence[SeenEpisode], index: int) -> None:
    """What waited and the rest of its block, at once."""
    detector, waiting, value_of = cast(RankDetector, one.detector), one.waiting, one.series.value
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
        return [time_words(episode.started_at), episode.id]

    if one.first is None:
        one.first = mark_of(first_number)
    for _ in detector.update_block(values):
        one.found.append(Finding(one.rule, one.series.series, "recovery", index, {}))
    keep_marks(one, mark_of)
    one.waiting = []


def _judge_together(group: Sequence[DetectorRun], index: int, episode: SeenEpisode) -> None:
    """e-BH over the evidence of the series, in units of the run length."""
    judged = [(one, cast(RankDetector, one.detector)) for one in group]
    judged = [(one, detector) for one, detector in judged if detector.has_learned]
    if not judged:
        return
    arl = cast(DriftParams, group[0].rule.params).arl
    stand = e_benjamini_hochberg([detector.strength / arl for _, detector in judged], level=1.0)
    for place in stand:
        one, detector = judged[place]
        crossing = detector.declare(0, arl * len(judged) / len(stand))
        evidence = evidence_of(one, crossing, episode, _marks_of(one))
        evidence["series_judged"] = len(judged)
        one.found.append(Finding(one.rule, one.series.series, "breach", index, evidence))


def _marks_of(one: DetectorRun) -> Callable[[int], list[str] | None]:
    return lambda number: one.marks.get(str(number))
