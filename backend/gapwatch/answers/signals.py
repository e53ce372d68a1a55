"""What was measured: how far each signal's distribution in real is from the one in sim, most shifted first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gapwatch.answers.answer import Answer, Interval
from gapwatch.answers.comparison import Comparison
from gapwatch.answers.half import Half
from gapwatch.statistics import sketches
from gapwatch.statistics.multiplicity import benjamini_hochberg
from gapwatch.statistics.signals import SignalShift, compare_signal
from gapwatch.statistics.sketches import Sketch
from gapwatch.store.sides import ValueRollup

CURVE_POINTS = 60


@dataclass(frozen=True)
class SignalSide:
    """`curve` has (value, share of episodes at or below it), for drawing."""

    n: int
    mean: float | None
    median: float | None
    p05: float | None
    p95: float | None
    curve: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class SignalAnswer:
    """`effect` is Cliff's delta: −1 all real below sim, 0 no shift, 1 all real above."""

    signal: str
    categories: tuple[str, ...]
    seen: Literal["both", "sim only", "real only"]
    effect: float | None
    interval: Interval | None
    size: str | None
    q_value: float | None
    real_higher: float | None
    farthest_at: float | None
    ks: float | None
    wasserstein: float | None
    psi: float | None
    psi_critical: float | None
    sim: SignalSide
    real: SignalSide
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class SignalsAnswer(Answer):
    signals: tuple[SignalAnswer, ...]
    sampled: bool
    method: str


def answer_signals(comparison: Comparison) -> SignalsAnswer:
    sim, real = comparison.sim, comparison.real
    shifts = {name: _compare(sim, real, name) for name in sorted({*sim.signals, *real.signals})}
    tested = [name for name, shift in shifts.items() if shift.p_value is not None]
    q_values = dict(zip(tested, benjamini_hochberg([shifts[name].p_value or 0.0 for name in tested]), strict=True))
    order = sorted(shifts, key=lambda name: (-_surely_shifted(shifts[name]), name))
    reason = None if shifts else "No episode has a signal."
    return SignalsAnswer(
        **comparison.told(reason),
        signals=tuple(_told(comparison, name, shifts[name], q_values.get(name)) for name in order),
        sampled=sim.is_sampled or real.is_sampled,
        method="Cliff's delta with an interval from placements, from sketches within 1 %; Benjamini–Hochberg",
    )


def _compare(sim: Half, real: Half, name: str) -> SignalShift:
    return compare_signal(_sketch(sim.signals.get(name, {})), _sketch(real.signals.get(name, {})))


def _surely_shifted(shift: SignalShift) -> float:
    """The end of the interval that is nearer to no shift: small n cannot win."""
    if shift.interval is None:
        return -1.0
    low, high = shift.interval
    return max(low, -high)


def _told(comparison: Comparison, name: str, shift: SignalShift, q_value: float | None) -> SignalAnswer:
    in_sim, in_real = (half.signals.get(name, {}) for half in (comparison.sim, comparison.real))
    return SignalAnswer(
        name,
        comparison.taxonomy.categories_of("signals", name),
        "both" if in_sim and in_real else "sim only" if in_sim else "real only",
        shift.delta,
        shift.interval,
        shift.size,
        q_value,
        shift.real_higher,
        shift.ks_at,
        shift.ks,
        shift.wasserstein,
        shift.psi,
        shift.psi_critical,
        _side(in_sim),
        _side(in_real),
        shift.reason,
    )


def _side(outcomes: Mapping[Literal["success", "failure"], ValueRollup]) -> SignalSide:
    sketch = _sketch(outcomes)
    moments = sketches.Moments()
    for rollup in outcomes.values():
        moments = moments + rollup.moments
    p05, median, p95 = (sketches.quantile(sketch, q) for q in (0.05, 0.5, 0.95))
    return SignalSide(moments.n, moments.mean, median, p05, p95, tuple(sketches.ecdf(sketch, CURVE_POINTS)))


def _sketch(outcomes: Mapping[Literal["success", "failure"], ValueRollup]) -> Sketch:
    return sketches.merge([rollup.sketch for rollup in outcomes.values()])
