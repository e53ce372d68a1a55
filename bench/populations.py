"""Whom an interval speaks for: how often drops, slices, metrics and trust hold the truth in fleets that differ.

Every row is a world with its target: robots or sites whose own rates vary, sessions that resemble themselves, metrics
with long tails or many zeros, simulators of known fidelity. Seeded; `--runs` and `--seed` change how long and which.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from gapwatch.answers.populations import crowding_of
from gapwatch.statistics.causes.slices import Slice, slice_drops
from gapwatch.statistics.estimates.drops import MetricSums, Side, paired_drop, rate_drop
from gapwatch.statistics.estimates.predictive import Prediction, PredictionCell, predicted_by_cells, predicted_mean
from gapwatch.statistics.estimates.rates import Cluster, Likeness, likeness_of
from gapwatch.statistics.estimates.skewed_means import MeanSide, guarded_mean_drop
from gapwatch.statistics.estimates.trust import PolicyPoint, drawn_measures, mmrv

Random = np.random.Generator


@dataclass(frozen=True)
class Row:
    """`target` is the least share that must hold; of a family's errors (`most`), the largest."""

    world: str
    share: float
    target: float
    width: float | None = None
    is_most: bool = False

    @property
    def is_met(self) -> bool:
        return self.share <= self.target if self.is_most else self.share >= self.target


def cluster_counts(random: Random, clusters: int, size: int, rate: float, icc: float) -> list[tuple[int, int]]:
    """Successes and attempts of clusters whose own rates vary around a rate (beta-binomial)."""
    if icc == 0:
        own = np.full(clusters, rate)
    else:
        own = random.beta(rate * (1 / icc - 1), (1 - rate) * (1 / icc - 1), clusters)
    return [(int(random.binomial(size, p)), size) for p in own]


def drop_rows(random: Random, runs: int) -> Iterator[Row]:
    """The drop from a large sim to few robots or sites, for any robot or site like them."""
    for by, clusters, size in (("robot", 5, 60), ("site", 3, 100), ("site", 2, 100), ("robot", 20, 30)):
        for icc in (0.0, 0.02, 0.05, 0.1):
            held, widths = 0, []
            for _ in range(runs):
                counts = cluster_counts(random, clusters, size, 0.8, icc)
                successes, n = sum(k for k, _ in counts), clusters * size
                sim = Side(int(random.binomial(2000, 0.9)), 2000)
                drop = rate_drop(sim, Side(successes, n, counts, by))
                held += drop.low <= 0.1 <= drop.high
                widths.append(drop.high - drop.low)
            yield Row(f"drop, {clusters} {by}s × {size}, ICC {icc}", held / runs, 0.93, float(np.median(widths)))


SHAPES: dict[str, tuple[Callable[[Random, int], NDArray[np.float64]], float]] = {
    "normal": (lambda g, n: g.normal(1, 1, n), 1.0),
    "gamma 6": (lambda g, n: g.gamma(6, 2, n), 12.0),
    "lognormal σ 0.6": (lambda g, n: g.lognormal(0, 0.6, n), float(np.exp(0.18))),
    "lognormal σ 1": (lambda g, n: g.lognormal(0, 1, n), float(np.exp(0.5))),
    "lognormal σ 1.5": (lambda g, n: g.lognormal(0, 1.5, n), float(np.exp(1.125))),
    "90 % zeros": (lambda g, n: g.exponential(1, n) * (g.random(n) < 0.1), 0.1),
}


def metric_rows(random: Random, runs: int) -> Iterator[Row]:
    """Means with long tails or many zeros: what is not refused must hold."""
    for name, (make, mean) in SHAPES.items():
        for n in (20, 50, 200):
            held, told, widths = 0, 0, []
            for _ in range(runs):
                sim, real = mean_side(make(random, 500)), mean_side(make(random, n))
                drop = guarded_mean_drop(sim, real, "lower")
                if drop.low is not None and drop.high is not None:
                    told += 1
                    held += drop.low <= 0 <= drop.high
                    widths.append((drop.high - drop.low) / mean)
            share = held / told if told > 20 else 1.0
            said = "" if told == runs else f", {100 * (1 - told / runs):.0f} % refused"
            yield Row(f"metric, {name}, n {n}{said}", share, 0.9, float(np.median(widths)) if widths else None)


# Sites, robots or sessions, and episodes of each.
CLUSTERS = ((5, 60), (3, 100), (2, 100), (20, 15))
ICCS = (0.0, 0.05, 0.1)
# Sim succeeds in 90 %; where it does, real does so too in 85 % (by cluster), elsewhere in 20 %.
IN_SIM, IN_BOTH, IN_REAL_ALONE = 0.9, 0.85, 0.2
IN_REAL = IN_SIM * IN_BOTH + (1 - IN_SIM) * IN_REAL_ALONE


@dataclass(frozen=True)
class Pairs:
    """Outcomes of pairs and the cluster of each."""

    sim: NDArray[np.float64]
    real: NDArray[np.float64]
    cluster: NDArray[np.int64]

    def alike(self, lost: NDArray[np.float64]) -> Likeness | None:
        clusters = clusters_of(lost, self.cluster)
        return likeness_of(clusters, float((lost != 0).sum()))


