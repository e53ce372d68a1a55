"""What was measured: how far each signal's distribution in real is from the one in sim, most shifted first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gapwatch.answers.answer import Answer, Interval
from gapwatch.answers.answer_kind import AnswerKind, AnswerTable, TableRow
from gapwatch.answers.comparison_side import ComparisonSide
from gapwatch.answers.needs import Need
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields
from gapwatch.filters import AgainstFilter
from gapwatch.statistics.causes.signals import SignalShift, compare_signal
from gapwatch.statistics.estimates import sketches
from gapwatch.statistics.estimates.multiplicity import benjamini_hochberg
from gapwatch.statistics.estimates.sketches import Sketch
from gapwatch.taxonomy import Taxonomy

NEEDS = ANSWER_FIELDS | Need.SIGNALS

CURVE_POINTS = 60
# Curves of so many signals, the most surely shifted; the others are told in numbers.
MOST_DRAWN = 40
# A move is told of if it is established and no negligible one (Cliff's delta, Romano et al. 2006).
ALPHA, LEAST_MOVE = 0.05, 0.147


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
class SignalMove:
    """How far the signal of the real episodes moved at the change, in the way of `effect`: since against before.

    `is_established`: chance explains it in less than 5 %, false discoveries over all signals bounded, and it is no
    small shift.
    """

    effect: float
    interval: Interval
    q_value: float
    is_established: bool
    n_before: int
    median_before: float | None
    curve_before: tuple[tuple[float, float], ...] = ()


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
    moved: SignalMove | None = None


@dataclass(frozen=True, kw_only=True)
class SignalsAnswer(Answer):
    signals: tuple[SignalAnswer, ...]
    sampled: bool
    method: str
    # How many signals moved at the change; null where none is known, or another window is asked for.
    moved: int | None = None


def answer_signals(sides: Sides) -> SignalsAnswer:
    names = sorted({*sides.sim.signals, *sides.real.signals})
    measured = {name: (_of(sides.sim, name), _of(sides.real, name)) for name in names}
    shifts = {name: compare_signal(sim.sketch, real.sketch) for name, (sim, real) in measured.items()}
    tested = [name for name, shift in shifts.items() if shift.p_value is not None]
    q_values = dict(zip(tested, benjamini_hochberg([shifts[name].p_value or 0.0 for name in tested]), strict=True))
    moves = _moves(sides, measured)
    order = sorted(names, key=lambda name: (*_moved_first(moves.get(name)), -_surely_shifted(shifts[name]), name))
    return SignalsAnswer(
        **answer_fields(sides, None if names else "No episode has a signal."),
        signals=tuple(
            _signal(
                sides.taxonomy,
                name,
                shifts[name],
                q_values.get(name),
                measured[name],
                moves.get(name),
                drawn=index < MOST_DRAWN,
            )
            for index, name in enumerate(order)
        ),
        moved=None
        if sides.before is None or sides.sim.is_before
        else sum(one.is_established for one in moves.values()),
        sampled=sides.sim.is_sampled or sides.real.is_sampled,
        method="Cliff's delta with an interval from placements, from sketches within 1 %; Benjamini–Hochberg",
    )


@dataclass(frozen=True)
class _Measured:
    """A signal on one side, successes and failures together."""

    moments: sketches.Moments
    sketch: Sketch


def _moves(sides: Sides, measured: Mapping[str, tuple[_Measured, _Measured]]) -> dict[str, SignalMove]:
    """How the signals of the present differ from those before it, where there was a change."""
    before = sides.before
    if before is None or sides.sim.is_before:
        return {}
    earlier = {name: _of(before, name) for name in measured}
    shifts = {name: compare_signal(earlier[name].sketch, real.sketch) for name, (_, real) in measured.items()}
    tested = [name for name, shift in shifts.items() if shift.p_value is not None]
    q_values = benjamini_hochberg([shifts[name].p_value or 0.0 for name in tested])
    moves = {}
    for name, q in zip(tested, q_values, strict=True):
        delta, interval = shifts[name].delta, shifts[name].interval
        if delta is not None and interval is not None:
            established = q < ALPHA and abs(delta) >= LEAST_MOVE
            median = sketches.quantile(earlier[name].sketch, 0.5)
            curve = tuple(sketches.ecdf(earlier[name].sketch, CURVE_POINTS)) if established else ()
            n = earlier[name].moments.n
            moves[name] = SignalMove(delta, interval, q, established, n, median, curve)
    return moves


def _moved_first(move: SignalMove | None) -> tuple[bool, float]:
    """What moved at the change, the surest first, before what always was so."""
    if move is None or not move.is_established:
        return True, 0.0
    return False, -max(move.interval[0], -move.interval[1])


def _of(side: ComparisonSide, name: str) -> _Measured:
    rollups = side.signals.get(name, {}).values()
    moments = sum((rollup.moments for rollup in rollups), sketches.Moments())
    return _Measured(moments, sketches.merge([rollup.sketch for rollup in rollups]))


def _surely_shifted(shift: SignalShift) -> float:
    """The end of the interval that is nearer to no shift: small n cannot win."""
    if shift.interval is None:
        return -1.0
    low, high = shift.interval
    return max(low, -high)


def _signal(
    taxonomy: Taxonomy,
    name: str,
    shift: SignalShift,
    q_value: float | None,
    measured: tuple[_Measured, _Measured],
    move: SignalMove | None,
    *,
    drawn: bool,
) -> SignalAnswer:
    sim, real = measured
    return SignalAnswer(
        name,
        taxonomy.categories_of("signals", name),
        "both" if sim.moments.n and real.moments.n else "sim only" if sim.moments.n else "real only",
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
        _side(sim, drawn),
        _side(real, drawn),
        shift.reason,
        move,
    )


def _side(measured: _Measured, drawn: bool) -> SignalSide:
    p05, median, p95 = (sketches.quantile(measured.sketch, q) for q in (0.05, 0.5, 0.95))
    curve = tuple(sketches.ecdf(measured.sketch, CURVE_POINTS)) if drawn else ()
    return SignalSide(measured.moments.n, measured.moments.mean, median, p05, p95, curve)


def table_rows(answer: SignalsAnswer) -> list[TableRow]:
    return [
        [
            "signal",
            "categories",
            "n_sim",
            "sim_median",
            "n_real",
            "real_median",
            "effect",
            "low",
            "high",
            "q_value",
            "moved",
            "moved_low",
            "moved_high",
            "before_median",
        ],
        *(
            [
                signal.signal,
                " ".join(signal.categories),
                signal.sim.n,
                signal.sim.median,
                signal.real.n,
                signal.real.median,
                signal.effect,
                *(signal.interval or (None, None)),
                signal.q_value,
                *(
                    (None, None, None, None)
                    if signal.moved is None
                    else (signal.moved.effect, *signal.moved.interval, signal.moved.median_before)
                ),
            ]
            for signal in answer.signals
        ),
    ]


KIND = AnswerKind(
    name="signals",
    answer_type=SignalsAnswer,
    answer=answer_signals,
    needs=NEEDS,
    summary="What was measured differently",
    gives="The shift of each signal.",
    description=(
        "How far each signal's distribution in real is from the one in sim, most surely shifted first.\n\n"
        "With `window=now`, where something changed, those that moved at the change come first: `moved` holds the "
        "real episodes since it against those before it. What sim always had otherwise follows."
    ),
    filter=AgainstFilter,
    table=AnswerTable("signals", table_rows),
)
