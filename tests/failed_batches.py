"""Records of failed episodes as the columns that are weighed."""

from math import nan

import numpy as np

from gapwatch.statistics.causes.weighing import FailedBatch


def batch_of(episodes, counts=None, sessions=()):
    """A condition or signal that an episode lacks is None or NaN in its row."""
    size = len(episodes)
    conditions, signals = {}, {}
    for row, episode in enumerate(episodes):
        for name, level in (episode.conditions or {}).items():
            conditions.setdefault(name, [None] * size)[row] = level
        for name, value in (episode.signals or {}).items():
            signals.setdefault(name, np.full(size, nan))[row] = value
    return FailedBatch(
        np.ones(size) if counts is None else np.asarray(counts, dtype=float),
        [e.category for e in episodes],
        [e.labels for e in episodes],
        [e.phase for e in episodes],
        conditions,
        signals,
        sessions,
    )
