"""What the records say of failed episodes: one by one, or many as columns, as `weighing.weigh` takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Level = str | bool | float | None
# Condition → a number for the level of each row, and the number of each level; filled as conditions are asked for.
LevelCodes = dict[str, tuple[NDArray[np.int64], Mapping[str, int]]]


class FailedEpisode(NamedTuple):
    """What the record says of one failed episode."""

    category: str | None = None
    labels: Sequence[str] = ()
    phase: str | None = None
    signals: Mapping[str, float] | None = None
    conditions: Mapping[str, Level] | None = None


@dataclass(frozen=True)
class FailedBatch:
    """Failed episodes of one side as columns, all of one length.

    `counts`: how many episodes a row stands for. `conditions`: name → the level of each row, written as in the
    suspects. `signals`: name → one number a row, NaN where the episode has none. `sessions` may be left out.
    """

    counts: Array
    category: Sequence[str | None]
    labels: Sequence[Sequence[str]]
    phase: Sequence[str | None]
    conditions: Mapping[str, Sequence[Level]] = field(default_factory=dict)
    signals: Mapping[str, Array] = field(default_factory=dict)
    sessions: Sequence[str | None] = ()
    codes: LevelCodes = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.counts)


def batch_of(
    episodes: Sequence[FailedEpisode], counts: Sequence[float] | None = None, sessions: Sequence[str | None] = ()
) -> FailedBatch:
    """Turn records into columns. A condition or signal that an episode lacks is None or NaN in its row."""
    size = len(episodes)
    conditions: dict[str, list[Level]] = {}
    signals: dict[str, Array] = {}
    for row, episode in enumerate(episodes):
        for name, level in (episode.conditions or {}).items():
            conditions.setdefault(name, [None] * size)[row] = level
        for name, value in (episode.signals or {}).items():
            signals.setdefault(name, np.full(size, nan))[row] = value
    return FailedBatch(
        np.ones(size) if counts is None else np.asarray(counts, dtype=float),
        [episode.category for episode in episodes],
        [episode.labels for episode in episodes],
        [episode.phase for episode in episodes],
        conditions,
        signals,
        sessions,
    )
