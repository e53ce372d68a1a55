"""Whether unusual values of a signal go with failing: how far they can be blamed for the failures they come with.

Real robots differ from their simulators in many ways that cost nothing. A signal that is unusual in every real
episode, failed or not, explains no failure, however far out it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.causes.signals import Shape

Array = NDArray[np.float64]
CERTAINTY = 0.975
# The effects of a signal and of "being real" have this prior spread, in log-odds.
PRIOR_SPREAD = 2.0
# The share of the effect below which a signal has no credit, and from which on it has all.
NO_CREDIT, FULL_CREDIT = 0.1, 0.35
FARTHEST = 20.0
# Newton's method ends when nothing moves by more; its next step would be of the square of this.
SETTLED = 1e-7


@dataclass(frozen=True)
class SignalOutcomes:
    """A signal's values in the successes and in the failures of one side."""

    successes: Shape
    failures: Shape


def signal_credit(
    low: float,
    median: float,
    high: float,
    sim: SignalOutcomes,
    real: SignalOutcomes,
    side: Literal["above", "below"],
) -> float:
    """The credit, from 0 to 1, of values on one side of the usual range.

    Two factors. The first: of the failures with such values, the share that would not be there at the failure
    rate of usual values, at least: 1 − p_usual / p_unusual, with the exact 97.5 % lower limit for p_unusual, of
    all episodes or of the real ones, whichever says more. The second: is it this signal, or just being real?
    Log-odds of failure = a + b · dose + c · real, dose = distance beyond the limit by its mean in reality, b and c
    with one normal prior, spread 2; the share b/(b + c), taken as none below 0.1 and as all from 0.35. Where all
    real episodes have one dose, b = c and nothing speaks against the signal. Where doses vary and failures do not
    follow them, b is near 0. Assumes independent episodes and a failure rate that rises with the distance.
    Sources: Levin 1953 (attributable fraction); Clopper and Pearson 1934. Smallest n: a single failure with an
    unusual value has no credit where usual values fail in more than 2.5 %.
    """
    limit = high if side == "above" else low
    room = abs(limit - median)
    shapes = (sim.successes, sim.failures, real.successes, real.failures)
    sizes = [shape.values.size for shape in shapes]
    domain, failed = np.repeat([0.0, 0.0, 1.0, 1.0], sizes), np.repeat([0.0, 1.0, 0.0, 1.0], sizes)
    values, counts = (np.concatenate(of) for of in zip(*((s.values, s.counts) for s in shapes), strict=True))
    beyond = values - limit if side == "above" else limit - values
    outside = beyond > 1e-9 * np.maximum(abs(limit), np.abs(values))
    dose = np.where(outside, np.minimum(beyond / room, FARTHEST) if room > 0 else 1.0, 0.0)
    # Sim episodes just outside the range would water down what reality shows; where reality has few, sim helps.
    exposed, in_real = dose > 0, (domain > 0) | (dose <= 0)
    least = max(
        _attributable(exposed, failed, counts),
        _attributable(exposed[in_real], failed[in_real], counts[in_real]),
    )
    there = (domain > 0) & exposed
    if least <= 0 or not there.any():
        return least
    dose = dose / (dose[there] @ counts[there] / counts[there].sum())
    b, c = (max(effect, 0.0) for effect in _effects(dose, domain, failed, counts))
    share = b / (b + c) if b > 0 else 0.0
    return least * float(np.clip((share - NO_CREDIT) / (FULL_CREDIT - NO_CREDIT), 0, 1))


def _attributable(exposed: NDArray[np.bool_], failed: Array, counts: Array) -> float:
    from scipy.special import betaincinv

    k_counts = counts * failed
    n, k = exposed @ counts, exposed @ k_counts
    rest, rest_failed = counts.sum() - n, k_counts.sum() - k
    if k <= 0 or rest <= 0:
        return 0.0
    lowest = float(betaincinv(k, n - k + 1, 1 - CERTAINTY))
    return max(0.0, 1 - float((rest_failed + 0.5) / (rest + 1)) / lowest)


def _effects(dose: Array, domain: Array, failed: Array, counts: Array) -> tuple[float, float]:
    """The posterior mode of b and c by Newton's method; a, the log-odds of sim, has no prior to speak of."""
    from scipy.special import expit

    x = np.array([np.ones_like(dose), dose, domain])
    precision = np.diag([1e-6, PRIOR_SPREAD**-2, PRIOR_SPREAD**-2])
    overall = float(failed @ counts / counts.sum())
    place = np.array([np.log((overall + 1e-3) / (1 - overall + 1e-3)), 0.0, 0.0])
    for _ in range(15):
        rate = expit(place @ x)
        slope = x @ (counts * (failed - rate)) - precision @ place
        bend = (x * (counts * rate * (1 - rate))) @ x.T + precision
        step = np.maximum(np.minimum(np.linalg.solve(bend, slope), 2), -2)
        place = place + step
        if np.abs(step).max() < SETTLED:
            break
    return float(place[1]), float(place[2])
