"""Does a plan keep its promise: seeded plans with known rates, made from a small pilot and then carried out.

    python -m bench.plans [--plans 1000] [--trials 200]

Six strata of rates .99 to .5 in another order of shares for every plan, sim 8 points too good, and 3, 5 or 10 pilot trials a
stratum. Promised is the width of the drop's interval; kept is a promise within a fifth of what was obtained. Beside the
service's own: the plug-in formula, and sim's rates as the prior. Ends with 1 if the service keeps fewer than 95 %. The same
seed gives the same table on every machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.plans.allocation import Stratum, TrialBudget, allocate, neyman, whole
from gapwatch.statistics.plans.forecast import ForecastCell, forecast_drop, stratified_drop

SEED = 20261120
RATES = np.array([0.99, 0.95, 0.9, 0.8, 0.65, 0.5])
SHARES = np.array([0.05, 0.25, 0.12, 0.3, 0.08, 0.2])
PILOTS = (3, 5, 10)
SIM_N, OPTIMISM, RUNS = 500, 0.08, 500
NEAR, WANTED = 0.2, 0.95

Numbers = NDArray[np.float64]
# From shares, pilot successes, pilot size, sim successes and trials: how many each stratum gets, and the promised width.
Planner = Callable[[Numbers, Numbers, int, Numbers, int], tuple[list[int], float]]


def cells_of(shares: Numbers, good: Numbers, n: Numbers, further: list[int], sim: Numbers) -> list[ForecastCell]:
    return [
        ForecastCell(float(w), int(k), int(size), more, int(s), SIM_N)
        for w, k, size, more, s in zip(shares, good, n, further, sim, strict=True)
    ]


def service(shares: Numbers, pilot: Numbers, size: int, sim: Numbers, trials: int) -> tuple[list[int], float]:
    strata = [Stratum(w, k, size) for w, k in zip(shares, pilot, strict=True)]
    further = allocate(strata, TrialBudget(trials))
    cells = cells_of(shares, pilot, np.full(6, size), further, sim)
    return further, forecast_drop(cells, runs=RUNS).width


def plug_in(shares: Numbers, pilot: Numbers, size: int, sim: Numbers, trials: int) -> tuple[list[int], float]:
    """Neyman's allocation and the normal formula, as textbooks have them, at the pilot's own rates."""
    rates = pilot / size
    spreads = np.sqrt(rates * (1 - rates))
    further = whole(neyman((shares * spreads).tolist(), trials), trials)
    n = size + np.array(further)
    sim_rates = sim / SIM_N
    variance = (shares**2 * (spreads**2 / n + sim_rates * (1 - sim_rates) / SIM_N)).sum()
    return further, float(2 * 1.96 * np.sqrt(variance))


def sim_as_prior(shares: Numbers, pilot: Numbers, size: int, sim: Numbers, trials: int) -> tuple[list[int], float]:
    """The pilot is believed no more than a hundred sim episodes a stratum."""
    believed = pilot + 100 * sim / SIM_N
    strata = [Stratum(w, k, size + 100) for w, k in zip(shares, believed, strict=True)]
    further = allocate(strata, TrialBudget(trials))
    rates = believed / (size + 100)
    n = size + np.array(further)
    variance = (shares**2 * (rates * (1 - rates) / n + sim / SIM_N * (1 - sim / SIM_N) / SIM_N)).sum()
    return further, float(2 * 1.96 * np.sqrt(variance))


PLANNERS: dict[str, Planner] = {
    "Jeffreys predictive, smoothed allocation (the service)": service,
    "plug-in Neyman and formula": plug_in,
    "sim's rates as prior": sim_as_prior,
}


def kept_by(planner: Planner, size: int, plans: int, trials: int) -> tuple[float, float]:
    """The share of plans whose promise was kept, and the mean squared error against an equal split."""
    generator = np.random.default_rng((SEED, size))
    kept, errors = [], []
    for _ in range(plans):
        rates, shares = generator.permutation(RATES), generator.permutation(SHARES)
        pilot = generator.binomial(size, rates).astype(float)
        sim = generator.binomial(SIM_N, np.minimum(1, rates + OPTIMISM)).astype(float)
        further, promised = planner(shares, pilot, size, sim, trials)
        good = pilot + generator.binomial(further, rates)
        n = size + np.array(further)
        found = stratified_drop(cells_of(shares, good, n, [0] * 6, sim))
        kept.append(abs(promised / (found.high - found.low) - 1) <= NEAR)
        equal = size + np.full(6, trials / 6)
        errors.append(
            (shares**2 * rates * (1 - rates) / n).sum() / (shares**2 * rates * (1 - rates) / equal).sum()
        )
    return float(np.mean(kept)), float(np.mean(errors))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=200)
    options = parser.parse_args(arguments)
    worst = 1.0
    print(
        f"{options.plans} plans of {options.trials} trials; promise within 20 % of the obtained width · variance against an equal split"
    )
    for name, planner in PLANNERS.items():
        found = [kept_by(planner, size, options.plans, options.trials) for size in PILOTS]
        if planner is service:
            worst = min(kept for kept, _ in found)
        cells = " | ".join(
            f"pilot {size}: {100 * kept:5.1f} % · {error:.2f}"
            for size, (kept, error) in zip(PILOTS, found, strict=True)
        )
        print(f"{name:<56} {cells}")
    return 0 if worst >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
