"""What a fix closed: real success gained under the same conditions, less what others gained without it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Literal

from gapwatch.statistics.causes.decomposition import Counts, Decomposition, decompose, part_intervals
from gapwatch.statistics.closing.regression_to_mean import Peer, Regression, expected_regression
from gapwatch.statistics.estimates.rates import Z_95, Limits, SessionSums, square_and_add, t_95, wilson

Interval = tuple[float, float]
ClusterCounts = Sequence[tuple[float, int]]
ClosureVerdict = Literal["closed", "did nothing", "worse", "too few episodes"]
# Of a category by stratum: the weights of failures before and after.
StratumWeights = Mapping[Hashable, tuple[float, float]]
FEWEST_EPISODES = 5
FEWEST_UNITS_APART = 3
# A fix did nothing if what it may have closed is less than this, or than half of what was expected.
NOTHING_WORTH = 0.05


@dataclass(frozen=True)
class PeriodCounts:
    """Outcomes before and after in every stratum, its clusters each way that is known, and failures by category.

    `clusters` are of before and of after: each a list of ways (by session, by robot and day, by day), each the
    successes and episodes of every cluster.
    """

    strata: Mapping[Hashable, Counts]
    clusters: tuple[Sequence[ClusterCounts], Sequence[ClusterCounts]] = ((), ())
    weights: Mapping[str, StratumWeights] = field(default_factory=dict)

    @property
    def n(self) -> tuple[float, float]:
        return sum(c[1] for c in self.strata.values()), sum(c[3] for c in self.strata.values())

    @property
    def successes(self) -> tuple[float, float]:
        return sum(c[0] for c in self.strata.values()), sum(c[2] for c in self.strata.values())


@dataclass(frozen=True)
class MatchedChange:
    """After minus before under the same conditions; `mix` and `off_support` are what it leaves out."""

    value: float
    low: float
    high: float
    mix: float
    off_support: float
    by_category: Mapping[str, Limits]

    @property
    def limits(self) -> Limits:
        return Limits(self.value, self.low, self.high)


@dataclass(frozen=True)
class CategoryClosure:
    category: str
    points: float
    interval: Interval
    regression_subtracted: float | None = None


@dataclass(frozen=True)
class Closure:
    """Points are fractions of 1. `control_change` is what was subtracted; None without a control."""

    points: float | None
    interval: Interval | None
    verdict: ClosureVerdict
    per_category: tuple[CategoryClosure, ...] = ()
    change: MatchedChange | None = None
    control_change: Limits | None = None
    regression_subtracted: float | None = None
    was_worst: bool = False
    peers: int = 0
    reason: str | None = None


def matched_change(counts: PeriodCounts) -> MatchedChange | None:
    """The rate part of the change; None where a period, or every common stratum, has no episodes.

    Formula: `decompose`'s rate with before and after in the places of sim and real, its sign turned; of a category
    the same over the weights of its failures, so that categories add up to it. Interval: `part_intervals` with a
    design effect a period (`design_effect`). Assumes that the conditions in the strata are all that changed the
    mix. Smallest n: five episodes a period; fewer have no verdict.
    """
    parts = decompose(counts.strata)
    if parts.rate is None or not parts.common:
        return None
    effects = (design_effect(counts.clusters[0]), design_effect(counts.clusters[1]))
    limits = part_intervals(counts.strata, design_effects=effects)
    low, high = (-1.0, 1.0) if limits is None else (-limits.rate[1], -limits.rate[0])
    by_category = _by_category(counts, parts, effects)
    return MatchedChange(-parts.rate, low, high, -(parts.mix or 0.0), -(parts.off_support or 0.0), by_category)


def design_effect(ways: Sequence[ClusterCounts]) -> float:
    """How many episodes equal one independent one: the largest that any way of clustering shows, at least 1.

    Formula: `SessionSums.likeness` of each way, times (t/z)² for the few clusters.
    """
    effects = [1.0]
    for clusters in ways:
        held = [(k, n) for k, n in clusters if n > 0]
        if len(held) > 1 and any(n > 1 for _, n in held):
            sums = SessionSums()
            for k, n in held:
                sums.add(k, n)
            alike = sums.likeness()
            effects.append(alike.design_effect * (t_95(alike.freedom) / Z_95) ** 2)
    return max(effects)


def measure_closure(
    treated: Mapping[Hashable, PeriodCounts],
    controls: Mapping[Hashable, PeriodCounts],
    *,
    aimed_at: str | None = None,
    expected: float | None = None,
    others: Sequence[Peer] = (),
) -> Closure:
    """Difference in differences: what the treated units gained, less what the controls did, at matched conditions.

    Formula: closure = Δ_treated − Δ_control − (r_treated − r_control), Δ of `matched_change` over the units'
    strata; limits √-added. Control units whose changes differ by more than chance (τ², DerSimonian & Laird 1986)
    widen it by τ²(1/units treated + Σω²). r: the expected regression to the mean over all units before the fix,
    subtracted if the treated one was the worst of them, whose rate before is then known from its peers as well.
    Without controls `others` are units of the same kind that the picked one is judged among.
    Assumes parallel changes without the fix. Measured over placebos, and with a true effect: bench/closing.
    """
    whole = merged(treated)
    change, n = matched_change(whole), whole.n
    if change is None or min(n) < FEWEST_EPISODES:
        return Closure(None, None, "too few episodes", change=change, reason=_few(n))
    usable = {unit: counts for unit, counts in controls.items() if min(counts.n) >= FEWEST_EPISODES}
    control = matched_change(merged(usable)) if usable else None
    own, shift = change.limits, 0.0
    regression = _regression(treated, usable, others)
    is_worst = regression is not None and regression.worst == 0
    if regression is not None and is_worst:
        shift = regression.shifts[0] - _of_controls(regression, usable)
        own = _shifted(own, shift, _known_better(whole, regression.narrowed[0]))
    total = own if control is None else square_and_add(own, control.limits)
    if control is not None:
        total = _widened(total, _heterogeneity(usable, len(treated)))
    interval = (max(-1.0, total.low), min(1.0, total.high))
    return Closure(
        total.value,
        interval,
        verdict_of(total.value, interval, expected),
        _categories(change, control, whole, aimed_at),
        change,
        None if control is None else control.limits,
        shift if is_worst else None,
        is_worst,
        0 if regression is None else len(regression.shifts),
    )


def verdict_of(points: float, interval: Interval, expected: float | None = None) -> ClosureVerdict:
    """`did nothing` needs evidence too: what it may have closed is less than five points, or than half of what was
    expected. Anything wider is too few episodes.
    """
    low, high = interval
    if low > 0:
        return "closed"
    if high < 0:
        return "worse"
    worth = max(NOTHING_WORTH, (expected or 0.0) / 2)
    return "did nothing" if high < worth else "too few episodes"


def merged(units: Mapping[Hashable, PeriodCounts]) -> PeriodCounts:
    """All units as one: a stratum is that of a unit, so that a changed mix of units changes nothing."""
    strata: dict[Hashable, Counts] = {}
    weights: dict[str, dict[Hashable, tuple[float, float]]] = {}
    ways: list[tuple[list[tuple[float, int]], list[tuple[float, int]]]] = []
    for unit, counts in units.items():
        for key, c in counts.strata.items():
            strata[_keyed(unit, key)] = c
        for category, by_stratum in counts.weights.items():
            own = weights.setdefault(category, {})
            own.update({_keyed(unit, key): w for key, w in by_stratum.items()})
        for number, (before, after) in enumerate(zip(*counts.clusters, strict=False)):
            if number == len(ways):
                ways.append(([], []))
            ways[number][0].extend(before)
            ways[number][1].extend(after)
    return PeriodCounts(strata, ([way[0] for way in ways], [way[1] for way in ways]), weights)


def _keyed(unit: Hashable, key: Hashable) -> Hashable:
    return (unit, *key) if isinstance(key, tuple) else (unit, key)


def _few(n: tuple[float, float]) -> str:
    side = "before" if n[0] < FEWEST_EPISODES else "after" if n[1] < FEWEST_EPISODES else None
    if side is None:
        return "No condition was tried both before and after."
    return f"Fewer than {FEWEST_EPISODES} real episodes {side} the fix."


def _shifted(limits: Limits, shift: float, factor: float) -> Limits:
    value = limits.value - shift
    return Limits(
        value, value - factor * (limits.value - limits.low), value + factor * (limits.high - limits.value)
    )


def _known_better(whole: PeriodCounts, narrowed: float) -> float:
    """By how much a change is narrower when the period before is known from its peers too."""
    variances = []
    for k, n, ways in zip(whole.successes, whole.n, whole.clusters, strict=True):
        p = (k + 1) / (n + 2)
        variances.append(p * (1 - p) / n * design_effect(ways))
    before, after = variances
    return sqrt((narrowed * before + after) / (before + after))


def _widened(limits: Limits, variance: float) -> Limits:
    if variance <= 0:
        return limits
    more = Z_95**2 * variance
    below, above = limits.value - limits.low, limits.high - limits.value
    return Limits(limits.value, limits.value - sqrt(below**2 + more), limits.value + sqrt(above**2 + more))


def _heterogeneity(controls: Mapping[Hashable, PeriodCounts], treated: int) -> float:
    """The variance that units changing apart from one another add; 0 with fewer than three controls."""
    changes = [(matched_change(counts), sum(counts.n)) for counts in controls.values()]
    held = [(c.value, ((c.high - c.low) / (2 * Z_95)) ** 2, n) for c, n in changes if c is not None]
    if len(held) < FEWEST_UNITS_APART:
        return 0.0
    weights = [1 / max(variance, 1e-9) for _, variance, _ in held]
    mean = sum(w * value for w, (value, _, _) in zip(weights, held, strict=True)) / sum(weights)
    q = sum(w * (value - mean) ** 2 for w, (value, _, _) in zip(weights, held, strict=True))
    scale = sum(weights) - sum(w * w for w in weights) / sum(weights)
    tau = max(0.0, (q - (len(held) - 1)) / scale) if scale > 0 else 0.0
    sizes = [n for _, _, n in held]
    return tau * (1 / max(treated, 1) + sum(n * n for n in sizes) / sum(sizes) ** 2)


def _regression(
    treated: Mapping[Hashable, PeriodCounts], controls: Mapping[Hashable, PeriodCounts], others: Sequence[Peer]
) -> Regression | None:
    """Of the treated units together, then of each control, before the fix."""
    picked = _peer(merged(treated))
    return expected_regression([picked, *(_peer(counts) for counts in controls.values()), *others])


def _peer(counts: PeriodCounts) -> Peer:
    return Peer(counts.successes[0], counts.n[0], design_effect(counts.clusters[0]))


def _of_controls(regression: Regression, controls: Mapping[Hashable, PeriodCounts]) -> float:
    """What the controls are expected to lose again, weighed as their change is."""
    sizes = [sum(counts.n) for counts in controls.values()]
    if not sizes:
        return 0.0
    shifts = regression.shifts[1 : 1 + len(sizes)]
    return sum(shift * n for shift, n in zip(shifts, sizes, strict=True)) / sum(sizes)


def _categories(
    change: MatchedChange, control: MatchedChange | None, whole: PeriodCounts, aimed_at: str | None
) -> tuple[CategoryClosure, ...]:
    """Each category's part, the one that was aimed at first."""
    closed = []
    nothing = Limits(0.0, 0.0, 0.0)
    for category, own in change.by_category.items():
        of_control = nothing if control is None else control.by_category.get(category, nothing)
        limits = square_and_add(own, of_control)
        shift = _category_regression(category, whole) if category == aimed_at else None
        moved = shift or 0.0
        closed.append(
            CategoryClosure(category, limits.value - moved, (limits.low - moved, limits.high - moved), shift)
        )
    closed.sort(key=lambda one: (one.category != aimed_at, -one.points, one.category))
    return tuple(closed)


