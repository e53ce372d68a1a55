"""Logistic regression for few columns and many candidates: Newton's method, and score tests of what is left out.

Written here because the ledger needs score tests of a hundred candidates a step and scores of single episodes, in
milliseconds; statsmodels refits for each and scikit-learn has neither.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
STEPS = 25
SETTLED = 1e-6
SMALLEST_STEP = 1e-3


@dataclass(frozen=True)
class LogisticFit:
    """`place`: the coefficients; `bend`: the penalised information; `rate`: the fitted chance of each row."""

    place: Array
    bend: Array
    rate: Array
    log_likelihood: float

    @property
    def spread(self) -> Array:
        return self.rate * (1 - self.rate)


def fit_logistic(x: Array, y: Array, offset: Array, precision: Array, start: Array | None = None) -> LogisticFit:
    """The posterior mode under normal priors around 0 with these precisions."""
    from scipy.special import expit, log_expit

    if start is None:
        mean = float(np.clip(y.mean(), 1e-4, 1 - 1e-4))
        place = np.zeros(x.shape[1])
        place[0] = np.log(mean / (1 - mean)) - float(offset.mean())
    else:
        place = start
    sign = 1 - 2 * y

    def height(at: Array) -> float:
        return float(log_expit(-sign * (x @ at + offset)).sum() - precision @ at**2 / 2)

    reached = height(place)
    for _ in range(STEPS):
        rate = expit(x @ place + offset)
        slope = x.T @ (y - rate) - precision * place
        bend = (x * (rate * (1 - rate))[:, None]).T @ x + np.diag(precision)
        step = np.linalg.solve(bend, slope)
        size = 1.0
        # Newton's step may go too far where nearly all rows are alike; half of it, or less, climbs.
        while (higher := height(place + size * step)) < reached and size > SMALLEST_STEP:
            size /= 2
        if higher < reached:
            break
        place, gained, reached = place + size * step, higher - reached, higher
        if gained < SETTLED:
            break
    rate = expit(x @ place + offset)
    bend = (x * (rate * (1 - rate))[:, None]).T @ x + np.diag(precision)
    return LogisticFit(place, bend, rate, float(log_expit(-sign * (x @ place + offset)).sum()))


def score_tests(fit: LogisticFit, x: Array, y: Array, candidates: Array) -> Array:
    """z of adding each candidate to the fit, positive where it goes with failing."""
    spread = fit.spread
    slope = candidates.T @ (y - fit.rate)
    shared = (candidates * spread[:, None]).T @ x
    room = (candidates**2).T @ spread
    left = room - np.einsum("ij,ji->i", shared, np.linalg.solve(fit.bend, shared.T))
    # What the fit's own columns already say has nothing left to add.
    return np.where(left > 1e-3 * room, slope / np.sqrt(np.maximum(left, 1e-12)), 0.0)
