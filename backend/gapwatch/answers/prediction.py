"""The real success rate from few real and many sim episodes, beside the one from the real episodes alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gapwatch.answers.answer import Answer, Interval
from gapwatch.answers.answer_kind import AnswerKind
from gapwatch.answers.drop import SideValue, side_value
from gapwatch.answers.needs import Need
from gapwatch.answers.populations import Population, clusters_of_rows
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields
from gapwatch.answers.strata import condition_strata
from gapwatch.filters import PopulationFilter
from gapwatch.statistics.estimates.predictive import (
    FEWEST_PAIRS,
    Prediction,
    PredictionCell,
    predicted_by_cells,
    predicted_mean,
)
from gapwatch.statistics.estimates.rates import Cluster, Likeness, likeness_of
from gapwatch.store.read.sides import PairRow

NEEDS = ANSWER_FIELDS | Need.SESSIONS | Need.PLACES | Need.PAIRS | Need.CELLS

# Beyond this the further sim episodes no longer sharpen anything, and beyond that real ones need no help.
MOST_EXTRA = 20_000
MOST_REAL = 5000
# The p below which real comes in other shares than sim: then sim's mix is not the one that is asked about.
SHARES_DIFFER = 0.05


@dataclass(frozen=True)
class Predicted:
    """Null, with a reason, where sim does not help. `effective_n`: what the interval is worth in real episodes."""

    value: float | None
    interval: Interval | None
    rho: float | None
    weight: float | None
    effective_n: float | None
    pairs: int
    sim_episodes: int
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class PredictionAnswer(Answer):
    metric: str
    without: SideValue
    predicted: Predicted
    way: Literal["pairs", "cells", "none"]
    # Whom the intervals speak for.
    population: Population
    method: str


def answer_prediction(sides: Sides) -> PredictionAnswer:
    sim, real = sides.sim, sides.real
    pairs, population = sides.pairs, real.describe(real.population)
    if len(pairs) >= FEWEST_PAIRS:
        way: Literal["pairs", "cells", "none"] = "pairs"
        prediction = predicted_mean(
            [float(pair.real_success) for pair in pairs],
            [float(pair.sim_success) for pair in pairs],
            _further(
                sim.successes - sum(pair.sim_success for pair in pairs),
                sim.n - len(pairs),
            ),
            _likeness_of_pairs(pairs, population),
        )
    else:
        way, prediction = _by_cells(sides)
    method = prediction.method
    if population.by is not None:
        method += f", clustered by {population.by}"
    interval = None if prediction.low is None or prediction.high is None else (prediction.low, prediction.high)
    return PredictionAnswer(
        **answer_fields(sides),
        metric="success",
        without=side_value(real, sim),
        predicted=Predicted(
            prediction.value,
            interval,
            prediction.rho,
            prediction.weight,
            prediction.effective_n,
            len(pairs),
            prediction.extra,
            prediction.reason,
        ),
        way=way,
        population=population,
        method=method,
    )


def _likeness_of_pairs(pairs: Sequence[PairRow], population: Population) -> Likeness | None:
    """Of the corrections, real minus sim, by what differs in the population."""
    if population.by is None:
        return None
    apart = [float(pair.real_success) - float(pair.sim_success) for pair in pairs]
    return likeness_of(clusters_of_rows(pairs, apart, population.by), sum(value != 0 for value in apart))


def _further(successes: int, n: int) -> list[float]:
    """The sim episodes beyond the pairs, as outcomes; of very many, as many as still matter, at the same rate."""
    successes, n = max(0, successes), max(0, n)
    kept = min(n, MOST_EXTRA)
    ones = round(successes * kept / n) if n else 0
    return [1.0] * min(ones, kept) + [0.0] * (kept - min(ones, kept))


def _by_cells(sides: Sides) -> tuple[Literal["cells", "none"], Prediction]:
    """Without pairs the sim rate of its cell predicts each real episode, over sim's own mix of cells."""
    sim, real = sides.sim, sides.real

    def refused(reason: str) -> tuple[Literal["none"], Prediction]:
        nothing = (None, None, None, None, None, None)
        return "none", Prediction(*nothing, real.n, sim.n, "prediction-powered", reason)

    if not sim.n or not real.n:
        return refused("One side has no episodes.")
    if real.n > MOST_REAL:
        return refused(f"{real.n} real episodes need no help from sim.")
    strata = condition_strata(sides.table)
    if not strata.names:
        return refused("Fewer than ten pairs, and no condition that both sides report.")
    table = np.array(list(strata.counts.values()), dtype=float)
    if _shares_differ(table):
        return refused("Real conditions come in other shares than sim's, so sim's mix does not predict them.")
    cells = [PredictionCell(int(c[0]), int(c[1]), int(c[2]), int(c[3]), float(c[1] / sim.n)) for c in table]
    side = real.drop_side
    alike = None
    if side.clustered:
        counts = side.clusters or ()
        alike = likeness_of([Cluster(n, k, k) for k, n in counts], min(real.successes, real.failures))
    return "cells", predicted_by_cells(cells, alike)


def _shares_differ(table: np.ndarray) -> bool:
    from scipy.stats import chi2_contingency

    sizes = table[:, [1, 3]]
    return len(sizes) > 1 and float(chi2_contingency(sizes).pvalue) < SHARES_DIFFER


KIND = AnswerKind(
    name="prediction",
    answer_type=PredictionAnswer,
    answer=answer_prediction,
    needs=NEEDS,
    summary="The real rate with the help of sim",
    gives="With and without sim.",
    description=(
        "Prediction-powered success from few real and many sim episodes, beside the real episodes alone.\n\n"
        "From ten pairs on; without pairs from the sim rate of each combination of conditions. Refused, with "
        "a reason, where sim says too little about real."
    ),
    filter=PopulationFilter,
)
