"""What one criterion of a gate has come to: pass, fail, or not enough evidence with the number that is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, log
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.estimates.rates import confidence_sequence
from gapwatch.statistics.gates.evidence import CLOSEST, MOST_LOG_E, Bets, Path, bets_above, bets_on_any, follow
from gapwatch.statistics.gates.limits import REFERENCE_SHARE, clean_needed, clean_upper, exact_lower, exact_upper

GateVerdict = Literal["pass", "fail", "not enough evidence"]
PASS: GateVerdict = "pass"  # noqa: S105 - no password
FAIL: GateVerdict = "fail"
OPEN: GateVerdict = "not enough evidence"
# Beyond this many more episodes a criterion is called out of reach.
OUT_OF_REACH = 1_000_000
# With fewer, what is missing is told for the rate that the plan expects.
FEWEST_MEASURED = 30

Outcomes = Sequence[float] | NDArray[np.float64]


@dataclass(frozen=True)
class Reference:
    """What the candidate is compared with, as it stood when the plan was frozen; in a mix, what that is worth."""

    successes: float
    n: float

    @property
    def value(self) -> float:
        return self.successes / self.n


@dataclass(frozen=True)
class Standing:
    """`missing`: episodes (or days) until a pass at the rate measured so far; None where more would not help or
    none are needed. `passed_at`: the episode after which it passed.
    """

    verdict: GateVerdict
    n: int
    measured: float | None
    interval: tuple[float, float] | None
    e_value: float | None
    missing: int | None
    passed_at: int | None = None


def drop_boundary(reference: Reference, margin: float, alpha: float) -> float:
    """The real rate that must be exceeded: the reference's upper limit less the margin.

    A fifth of α is spent on the reference's limit, the rest on the e-process: .01 and .04 of .05.
    """
    return exact_upper(reference.successes, reference.n, REFERENCE_SHARE * alpha) - margin


def drop_bets(reference: Reference, margin: float, alpha: float) -> Bets | None:
    """None where even an equal policy could not pass: the reference is too small for the margin."""
    boundary = drop_boundary(reference, margin, alpha)
    if not boundary < reference.value:
        return None
    return bets_above(boundary, max(reference.value, boundary + margin / 4))


def drop_standing(
    reference: Reference,
    good: Outcomes,
    margin: float,
    alpha: float,
    design_effect: float = 1.0,
    rates: NDArray[np.float64] | None = None,
) -> Standing:
    """Non-inferiority: the drop from the reference is smaller than the margin.

    `rates`: what the reference does under the conditions of each episode, where that differs; it is then in their
    mix.
    """
    outcomes = np.asarray(good, dtype=float)
    n, spent = len(outcomes), (1 - REFERENCE_SHARE) * alpha
    drop = None if not n else reference.value - float(outcomes.mean())
    interval = None if not n else _drop_interval(reference, outcomes, alpha, design_effect)
    bets = drop_bets(reference, margin, alpha)
    if bets is None:
        return Standing(OPEN, n, drop, interval, None, None)
    path = follow(bets, outcomes, spent, design_effect, boundaries_in(bets.boundary, reference, rates))
    low = exact_lower(reference.successes, reference.n, REFERENCE_SHARE * alpha) - margin
    against = Path(0.0, 0.0, None)
    if low > 0:
        lows = boundaries_in(low, reference, rates)
        opposite = None if lows is None else 1 - lows
        against = follow(bets_on_any(1 - low), 1 - outcomes, spent, design_effect, opposite)
    return _decided(bets, path, against, outcomes, spent, design_effect, drop, interval, reference.value)


def boundaries_in(
    boundary: float, reference: Reference, rates: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """The boundary under the conditions of each episode: as far below the reference there as on the whole."""
    return None if rates is None else np.clip(rates + (boundary - reference.value), CLOSEST, 1 - 2 * CLOSEST)


def _drop_interval(
    reference: Reference, outcomes: NDArray[np.float64], alpha: float, design_effect: float
) -> tuple[float, float]:
    """Holds at every look together with the reference's limits: their errors add up to alpha."""
    n = len(outcomes) / design_effect
    low, high = confidence_sequence(float(outcomes.sum()) / design_effect, n, (1 - REFERENCE_SHARE) * alpha)
    half = REFERENCE_SHARE * alpha / 2
    return (
        exact_lower(reference.successes, reference.n, half) - high,
        exact_upper(reference.successes, reference.n, half) - low,
    )


def rate_standing(
    events: Outcomes, limit: float, alpha: float, *, is_most: bool, design_effect: float = 1.0
) -> Standing:
    """A rate of events below (`is_most`) or above a limit, by an e-process of its own."""
    outcomes = np.asarray(events, dtype=float)
    n = len(outcomes)
    good = 1 - outcomes if is_most else outcomes
    boundary = 1 - limit if is_most else limit
    bets, opposite = bets_on_any(boundary), bets_on_any(1 - boundary)
    measured = float(outcomes.mean()) if n else None
    interval = confidence_sequence(float(outcomes.sum()) / design_effect, n / design_effect, alpha) if n else None
    path, against = follow(bets, good, alpha, design_effect), follow(opposite, 1 - good, alpha, design_effect)
    expected = 1 - limit / 2 if is_most else (1 + limit) / 2
    return _decided(bets, path, against, good, alpha, design_effect, measured, interval, expected)


def _decided(
    bets: Bets,
    path: Path,
    against: Path,
    good: NDArray[np.float64],
    alpha: float,
    design_effect: float,
    measured: float | None,
    interval: tuple[float, float] | None,
    expected: float,
) -> Standing:
    """What speaks against it outweighs an earlier pass."""
    n, e_value = len(good), exp(path.log_e)
    if against.reached_at is not None:
        return Standing(FAIL, n, measured, interval, e_value, None, path.reached_at)
    if path.reached_at is not None:
        return Standing(PASS, n, measured, interval, e_value, None, path.reached_at)
    rate = float(good.mean()) if n >= FEWEST_MEASURED else expected
    growth = bets.growth(rate)
    wanting = log(1 / alpha) - path.log_e
    missing = ceil(wanting / growth * design_effect) if growth > 0 else OUT_OF_REACH
    return Standing(OPEN, n, measured, interval, e_value, missing if missing < OUT_OF_REACH else None)


def clean_standing(events: Outcomes, limit: float, alpha: float) -> Standing:
    """No event at all, in enough episodes to prove a rate below the limit. One event is a fail."""
    outcomes = np.asarray(events, dtype=float)
    n, found = len(outcomes), int(np.count_nonzero(outcomes))
    if found:
        return Standing(FAIL, n, found / n, confidence_sequence(found, n, alpha), 0.0, None)
    needed = clean_needed(limit, alpha)
    e_value = exp(min(MOST_LOG_E, -n * log(1 - limit)))
    measured, interval = (0.0, (0.0, clean_upper(n, alpha))) if n else (None, None)
    if n >= needed:
        return Standing(PASS, n, measured, interval, e_value, None, needed)
    return Standing(OPEN, n, measured, interval, e_value, needed - n)


def count_standing(found: int, needed: int) -> Standing:
    """Something that is counted and reaches its number or not."""
    verdict = PASS if found >= needed else OPEN
    return Standing(verdict, found, float(found), None, None, None if verdict == PASS else needed - found)


def gate_verdict(verdicts: Sequence[GateVerdict]) -> GateVerdict:
    """One fail fails the gate; a gate without criteria never passes."""
    if FAIL in verdicts:
        return FAIL
    return PASS if verdicts and all(verdict == PASS for verdict in verdicts) else OPEN
