"""When and where a drop began: at deploy, at sites, with a release, in a step, gradually; and if it is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from math import log, sqrt
from operator import itemgetter
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.causes.slices import newcombe
from gapwatch.statistics.change.fall_shapes import FallShapes, ShapeEvidence, fall_shapes, mean_gain

Verdict = Literal[
    "none",
    "at_deploy",
    "site_specific",
    "gradual_drift",
    "step_change",
    "release_regression",
    "recovered",
    "too few episodes",
]
Array = NDArray[np.float64]

FEWEST_EPISODES, FEWEST_DAYS, FEWEST_PER_PART = 40, 5, 10
# The least price of a model, and that of the day of a rise.
LEAST_PRICE, FREE_DAY = 6.0, 3.5
# How much worse than a ramp a release may fit and still be named; and the p below which sites differ.
RELEASE_CREDIT, SITES_DIFFER = 3.0, 0.01
# A release is blamed only if a step on any day before it fits worse by this, in twice the log-likelihood.
RELEASE_LEAD = 1.5
# The days within this gain of the best one contain the day of the change in 95 % of cases: Hansen 2000, Table I.
DAY_SET = 7.35
# More sites or robots than this share one level in the models of time; as groups they are still compared.
MOST_LEVELS = 12
# Newton's method stops when no slope moves by more; its next step would be about the square of this.
SETTLED = 1e-7
MOST_ROUNDS = 12
HELD_BY = 1e-5
# Log-odds of ± 15.
LEAST_RATE = 3.06e-7


class DayCount(NamedTuple):
    """Real episodes of one day, at one site, by one robot, with one policy version."""

    day: date
    successes: int
    n: int
    site: str = ""
    robot: str = ""
    version: str = ""


@dataclass(frozen=True)
class DayEvent:
    """Something that happened on a day: a `release`, a calibration, a mitigation."""

    day: date
    kind: str
    name: str = ""


@dataclass(frozen=True)
class Onset:
    """`change`: points of success lost. `net_gains`: what each model gains above its price; the best decides.
    `risen_day`: since when it is better, where it fell and was made good, or lost nothing since the first day."""

    verdict: Verdict
    reason: str
    n_real: int
    change: float | None = None
    change_day: date | None = None
    plausible_days: tuple[date, ...] = ()
    where: tuple[str, ...] = ()
    net_gains: Mapping[str, float] = field(default_factory=dict)
    risen_day: date | None = None


def find_onset(days: Sequence[DayCount], k_sim: int, n_sim: int, events: Sequence[DayEvent] = ()) -> Onset:
    """The onset of the drop against sim, k_sim successes of n_sim.

    Models of real, binomial, with a level for each site (each robot where there is one site): constant; a step on
    any day, a ramp between any two days, or a fall between two days that was made good (`fall_shapes`); a step at
    a release, known from versions or events; two groups of sites.
    A model's gain is twice its log-likelihood above the constant one, by the overdispersion of days if that is
    established, of shapes the mean over their days. Its price is BIC's ln n, at least 6, and ln r for r releases.
    The largest gain above its price is the verdict. Only losses count, and sites must differ with p < 0.01. A step
    is a release regression if a release is among its plausible days, or a day before, and no day before the
    release fits about as well: what fell before a release was not its doing. Otherwise it is told as what happened
    at that time. If none is: `at_deploy` where Newcombe's interval of the drop is above zero, else `none`; with
    the day of a step upwards that is above its price. Assumes independent episodes on a day.
    Sources: Schwarz 1978; Hansen 2000; Kass & Raftery 1995.
    Smallest n: 40 real episodes on 5 days, 10 on either side of a change; otherwise `too few episodes`.
    Measured by `bench/onset.py`; docs/statistics.md has its figures.
    """
    days = sorted((d for d in days if d.n > 0), key=itemgetter(0, 5, 3, 4))
    n_real, dates = sum(d.n for d in days), sorted({d.day for d in days})
    if n_real < FEWEST_EPISODES or len(dates) < FEWEST_DAYS or n_sim == 0:
        days_word = "day" if len(dates) == 1 else "days"
        reason = f"{n_real} real episodes on {len(dates)} {days_word}, {n_sim} in sim."
        return Onset("too few episodes", reason, n_real)
    rows = _Rows(days)
    price = max(log(n_real), LEAST_PRICE)
    slope, (step_days, step), (releases, release) = rows.slope(), rows.steps(), rows.releases(events)
    shapes = rows.shapes(slope, step)
    spread = min(rows.dispersion(fit) for fit in (slope, step, *rows.fit_shapes(shapes)))
    if spread > 1:
        shapes = rows.shapes(slope, step, spread)
    where, site_gain, site_loss = rows.site_groups(spread)
    # Least squares are near the binomial likelihood, and equally far from it for all shapes.
    step_gain = mean_gain(step.gain / spread)
    off = step_gain - shapes.step.gain
    net = {
        "gradual_drift": shapes.ramp.gain + off - price,
        "step_change": step_gain - price,
        "recovered": shapes.recovered.gain + off - price,
        "release_regression": release.best / spread - price - log(max(1, len(releases))),
        "site_specific": site_gain - price,
    }
    gain_days = step.gain / spread
    least = gain_days.max(initial=0.0) - DAY_SET
    plausible = tuple(d for d, gain in zip(step_days, gain_days, strict=True) if gain >= least)
    # What happens on a day without episodes shows on the next day with some.
    shown = {
        e: next((d for d in dates if d >= e), None) for e in (*(d for d, _ in releases), *(e.day for e in events))
    }
    # A release goes out in the course of a day, and its first hours may happen to go well.
    near = {*plausible, *(day - timedelta(days=1) for day in plausible)}
    blamed = [
        index
        for index, (day, _) in enumerate(releases)
        if shown[day] in near and _leads(release.gain[index] / spread, shown[day], step_days, gain_days)
    ]
    chosen = max((name for name in net if name != "release_regression"), key=lambda name: net[name])
    is_fall = chosen in ("step_change", "gradual_drift")
    if is_fall and blamed and net["release_regression"] > 0:
        culprit = max(blamed, key=lambda index: release.gain[index])
        if net["gradual_drift"] - RELEASE_CREDIT < release.gain[culprit] / spread - price:
            chosen = "release_regression"
    # What was bad from the first day and was mended did not fall.
    is_mended = chosen == "recovered" and mean_gain(step.rise / spread) - price >= net["recovered"]
    if net[chosen] <= 0 or is_mended:
        is_better = step.rise.max(initial=0.0) / spread - price - FREE_DAY > 0
        risen_day = step_days[step.rise.argmax()] if is_better else None
        return _constant(days, k_sim, n_sim, net, risen_day)
    if chosen == "site_specific":
        reason = f"Success at {', '.join(where)} is {100 * site_loss:.1f} points below the others, on all days."
        return Onset("site_specific", reason, n_real, site_loss, where=where, net_gains=net)
    if chosen == "gradual_drift":
        return _ramp(shapes.ramp, dates, n_real, net, _at_that_time(releases, events, shown))
    if chosen == "recovered":
        return _recovered(shapes.recovered, n_real, net, _at_that_time(releases, events, shown))
    if chosen == "release_regression":
        loss, (day, name) = float(release.loss[culprit]), releases[culprit]
        words = f"with release {name} of {day}"
    else:
        loss, day = float(step.loss[step.gain.argmax()]), step_days[step.gain.argmax()]
        words = f"on {day} (plausible from {plausible[0]} to {plausible[-1]})"
        words += _at_that_time(releases, events, shown)(plausible[0], plausible[-1])
    reason = f"Success fell by {100 * loss:.1f} points {words}.{_before(days, day, k_sim, n_sim)}"
    verdict: Verdict = "release_regression" if chosen == "release_regression" else "step_change"
    return Onset(verdict, reason, n_real, loss, day, plausible, net_gains=net)


def _leads(gain: float, day: date | None, step_days: Sequence[date], gain_days: Array) -> bool:
    """Whether a step at a release fits better than one on any day before it."""
    earlier = [known for d, known in zip(step_days, gain_days, strict=True) if day is not None and d < day]
    return gain >= max(earlier, default=0.0) + RELEASE_LEAD


def _at_that_time(
    releases: Sequence[tuple[date, str]], events: Sequence[DayEvent], shown: Mapping[date, date | None]
) -> Callable[[date, date], str]:
    """What happened between two days, or a day before or after them, in words."""
    happened = [*(DayEvent(day, "release", name) for day, name in releases), *events]

    def words(first: date, last: date) -> str:
        since, until = first - timedelta(days=1), last + timedelta(days=1)
        near = [
            e for e in happened if any(day is not None and since <= day <= until for day in (e.day, shown[e.day]))
        ]
        told = dict.fromkeys(f"{e.kind} {e.name} on {e.day}".replace("  ", " ") for e in near)
        return f"; at that time: {', '.join(told)}" if told else ""

    return words


def _ramp(
    ramp: ShapeEvidence, dates: Sequence[date], n: int, net: Mapping[str, float], told: Callable[[date, date], str]
) -> Onset:
    since, until = date.fromordinal(round(ramp.from_day)), date.fromordinal(round(ramp.to_day))
    earliest, latest = (date.fromordinal(round(day)) for day in (ramp.earliest, ramp.latest))
    plausible = tuple(day for day in dates if earliest <= day <= latest)
    words = "" if since == dates[0] else told(earliest, latest)
    reason = f"Success fell by {100 * ramp.loss:.1f} points from {since} to {until}, gradually{words}."
    return Onset("gradual_drift", reason, n, ramp.loss, since, plausible, net_gains=net)


def _recovered(fall: ShapeEvidence, n: int, net: Mapping[str, float], told: Callable[[date, date], str]) -> Onset:
    since, until = date.fromordinal(round(fall.from_day)), date.fromordinal(round(fall.to_day))
    words = f"on {since}{told(since, since)}; it is as good as before since {until}"
    reason = f"Success fell by {100 * fall.loss:.1f} points {words}{told(until, until)}."
    return Onset("recovered", reason, n, fall.loss, since, net_gains=net, risen_day=until)


@dataclass(frozen=True)
class _Fit:
    """One entry per candidate: its gain over the constant model (0 unless success falls) and the points lost.

    `rates`: those of the best candidate, row by row. `rise`: like `gain`, of what is better afterwards.
    """

    gain: Array
    loss: Array
    rates: Array
    rise: Array

    @property
    def best(self) -> float:
        return float(self.gain.max(initial=0.0))


@dataclass(frozen=True)
class _Table:
    """Successes `k` of `n` by candidate and column, the units that columns are members of, and x."""

    k: Array
    n: Array
    member: Array
    x: Array

    def newton(self, level: Array, b: Array, held_by: float = 0.0) -> tuple[Array, Array]:
        """The levels of the units and b of highest likelihood, one row per candidate.

        `held_by`: how far a column's rate stays away from 0 and 1, as a share. Without failures the best level is
        infinite, and on its way there b would lose it.
        """
        from scipy.special import expit

        member, x = self.member, self.x
        k, n = np.clip(self.k, held_by * self.n, (1 - held_by) * self.n), self.n
        for _ in range(MOST_ROUNDS):
            rates = expit(level @ member.T + b[:, None] * x)
            weight, rest = n * rates * (1 - rates) + 1e-12, k - n * rates
            own, cross = weight @ member + 1e-9, (weight * x) @ member
            pull = rest @ member
            bend = (weight * x * x).sum(axis=1) - (cross**2 / own).sum(axis=1)
            slant = (rest * x).sum(axis=1) - (cross * pull / own).sum(axis=1)
            move = np.clip(slant / np.maximum(bend, 1e-9), -2, 2)
            level = np.clip(level + np.clip((pull - cross * move[:, None]) / own, -3, 3), -15, 15)
            b = np.clip(b + move, -15, 15)
            if np.abs(move).max(initial=0.0) < SETTLED:
                break
        return level, b

    def likelihood(self, level: Array, b: Array) -> Array:
        from scipy.special import expit

        rates = expit(level @ self.member.T + b[:, None] * self.x)
        return np.asarray(_likelihood(self.k, self.n, rates).sum(axis=1))


class _Rows:
    """Counts by unit (site, or robot where there is one site), day and version."""

    def __init__(self, days: Sequence[DayCount]) -> None:
        dates, successes, episodes, sites, robots, versions = zip(*days, strict=True)
        units = sites if len(set(sites)) > 1 else robots
        self.names, unit = _numbered(sorted(set(units)), units)
        self.versions, version = _numbered(list(dict.fromkeys(versions)), versions)
        k, n = np.array(successes, dtype=float), np.array(episodes, dtype=float)
        self.unit_totals = np.array([np.bincount(unit, of) for of in (k, n)])
        levels = len(self.names) if len(self.names) <= MOST_LEVELS else 1
        day = np.fromiter(map(date.toordinal, dates), np.int64)
        # One row per day, version and level.
        keys = (day * len(self.versions) + version) * levels + unit % levels
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        self.k, self.n = (np.bincount(group, of).astype(float) for of in (k, n))
        self.member = np.eye(levels)[unit[first] % levels]
        self.day = day[first].astype(float)
        self.version = version[first]

    def slope(self) -> _Fit:
        return self.fit_lines(((self.day - self.day.min()) / (np.ptp(self.day) or 1.0))[None, :])

    def shapes(self, slope: _Fit, step: _Fit, spread: float = 1.0) -> FallShapes:
        """A step, a ramp and a fall that ended, on the scale of the exact fits.

        The weights are those of the mean of no change, slope and step, so that they favour none.
        """
        days, number = np.unique(self.day, return_inverse=True)
        known = [fit.rates for fit in (slope, step) if fit.best > 0]
        pooled = self.k.sum() / self.n.sum()
        rates = np.mean([*known, np.full(self.k.shape, pooled)], axis=0)
        levels = self.member.argmax(axis=1)

        def by_day(of: Array) -> Array:
            table = np.zeros((days.size, self.member.shape[1]))
            np.add.at(table, (number, levels), of)
            return table

        n = by_day(self.n)
        return fall_shapes(days, by_day(self.k), n, by_day(self.n * rates) / np.maximum(n, 1e-9), spread)

    def fit_shapes(self, shapes: FallShapes) -> tuple[_Fit, _Fit]:
        """The best ramp, and the best fall that ended."""
        ramp, fall = shapes.ramp, shapes.recovered
        rises = np.clip((self.day - ramp.from_day) / max(1.0, ramp.to_day - ramp.from_day), 0, 1)
        lasts = ((self.day >= fall.from_day) & (self.day < fall.to_day)).astype(float)
        return self.fit_lines(rises), self.fit_lines(lasts)

    def steps(self) -> tuple[list[date], _Fit]:
        """Rows are ordered by day, so a cumulative sum has what lies before each day."""
        starts = np.array([d.toordinal() for d in self._parting_days], dtype=float)
        first = np.searchsorted(self.day, starts)
        k, n = (np.pad(of.cumsum(axis=0), ((1, 0), (0, 0)))[first] for of in (self._unit_k, self._unit_n))
        return self._parting_days, self._fit_parts(k, n, lambda best: self.day >= starts[best])

    def releases(self, events: Sequence[DayEvent]) -> tuple[list[tuple[date, str]], _Fit]:
        """A version by its first day here, an event by its own; each splits the rows in its own way."""
        first = [date.fromordinal(int(self.day[self.version == i].min())) for i in range(len(self.versions))]
        splits = [(first[i], name, self.version >= i) for i, name in enumerate(self.versions) if i > 0]
        named = [e for e in events if e.kind == "release" and e.day not in first]
        splits += [(e.day, e.name, self.day >= e.day.toordinal()) for e in named]
        splits = [item for item in splits if self._is_split(item[2])]
        return [(day, name) for day, name, _ in splits], self._fit_groups([x for *_, x in splits])

    @cached_property
    def _unit_k(self) -> Array:
        return np.asarray(self.k[:, None] * self.member)

    @cached_property
    def _unit_n(self) -> Array:
        return np.asarray(self.n[:, None] * self.member)

    @cached_property
    def _parting_days(self) -> list[date]:
        """The days with enough episodes before them, and on and after them."""
        days, day_index = np.unique(self.day, return_inverse=True)
        of_day = np.bincount(day_index, self.n)
        before = np.cumsum(of_day) - of_day
        enough = np.minimum(before, of_day.sum() - before) >= FEWEST_PER_PART
        return [date.fromordinal(int(day)) for day in days[enough]]

    def _is_split(self, after: NDArray[np.bool_]) -> bool:
        return bool(min(self.n[after].sum(), self.n[~after].sum()) >= FEWEST_PER_PART)

    def fit_lines(self, x: Array) -> _Fit:
        """Log-odds = level of the unit + b x, one row of x per candidate."""
        x = x.reshape(-1, self.k.size)
        table = _Table(self.k[None, :], self.n[None, :], self.member, x)
        level = np.tile(_logit(self.k @ self.member, self.n @ self.member), (len(x), 1))
        return self._judged(table, *table.newton(level, np.zeros(len(x))), x.__getitem__)

    def _fit_groups(self, after: Sequence[NDArray[np.bool_]]) -> _Fit:
        """Steps that split the rows in any way."""
        before = ~np.array(after, dtype=bool).reshape(-1, self.k.size)
        return self._fit_parts(before @ self._unit_k, before @ self._unit_n, lambda best: after[best])

    def _fit_parts(self, k: Array, n: Array, after: Callable[[int], NDArray[np.bool_]]) -> _Fit:
        """The same where x is 0 or 1: rows of a unit on one side of a step have one rate, so sums are enough.

        `k`, `n`: of each unit before the step, one row a candidate. `after`: the rows behind a candidate's step.
        """
        units = self.member.shape[1]
        k, n = (np.hstack([of, whole.sum(axis=0) - of]) for of, whole in ((k, self._unit_k), (n, self._unit_n)))
        table = _Table(k, n, np.vstack([np.eye(units)] * 2), np.repeat([[0.0, 1.0]], units, axis=1))
        if units == 1:
            # Two rates, found without a search.
            rates = np.clip(k / n, LEAST_RATE, 1 - LEAST_RATE)
            level, b = _logit(rates[:, :1], 1.0, 0.0), _logit(rates[:, 1], 1.0, 0.0)
            return self._judged(table, level, b - level[:, 0], after)
        # From the rates of all units together: a part without failures has no end, and is far from the middle.
        (k_first, k_then), (n_first, n_then) = (np.split(of, 2, axis=1) for of in (k, n))
        b = _logit(k_then.sum(axis=1), n_then.sum(axis=1)) - _logit(k_first.sum(axis=1), n_first.sum(axis=1))
        return self._judged(table, *table.newton(_logit(k_first, n_first), b, HELD_BY), after)

    def _judged(
        self, table: _Table, level: Array, b: Array, x: Callable[[int], Array | NDArray[np.bool_]]
    ) -> _Fit:
        """`x` is that of each row, for a candidate."""
        from scipy.special import expit

        if not len(b):
            nothing = np.zeros(0)
            return _Fit(nothing, nothing, nothing, nothing)
        totals = self.k @ self.member, self.n @ self.member
        gain = 2 * (table.likelihood(level, b) - _likelihood(*totals, totals[0] / totals[1]).sum())
        loss = ((expit(level) - expit(level + b[:, None])) @ totals[1]) / self.n.sum()
        fallen, risen = np.where(loss > 0, gain, 0.0), np.where(loss < 0, gain, 0.0)
        best = int(fallen.argmax())
        return _Fit(fallen, loss, expit(level[best] @ self.member.T + b[best] * x(best)), risen)

    def dispersion(self, fit: _Fit) -> float:
        """Pearson's χ² by its degrees of freedom, where two standard errors above 1; else 1."""
        freedom = self.k.size - self.member.shape[1] - 2
        if not fit.gain.size or freedom < 1:
            return 1.0
        rates = np.clip(fit.rates, 1e-3, 1 - 1e-3)
        dispersion = float((((self.k - self.n * rates) ** 2) / (self.n * rates * (1 - rates))).sum()) / freedom
        return dispersion if dispersion > 1 + 2 * sqrt(2 / freedom) else 1.0

    def site_groups(self, spread: float) -> tuple[tuple[str, ...], float, float]:
        """The units below the others, the gain of two groups over one (0 if units may be equal), and the loss."""
        from scipy.special import chdtrc

        k, n = self.unit_totals
        order = np.argsort(k / n)
        low_k, low_n = np.cumsum(k[order])[:-1], np.cumsum(n[order])[:-1]
        high_k, high_n = k.sum() - low_k, n.sum() - low_n
        one_rate = _likelihood(k, n, np.full_like(k, k.sum() / n.sum())).sum()
        apart = 2 * (_likelihood(k, n, k / n).sum() - one_rate) / spread
        two_rates = _likelihood(low_k, low_n, low_k / low_n) + _likelihood(high_k, high_n, high_k / high_n)
        gains = 2 * (two_rates - one_rate) / spread
        if not gains.size or chdtrc(len(k) - 1, apart) >= SITES_DIFFER:
            return (), 0.0, 0.0
        best = int(gains.argmax())
        loss = high_k[best] / high_n[best] - low_k[best] / low_n[best]
        return tuple(sorted(self.names[i] for i in order[: best + 1])), float(gains[best]), float(loss)


