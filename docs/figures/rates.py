"""The figures of one number, or of one number on two sides."""

from __future__ import annotations

import numpy as np
from drawing import GOOD, GREY, INK, REAL, SIM, WARN, Plot
from scipy.stats import binom

from gapwatch.statistics.causes.signals import compare_signal
from gapwatch.statistics.estimates.drops import Side, rate_drop
from gapwatch.statistics.estimates.predictive import best_effective_n
from gapwatch.statistics.estimates.rates import confidence_sequence, wilson
from gapwatch.statistics.estimates.sketches import fold, quantile
from gapwatch.statistics.estimates.trust import PolicyPoint, simulator_trust
from gapwatch.statistics.estimates.verdicts import verdict


def draw_drop() -> str:
    plot = Plot(
        (8, 320),
        (0.82, 1.0),
        title="How often the 95 % interval holds the true drop (sim 1000 at 95 %, real at 70 %)",
        x_name="real episodes",
        y_name="covered",
        x_log=True,
    )
    plot.ticks((10, 20, 50, 100, 300), (0.85, 0.9, 0.95, 1.0), y_form="{:.0%}")
    sizes = [10, 14, 20, 28, 40, 57, 80, 113, 160, 226, 300]
    newcombe, wald = [], []
    k_sim = np.arange(915, 981)
    p_sim = binom.pmf(k_sim, 1000, 0.95)
    for n in sizes:
        k = np.arange(n + 1)
        chance = binom.pmf(k, n, 0.7)
        hold = np.array([[_holds(rate_drop(Side(int(a), 1000), Side(int(b), n)), 0.25) for b in k] for a in k_sim])
        weights = p_sim / p_sim.sum()
        newcombe.append(float(weights @ hold @ chance))
        rate = k / n
        half = 1.96 * np.sqrt(rate * (1 - rate) / n + 0.95 * 0.05 / 1000)
        wald.append(float(chance @ (np.abs(0.95 - rate - 0.25) <= half)))
    plot.line(sizes, [0.95] * len(sizes), GREY, dashed=True)
    plot.line(sizes, newcombe, GOOD)
    plot.line(sizes, wald, WARN)
    plot.words(12, 0.975, "Newcombe (shipped)", GOOD)
    plot.words(12, 0.87, "estimate ± 1.96 standard errors (not used)", WARN)
    return plot.svg()


def _holds(drop: object, truth: float) -> bool:
    return bool(drop.low <= truth <= drop.high)  # type: ignore[attr-defined]


def draw_confidence_sequence() -> str:
    generator = np.random.default_rng(4)
    n = np.unique(np.geomspace(5, 1000, 80).astype(int))
    k = np.cumsum(generator.binomial(1, 0.8, 1000))[n - 1]
    plot = Plot(
        (5, 1000),
        (0.2, 1.0),
        title="One rate, looked at after every episode (true rate 80 %)",
        x_name="real episodes so far",
        x_log=True,
    )
    plot.ticks((5, 10, 30, 100, 300, 1000), (0.2, 0.4, 0.6, 0.8, 1.0), y_form="{:.0%}")
    for interval, colour in ((confidence_sequence, GOOD), (wilson, SIM)):
        ends = np.array([interval(int(a), int(b)) for a, b in zip(k, n, strict=True)])
        plot.band(n.tolist(), ends[:, 0].tolist(), ends[:, 1].tolist(), colour)
    plot.line(n.tolist(), (k / n).tolist(), INK)
    plot.words(60, 0.42, "wide band: holds at all looks together (live view)", GOOD)
    plot.words(60, 0.34, "narrow band: Wilson, holds at one look", SIM)
    return plot.svg()


def draw_verdict() -> str:
    plot = Plot(
        (-0.1, 0.4),
        (0, 5),
        title="The word comes from the interval, not from the estimate",
        x_name="success lost, sim − real",
        left=150,
    )
    plot.ticks((-0.1, 0, 0.1, 0.2, 0.3, 0.4), form="{:.0%}")
    cases = [
        ((950, 1000), (60, 100)),
        ((950, 1000), (890, 1000)),
        ((950, 1000), (948, 1000)),
        ((950, 1000), (18, 20)),
    ]
    for row, (sim, real) in enumerate(cases):
        drop = rate_drop(Side(*sim), Side(*real))
        y = 4 - row
        plot.whisker(y, drop.low, drop.high)
        plot.dots([drop.value or 0], [y], REAL)
        plot.beside(y, verdict(drop.low, drop.high, 0.05))
    plot.mark(0)
    plot.mark(0.05, WARN)
    plot.words(0.055, 4.75, "the smallest that matters, here 5 points", WARN)
    return plot.svg()


