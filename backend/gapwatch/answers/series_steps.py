"""A watched series as a line of a few points: none of them spans the change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from gapwatch.answers.answer import Interval
from gapwatch.statistics.estimates.rates import wilson

STEPS_A_SIDE = 20
FEWEST_OF_A_STEP = 10


@dataclass(frozen=True)
class SeriesStep:
    """Episodes next to one another: a rate with Wilson's interval, or a median between quartiles."""

    first_at: datetime
    last_at: datetime
    n: int
    value: float
    interval: Interval


def series_steps(
    values: Sequence[tuple[datetime, float]], changed_at: datetime, *, is_rate: bool
) -> list[list[SeriesStep]]:
    """Steps before the change and since, of equal numbers of episodes on each side."""
    before = [row for row in values if row[0] < changed_at]
    since = [row for row in values if row[0] >= changed_at]
    return [_steps(side, is_rate) for side in (before, since) if side]


def _steps(side: Sequence[tuple[datetime, float]], is_rate: bool) -> list[SeriesStep]:
    wanted = max(1, min(STEPS_A_SIDE, len(side) // FEWEST_OF_A_STEP))
    parts = np.array_split(np.arange(len(side)), wanted)
    return [_step([side[place] for place in part], is_rate) for part in parts if part.size]


def _step(rows: Sequence[tuple[datetime, float]], is_rate: bool) -> SeriesStep:
    numbers, n = [value for _, value in rows], len(rows)
    first_at, last_at = rows[0][0], rows[-1][0]
    if is_rate:
        return SeriesStep(first_at, last_at, n, sum(numbers) / n, wilson(sum(numbers), n))
    low, middle, high = (float(bound) for bound in np.quantile(numbers, (0.25, 0.5, 0.75)))
    return SeriesStep(first_at, last_at, n, middle, (low, high))