def _category_regression(aimed_at: str, whole: PeriodCounts) -> float | None:
    """Of a category that was picked because it cost most before; None where another cost more."""
    n = whole.n[0]
    names = [aimed_at, *(name for name in whole.weights if name != aimed_at)]
    lost = [sum(before for before, _ in whole.weights.get(name, {}).values()) for name in names]
    peers = [Peer(n - weight, n, design_effect(whole.clusters[0])) for weight in lost]
    regression = expected_regression(peers)
    return regression.shifts[0] if regression is not None and regression.worst == 0 else None


def _by_category(counts: PeriodCounts, parts: Decomposition, effects: tuple[float, float]) -> dict[str, Limits]:
    """What each category's failures fell by at matched conditions; together the change of success."""
    place = parts.pooled or {}
    common = set(parts.common)
    sizes: dict[Hashable, list[float]] = {}
    for key, c in counts.strata.items():
        where = place.get(key, key)
        if where in common:
            total = sizes.setdefault(where, [0.0, 0.0])
            total[0] += c[1]
            total[1] += c[3]
    n = [sum(size[side] for size in sizes.values()) for side in (0, 1)]
    share = {key: (size[0] / n[0] + size[1] / n[1]) / 2 for key, size in sizes.items()}
    found: dict[str, Limits] = {}
    for category, by_stratum in counts.weights.items():
        weights: dict[Hashable, list[float]] = {key: [0.0, 0.0] for key in sizes}
        for key, (before, after) in by_stratum.items():
            where = place.get(key, key)
            if where in weights:
                weights[where][0] += before
                weights[where][1] += after
        if not any(sum(pair) for pair in weights.values()):
            continue
        was, now = (
            _standardised([(share[key], weights[key][side], sizes[key][side]) for key in sizes], effects[side])
            for side in (0, 1)
        )
        found[category] = square_and_add(was, now)
    return found


def _standardised(cells: Sequence[tuple[float, float, float]], effect: float) -> Limits:
    """The mean weight over strata of given shares, with Wilson's limits for as many episodes as vary like it."""
    total, n = sum(weight for _, weight, _ in cells), sum(size for _, _, size in cells)
    overall = (total + 0.5) / (n + 1)
    mean = pulled = variance = 0.0
    for share, weight, size in cells:
        near = (weight + overall) / (size + 1)
        mean += share * weight / size
        pulled += share * near
        variance += share**2 * near * (1 - near) / max(size / effect - 1, 1.0)
    size = max(1.0, pulled * (1 - pulled) / variance) if variance > 0 else n
    low, high = wilson(mean * size, size)
    return Limits(mean, low, high)
