"""What each cause of a model of failure says, in numbers and a sentence: how frequent it is, what it costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapwatch.statistics.causes.failed_episodes import Array
from gapwatch.statistics.causes.failure_model import FittedModel, Term
from gapwatch.statistics.causes.side_sample import SideSample

# Shares that differ by less than this factor are called alike.
ALIKE = 1.25


@dataclass(frozen=True)
class TermFact:
    """`in_sim`, `in_real`: the share of episodes it is met in. `cost`: by how much the chance to fail rises there.

    `mix` of its points of the drop is because real meets more of it, `rate` because it costs more in real.
    """

    name: str
    level: str | None
    categories: tuple[str, ...]
    in_sim: float | None
    in_real: float
    cost: float
    z: float
    mix: float
    rate: float
    never_simulated: bool
    one_of_these: bool
    sentence: str


def term_facts(fitted: FittedModel, sim: SideSample, real: SideSample) -> tuple[TermFact, ...]:
    """One for each term of the model, in the order in which they were found."""
    from scipy.special import expit

    model, rows = fitted.model, fitted.rows
    weights = np.concatenate([_stands_for(side) for side in (sim, real)])
    base = float(model.place[0])
    facts = []
    for number, term in enumerate(model.terms):
        column = fitted.x[:, 1 + number]
        line = fitted.x @ model.place
        added = expit(line) - expit(line - term.effect * column)
        is_real = rows.real > 0
        in_sim, in_real = (_mean(column > 0, weights, side) for side in (~is_real, is_real))
        dose = column[is_real & (column > 0)]
        typical = float(np.median(dose)) if len(dose) else 1.0
        cost = float(expit(base + term.effect * typical) - expit(base))
        points = _mean(added, weights, is_real) - _mean(added, weights, ~is_real)
        is_rate = term.candidate.kind == "level in real"
        facts.append(
            TermFact(
                term.candidate.name,
                term.candidate.level or None,
                term.categories,
                in_sim if term.candidate.simulated else None,
                in_real,
                cost,
                term.z,
                0.0 if is_rate else points,
                points if is_rate else 0.0,
                not term.candidate.simulated,
                term.is_joint,
                _sentence(term, in_sim, in_real, cost, sim, real),
            )
        )
    return tuple(facts)


def _sentence(term: Term, in_sim: float, in_real: float, cost: float, sim: SideSample, real: SideSample) -> str:
    candidate, points = term.candidate, f"{100 * cost:.0f} points"
    if term.is_joint:
        names = ", ".join(f"{one.name} {one.level}".strip() for one in (candidate, *term.others))
        return f"one of {names}, which were never varied apart, costs {points}"
    if candidate.kind in ("above", "below"):
        medians = [_median(side, candidate.name) for side in (real, sim)]
        here = f"{candidate.name} ({medians[0]:.3g} here, {medians[1]:.3g} in sim)"
        if not candidate.simulated:
            here = f"{candidate.name}, which sim does not log ({medians[0]:.3g} here),"
        return f"{here} lies {candidate.kind} what is usual and costs {points} where it does"
    what = f"{candidate.name} {candidate.level}"
    if not candidate.simulated:
        return f"{what} was never simulated, is met in {100 * in_real:.0f} % of real episodes and costs {points}"
    if candidate.kind == "level in real":
        return f"{what} costs {points} more here than in sim"
    return f"{what} is {_frequency(in_sim, in_real)} and costs {points} wherever it occurs"


def _frequency(in_sim: float, in_real: float) -> str:
    ratio = in_real / in_sim if in_sim > 0 else float("inf")
    if 1 / ALIKE < ratio < ALIKE:
        return "as frequent here as in sim"
    return f"{ratio:.1f} times as frequent here" if ratio > 1 else f"{1 / ratio:.1f} times as rare here"


def _median(side: SideSample, name: str) -> float:
    values = np.concatenate([batch.signals.get(name, np.zeros(0)) for batch in (side.succeeded, side.failed)])
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else float("nan")


def _stands_for(side: SideSample) -> Array:
    sizes = [len(side.succeeded), len(side.failed)]
    each = [(side.n - side.failures) / max(1, sizes[0]), side.failures / max(1, sizes[1])]
    return np.repeat(each, sizes)


def _mean(values: Array | np.ndarray, weights: Array, rows: np.ndarray) -> float:
    total = float(weights[rows].sum())
    return float(values[rows] @ weights[rows]) / total if total else 0.0