def clusters_of(values: NDArray[np.float64], cluster: NDArray[np.int64]) -> list[Cluster]:
    groups = [values[cluster == number] for number in np.unique(cluster)]
    return [Cluster(len(own), float(own.sum()), float(own @ own)) for own in groups]


def drawn_pairs(random: Random, clusters: int, size: int, icc: float) -> Pairs:
    own = np.full(clusters, IN_BOTH)
    if icc:
        own = random.beta(IN_BOTH * (1 / icc - 1), (1 - IN_BOTH) * (1 / icc - 1), clusters)
    cluster = np.repeat(np.arange(clusters), size)
    sim = random.random(len(cluster)) < IN_SIM
    real = random.random(len(cluster)) < np.where(sim, own[cluster], IN_REAL_ALONE)
    return Pairs(sim.astype(float), real.astype(float), cluster)


def pair_rows(random: Random, runs: int) -> Iterator[Row]:
    """The drop over pairs of few robots or sites, for any like them."""
    for (clusters, size), icc in product(CLUSTERS, ICCS):
        held, widths = 0, []
        for _ in range(runs):
            pairs = drawn_pairs(random, clusters, size, icc)
            lost = pairs.sim - pairs.real
            counts = [
                int(((pairs.sim == s) & (pairs.real == r)).sum()) for s, r in ((1, 1), (1, 0), (0, 1), (0, 0))
            ]
            drop = paired_drop(*counts, alike=pairs.alike(lost))
            held += drop.low <= IN_SIM - IN_REAL <= drop.high
            widths.append(drop.high - drop.low)
        yield Row(f"pairs, {clusters} × {size}, ICC {icc}", held / runs, 0.9, float(np.median(widths)))


def prediction_rows(random: Random, runs: int) -> Iterator[Row]:
    """The real rate with the help of sim, for any robot or site like few: what is not refused must hold."""
    for way, (clusters, size), icc in product(("pairs", "cells"), CLUSTERS, ICCS):
        held, told, widths = 0, 0, []
        for _ in range(runs):
            found, truth = (predicted_by_pairs if way == "pairs" else predicted_in_cells)(
                random, clusters, size, icc
            )
            if found.low is not None and found.high is not None:
                told += 1
                held += found.low <= truth <= found.high
                widths.append(found.high - found.low)
        share = held / told if told > 20 else 1.0
        said = "" if told == runs else f", {100 * (1 - told / runs):.0f} % refused"
        width = float(np.median(widths)) if widths else None
        yield Row(f"prediction by {way}, {clusters} × {size}, ICC {icc}{said}", share, 0.9, width)


def predicted_by_pairs(random: Random, clusters: int, size: int, icc: float) -> tuple[Prediction, float]:
    pairs = drawn_pairs(random, clusters, size, icc)
    extra = (random.random(2000) < IN_SIM).astype(float)
    alike = pairs.alike(pairs.real - pairs.sim)
    return predicted_mean(pairs.real.tolist(), pairs.sim.tolist(), extra.tolist(), alike), IN_REAL


def predicted_in_cells(random: Random, clusters: int, size: int, icc: float) -> tuple[Prediction, float]:
    """Four conditions that sim and real meet alike and that matter much; real loses a tenth in each."""
    in_sim = np.array([0.98, 0.9, 0.6, 0.25])
    own = np.full(clusters, 0.9)
    if icc:
        own = random.beta(0.9 * (1 / icc - 1), 0.1 * (1 / icc - 1), clusters)
    cell, cluster = random.integers(0, 4, clusters * size), np.repeat(np.arange(clusters), size)
    success = random.random(len(cell)) < in_sim[cell] * own[cluster]
    simulated = random.multinomial(2000, [0.25] * 4)
    cells = [
        PredictionCell(
            int(random.binomial(m, p)), int(m), int(success[cell == i].sum()), int((cell == i).sum()), m / 2000
        )
        for i, (m, p) in enumerate(zip(simulated, in_sim, strict=True))
    ]
    rarer = min(success.sum(), len(success) - success.sum())
    alike = likeness_of(clusters_of(success.astype(float), cluster), float(rarer))
    return predicted_by_cells(cells, alike), float(0.9 * in_sim.mean())


def clustered_metric_rows(
    random: Random, runs: int, shapes: tuple[str, ...] = ("normal", "lognormal σ 0.6")
) -> Iterator[Row]:
    """Means of robots or sites that differ, for any like them; nothing is lost on average."""
    for shape, (clusters, size), icc in product(shapes, CLUSTERS, ICCS):
        held, widths = 0, []
        for _ in range(runs):
            between, within = sqrt(icc), sqrt(1 - icc)
            cluster = np.repeat(np.arange(clusters), size)
            z = between * random.standard_normal(clusters)[cluster] + within * random.standard_normal(len(cluster))
            sim = random.standard_normal(500)
            if shape != "normal":
                z, sim = np.exp(0.6 * z), np.exp(0.6 * sim)
            real = mean_side(z, likeness_of(clusters_of(z, cluster), len(z) / 5))
            drop = guarded_mean_drop(mean_side(sim), real, "lower")
            assert drop.low is not None
            assert drop.high is not None
            held += drop.low <= 0 <= drop.high
            widths.append(drop.high - drop.low)
        yield Row(f"metric, {shape}, {clusters} × {size}, ICC {icc}", held / runs, 0.9, float(np.median(widths)))


