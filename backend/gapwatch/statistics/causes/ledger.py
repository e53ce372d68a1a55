"""The ledger: a success drop split over gap categories by the evidence of failed episodes, adding up exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import hypot
from typing import Protocol, TypeVar

from gapwatch.taxonomy import UNATTRIBUTED

FEWEST_SESSIONS = 5
# Weights are sums of parts; what is left by rounding is no evidence.
NOTHING = 1e-9
FULL_WEIGHTS = 3


@dataclass(frozen=True)
class LedgerSession:
    """One sitting: its episodes and failures, and per category Σw over the failed episodes."""

    n: int
    failures: int
    totals: Mapping[str, float]


@dataclass(frozen=True)
class LedgerSide:
    """One side's episodes and failures; per category Σw and Σw² over the failed episodes.

    What `totals` leave of `failures` is unattributed. A missing Σw² counts as Σw, its largest possible value.
    """

    n: int
    failures: int
    totals: Mapping[str, float]
    squares: Mapping[str, float] = field(default_factory=dict)
    sessions: Sequence[LedgerSession] = ()


@dataclass(frozen=True)
class Entry:
    """A category's part of the drop: failures in real above failures in sim, per episode.

    `unsure`: what of it only a phase speaks for, or a cause that was just told from chance.
    """

    category: str
    contribution: float
    interval: tuple[float, float] | None
    sim_weight: float
    real_weight: float
    unsure: float = 0.0


@dataclass(frozen=True)
class Ledger:
    """`entries` (largest contribution first) and `unattributed` add up to `drop`."""

    drop: float | None
    entries: tuple[Entry, ...]
    unattributed: Entry | None
    n_sim: int
    n_real: int
    method: str
    reason: str | None = None


class Widening(Protocol):
    """What else than counting may move a bar: see `weight_uncertainty`."""

    @property
    def stretch(self) -> float: ...
    @property
    def above(self) -> float: ...
    @property
    def soft_below(self) -> float: ...
    @property
    def soft_above(self) -> float: ...


def make_ledger(
    sim: LedgerSide,
    real: LedgerSide,
    categories: Sequence[str] = (),
    level: float = 0.95,
    uncertainties: Mapping[str, Widening] | None = None,
) -> Ledger:
    """The drop split over `categories` and whatever else has weight, with an interval each.

    Formula: c = W_real/n_real − W_sim/n_sim, W the summed weights of a category over failed episodes. The weights
    of an episode sum to 1, so the c sum to the rise of the failure rate, which is the success drop.
    Interval: see `weight_interval`. A category without weight on either side is 0 and has no interval.
    Assumes independent episodes or, with five or more sessions on a side, independent sessions.
    Smallest n: one episode a side, otherwise a reason.
    """
    if min(sim.n, real.n) <= 0:
        return Ledger(None, (), None, sim.n, real.n, "none", "One side has no episodes.")
    names = dict.fromkeys([*categories, *sim.totals, *real.totals])
    names.pop(UNATTRIBUTED, None)
    entries = [_widened(_entry(name, sim, real, level), uncertainties or {}) for name in names]
    entries.sort(key=lambda entry: (-entry.contribution, entry.category))
    grouped = [side for side, data in (("sim", sim), ("real", real)) if len(data.sessions) >= FEWEST_SESSIONS]
    method = "difference of exact limits" + (f", sessions of {' and '.join(grouped)}" if grouped else "")
    drop = real.failures / real.n - sim.failures / sim.n
    rest = _widened(_entry(UNATTRIBUTED, sim, real, level), uncertainties or {})
    return Ledger(drop, tuple(entries), rest, sim.n, real.n, method)


class LossPart(Protocol):
    """An entry, or what an answer makes of one."""

    @property
    def contribution(self) -> float: ...
    @property
    def interval(self) -> tuple[float, float] | None: ...
    @property
    def unsure(self) -> float: ...


AnyPart = TypeVar("AnyPart", bound=LossPart)


def leading(parts: Sequence[AnyPart], rest: LossPart | None) -> AnyPart | None:
    """The largest part, if it is known to be there at all and what is known of it is more than the unattributed.

    What is unsure does not count: a phase shares out by convention what nothing explains, and a release that is
    worse in every phase would else be told by the most frequent one.
    """
    first = max(parts, key=lambda part: part.contribution, default=None)
    if first is None or first.contribution <= 0 or first.interval is None or first.interval[0] <= 0:
        return None
    return first if rest is None or first.contribution - first.unsure > rest.contribution else None


def _widened(entry: Entry, uncertainties: Mapping[str, Widening]) -> Entry:
    """The interval with what the model behind the weights does not know."""
    more = uncertainties.get(entry.category)
    if more is None or (entry.interval is None and more.above <= 0):
        return entry
    low, high = entry.interval or (entry.contribution, entry.contribution)
    low = entry.contribution - more.stretch * (entry.contribution - low) - more.soft_below
    high = entry.contribution + max(more.stretch * (high - entry.contribution), more.above) + more.soft_above
    return replace(entry, interval=(max(low, -1.0), min(high, 1.0)), unsure=more.soft_below)


def weight_interval(total: float, size: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Limits for the mean of n weights in [0, 1], of which `total` is the sum and `size` a typical one.

    Formula: size · exact limits for k = total/size of n; Beta quantiles, with k fractional. With size = Σw²/Σw a
    coin worth `size` has just the mean Σw/n and the variance Σw²/n − (Σw/n)² of the weights.
    Assumes independent episodes. Source: Clopper and Pearson 1934 for whole k. Smallest n: 1.
    """
    from scipy.special import betaincinv

    k = min(total / size, n)
    tail = (1 - level) / 2
    low = float(betaincinv(k, n - k + 1, tail)) if k > 0 else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return size * low, size * high