def _constant(
    days: Sequence[DayCount], k_sim: int, n_sim: int, net: Mapping[str, float], risen_day: date | None
) -> Onset:
    k, n = sum(d.successes for d in days), sum(d.n for d in days)
    drop, (low, _) = newcombe(k_sim, n_sim, k, n)
    if low <= 0:
        reason = "Real is not established to be below sim, nor to have fallen."
        return Onset("none", reason, n, net_gains=net, risen_day=risen_day)
    reason = f"Real is {100 * drop:.1f} points below sim from the first day, on all days and at all sites alike."
    if risen_day is not None:
        (k_before, n_before), (k_after, n_after) = (
            (sum(d.successes for d in part), sum(d.n for d in part))
            for part in ([d for d in days if d.day < risen_day], [d for d in days if d.day >= risen_day])
        )
        was, is_now = (100 * (k_sim / n_sim - k / n) for k, n in ((k_before, n_before), (k_after, n_after)))
        where = f"{is_now:.1f} below" if is_now > 0 else f"{-is_now:.1f} above"
        reason = f"Real was {was:.1f} points below sim from the first day, and is {where} since {risen_day}."
    return Onset("at_deploy", reason, n, drop, days[0].day, net_gains=net, risen_day=risen_day)


def _before(days: Sequence[DayCount], day: date, k_sim: int, n_sim: int) -> str:
    k, n = sum(d.successes for d in days if d.day < day), sum(d.n for d in days if d.day < day)
    drop, (low, _) = newcombe(k_sim, n_sim, k, n) if n else (0.0, (0.0, 0.0))
    return f" Before that it was {100 * drop:.1f} points below sim." if low > 0 else ""


def _numbered(names: list[str], column: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    number = {name: index for index, name in enumerate(names)}
    return names, np.fromiter(map(number.__getitem__, column), np.int64)


def _logit(k: Array, n: Array | float, more: float = 0.5) -> Array:
    """Log-odds of k of n, as if there were half a success and half a failure more."""
    return np.asarray(np.log((k + more) / (n - k + more)))


def _likelihood(k: Array, n: Array, rates: Array) -> Array:
    p = np.clip(rates, 1e-12, 1 - 1e-12)
    return np.asarray(k * np.log(p) + (n - k) * np.log1p(-p))
