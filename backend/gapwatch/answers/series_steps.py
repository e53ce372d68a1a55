"""A watched series as a line of a few points: none of them spans the change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from gapwatch.answers.answer import Interval
from gapwatch.statistics.estimates.rates import wilson

STEPS_A_RUN = 16
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
    values: Sequence[tuple[datetime, float]],
    changed_at: datetime,
    newest_from: datetime | None = None,
    *,
    is_rate: bool,
) -> list[list[SeriesStep]]:
    """Runs of steps: before the change, next after it, and of the newest values where some lie between."""
    cuts = [changed_at] if newest_from is None or newest_from <= changed_at else [changed_at, newest_from]
    runs: list[list[tuple[datetime, float]]] = [[] for _ in range(len(cuts) + 1)]
    for at, value in values:
        runs[sum(at >= cut for cut in cuts)].append((at, value))
    return [_steps(run, is_rate) for run in runs if run]


def _steps(side: Sequence[tuple[datetime, float]], is_rate: bool) -> list[SeriesStep]:
    wanted = max(1, min(STEPS_A_RUN, len(side) // FEWEST_OF_A_STEP))
    parts = np.array_split(np.arange(len(side)), wanted)
    return [_step([side[place] for place in part], is_rate) for part in parts if part.size]


def _step(rows: Sequence[tuple[datetime, float]], is_rate: bool) -> SeriesStep:
    numbers, n = [value for _, value in rows], len(rows)
    first_at, last_at = rows[0][0], rows[-1][0]
    if is_rate:
        return SeriesStep(first_at, last_at, n, sum(numbers) / n, wilson(sum(numbers), n))
    low, middle, high = (float(bound) for bound in np.quantile(numbers, (0.25, 0.5, 0.75)))
    return SeriesStep(first_at, last_at, n, middle, (low, high))