def _entry(name: str, sim: LedgerSide, real: LedgerSide, level: float) -> Entry:
    """A category's difference of means with limits √-added (Newcombe's way) from each side's exact limits.

    A few weights say little of their size, and too small a size makes the interval too short. So a side takes the
    larger of its own Σw²/Σw and that of both sides, drawn towards 1 as by three full weights. Measured without a
    difference (n_sim 1000, n_real 30–300, 5–40 % failures, 13 categories, whole and split weights): no category
    excludes zero in more than 4.5 % of runs; with a difference each is covered in 94.8 % or more. With Wilson's
    limits instead of exact ones 9 % of runs would accuse a rare category.
    """
    w_sim, w_real = _total(sim, name), _total(real, name)
    contribution = w_real / real.n - w_sim / sim.n
    if w_sim + w_real <= NOTHING:
        return Entry(name, contribution, None, 0.0, 0.0)
    q_sim, q_real = (min(s.squares.get(name, w), w) for s, w in ((sim, w_sim), (real, w_real)))
    pooled = (q_sim + q_real) / (w_sim + w_real)
    count = (w_sim + w_real) / pooled
    below, above = [], []
    for side, w, q in ((sim, w_sim, q_sim), (real, w_real, q_real)):
        size = (max(pooled, q / w if w > NOTHING else 0.0) * count + FULL_WEIGHTS) / (count + FULL_WEIGHTS)
        effect = _design_effect(side, name, w, q, level)
        low, high = weight_interval(w / effect, size, side.n / effect, level)
        below.append(w / side.n - low)
        above.append(high - w / side.n)
    low, high = contribution - hypot(below[1], above[0]), contribution + hypot(above[1], below[0])
    return Entry(name, contribution, (max(low, -1.0), min(high, 1.0)), w_sim, w_real)


def _total(part: LedgerSide | LedgerSession, name: str) -> float:
    if name != UNATTRIBUTED:
        return part.totals.get(name, 0.0)
    return part.failures - sum(w for key, w in part.totals.items() if key != UNATTRIBUTED)


def _design_effect(side: LedgerSide, name: str, total: float, squares: float, level: float) -> float:
    """By how much sessions inflate the variance of a category's mean weight, at least 1.

    Formula: variance of the ratio Σw/Σn over sessions, S/(S − 1) · Σ (w_s − m n_s)² / n², by the variance of
    independent episodes, times (t/z)² for the few sessions. Source: Cochran 1977, section 6.
    """
    from scipy.special import ndtri, stdtrit

    count = len(side.sessions)
    mean = total / side.n
    alone = (squares / side.n - mean**2) / side.n
    if count < FEWEST_SESSIONS or alone <= 0:
        return 1.0
    apart = sum((_total(session, name) - mean * session.n) ** 2 for session in side.sessions)
    together = count / (count - 1) * apart / side.n**2
    upper = (1 + level) / 2
    return max(1.0, together / alone) * float(stdtrit(count - 1, upper) / ndtri(upper)) ** 2