def draw_trust() -> str:
    # SIMPLER, pick_coke_can (arXiv:2405.05941): 75 real and 300 sim trials a policy.
    real, sim = (0.907, 0.853, 0.92, 0.76, 0.133, 0.293), (0.787, 0.857, 0.71, 0.567, 0.027, 0.17)
    trust = simulator_trust(
        [PolicyPoint(str(i), s, r, 300, 75) for i, (s, r) in enumerate(zip(sim, real, strict=True))]
    )
    low, high = trust.pearson_interval or (0, 0)
    plot = Plot(
        (0, 1),
        (0, 1),
        title=f"SIMPLER, coke can: Pearson {trust.pearson:.2f} ({low:.2f} to {high:.2f}), MMRV {trust.mmrv:.3f}",
        x_name="success in simulation",
        y_name="success in reality",
    )
    plot.ticks((0, 0.25, 0.5, 0.75, 1), (0, 0.25, 0.5, 0.75, 1), form="{:.0%}", y_form="{:.0%}")
    plot.line((0, 1), (0, 1), GREY, dashed=True)
    for s, r in zip(sim, real, strict=True):
        ends = wilson(round(75 * r), 75)
        plot.line((s, s), ends, SIM)
    plot.dots(sim, real, SIM, 5)
    plot.words(
        0.4,
        0.12,
        f"6 policies, {trust.verdict}; sim's favourite costs {100 * (trust.regret or 0):.1f} real points",
        INK,
    )
    return plot.svg()


def draw_predictive() -> str:
    rho = np.linspace(0, 0.95, 60)
    plot = Plot(
        (0, 1),
        (0, 320),
        title="What 50 pairs and 2,000 sim episodes are worth",
        x_name="correlation of a pair's outcomes",
        y_name="real episodes",
    )
    plot.ticks((0, 0.3, 0.5, 0.7, 0.9), (50, 100, 200, 300))
    plot.line(rho.tolist(), [best_effective_n(50, 2000, float(r)) for r in rho], GOOD)
    plot.mark(0.3, WARN)
    plot.words(0.29, 200, "refused below 0.3", WARN, "end")
    plot.line((0, 1), (50, 50), GREY, dashed=True)
    return plot.svg()


def draw_signals() -> str:
    generator = np.random.default_rng(3)
    sim, real = generator.gamma(9, 2, 800), generator.gamma(9, 2.5, 150)
    shift = compare_signal(sim, real)
    low, high = shift.interval or (0, 0)
    plot = Plot(
        (0, 50),
        (0, 1),
        title=f"Peak force: Cliff's delta {shift.delta:.2f} ({low:.2f} to {high:.2f}), {shift.size}",
        x_name="N",
        y_name="share of episodes at or below",
    )
    plot.ticks((0, 10, 20, 30, 40, 50), (0, 0.25, 0.5, 0.75, 1), y_form="{:.0%}")
    for values, colour in ((sim, SIM), (real, REAL)):
        ordered = np.sort(values)[:: max(1, len(values) // 150)]
        plot.line(ordered.tolist(), np.linspace(0, 1, len(ordered)).tolist(), colour)
    plot.mark(shift.ks_at or 0)
    plot.words((shift.ks_at or 0) + 0.6, 0.08, f"farthest apart: {shift.ks:.2f}", GREY)
    plot.words(40, 0.75, "sim", SIM)
    plot.words(40, 0.65, "real", REAL)
    return plot.svg()


def draw_sketch() -> str:
    values = np.random.default_rng(2).lognormal(3, 1.2, 100_000)
    shares = np.linspace(0.005, 0.995, 100)
    sketch = fold(values)
    errors = [
        100 * ((quantile(sketch, float(q)) or 0) / float(np.sort(values)[int(q * 99_999)]) - 1) for q in shares
    ]
    plot = Plot(
        (0, 1),
        (-1.4, 1.4),
        title=f"100,000 durations in {len(sketch.positive)} counts: the error of every quantile",
        x_name="quantile",
        y_name="% of the value",
    )
    plot.ticks((0, 0.25, 0.5, 0.75, 1), (-1, 0, 1))
    plot.dots(shares.tolist(), errors, SIM, 2.5)
    for edge in (-1, 1):
        plot.line((0, 1), (edge, edge), WARN, dashed=True)
    return plot.svg()