def mean_side(values: NDArray[np.float64], alike: Likeness | None = None) -> MeanSide:
    sums = MetricSums(len(values), float(values.sum()), float(values @ values))
    return MeanSide(sums, *(part.astype(float) for part in np.unique(values, return_counts=True)), alike)


def slice_rows(random: Random, runs: int) -> Iterator[Row]:
    """Nothing is lost anywhere, sessions resemble themselves: how often some level gets a verdict."""
    for icc in (0.0, 0.1, 0.3):
        for is_whole in (True, False):
            verdicts = 0
            for _ in range(runs):
                verdicts += any(
                    found.verdict in ("worse", "better") for found in null_slices(random, icc, is_whole=is_whole)
                )
            how = "a level a session" if is_whole else "levels mixed"
            yield Row(f"slices, some verdict, ICC {icc}, {how}", verdicts / runs, 0.1, is_most=True)


def null_slices(random: Random, icc: float, *, is_whole: bool) -> list[Slice]:
    """Twelve sessions of 25 against 1500 of sim, three conditions of three levels, all at 80 %."""
    counts: dict[tuple[str, str], list[int]] = {}
    for name in "abc":
        for level, n in enumerate(random.multinomial(1500, [1 / 3] * 3).tolist()):
            counts[name, str(level)] = [int(random.binomial(n, 0.8)), n, 0, 0]
    sessions = cluster_counts(random, 12, 25, 0.8, icc)
    for successes, n in sessions:
        outcomes = random.permutation(np.arange(n) < successes)
        for name in "abc":
            levels = np.full(n, random.integers(3)) if is_whole else random.integers(0, 3, n)
            for level in range(3):
                counts[name, str(level)][2] += int(outcomes[levels == level].sum())
                counts[name, str(level)][3] += int((levels == level).sum())
    side = Side(sum(k for k, _ in sessions), 300, sessions)
    return slice_drops(
        {key: (c[0], c[1], c[2], c[3]) for key, c in counts.items()}, crowding=(None, crowding_of(side))
    )


def trust_rows(random: Random, runs: int) -> Iterator[Row]:
    """Eight policies, 20 real episodes each: MMRV of their true rates, and the correlation they were drawn with."""
    for rho in (0.0, 0.6, 0.9, 0.98):
        held, of_pearson, widths = 0, 0, []
        for _ in range(runs):
            policies, truth = drawn_policies(random, 8, 20, rho)
            found = drawn_measures(policies)
            assert found is not None
            held += found.mmrv[0] <= truth <= found.mmrv[1]
            of_pearson += found.pearson is not None and found.pearson[0] <= rho <= found.pearson[1]
            widths.append(found.mmrv[1] - found.mmrv[0])
        yield Row(f"trust, MMRV, 8 policies × 20, ρ {rho}", held / runs, 0.92, float(np.median(widths)))
        yield Row(f"trust, correlation, 8 policies × 20, ρ {rho}", of_pearson / runs, 0.92)


def drawn_policies(random: Random, k: int, n_real: int, rho: float) -> tuple[list[PolicyPoint], float]:
    """Policies whose true rates go together by ρ, as measured; and the MMRV of the true rates."""
    x = random.standard_normal(k)
    y = rho * x + sqrt(1 - rho * rho) * random.standard_normal(k)
    sim, real = (np.clip(0.6 + 0.18 * z, 0.02, 0.98) for z in (x, y))
    policies = [
        PolicyPoint(f"p{i}", random.binomial(500, s) / 500, random.binomial(n_real, r) / n_real, 500, n_real)
        for i, (s, r) in enumerate(zip(sim, real, strict=True))
    ]
    return policies, mmrv(sim=sim, real=real)


PARTS: dict[str, Callable[[Random, int], Iterator[Row]]] = {
    "drops": drop_rows,
    "pairs": pair_rows,
    "predictions": prediction_rows,
    "clustered-metrics": clustered_metric_rows,
    "slices": slice_rows,
    "metrics": metric_rows,
    "trust": trust_rows,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    missed = 0
    print(f"{'world':58} {'share':>7} {'target':>8} {'width':>7}")
    for part in asked.part or PARTS:
        for row in PARTS[part](np.random.default_rng(asked.seed), asked.runs):
            missed += not row.is_met
            sign, width = "≤" if row.is_most else "≥", "" if row.width is None else f"{100 * row.width:.1f}"
            mark = "" if row.is_met else "  missed"
            print(f"{row.world:58} {100 * row.share:6.1f} % {sign} {100 * row.target:3.0f} % {width:>7}{mark}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
