"""Whom an interval speaks for: these robots only, or any robot of this kind; and what that makes of a side.

What resembles itself counts for less: episodes of one session, and, where other robots or sites are spoken of,
of one robot or site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from gapwatch.filters import PopulationName
from gapwatch.statistics.causes.slices import Crowding
from gapwatch.statistics.estimates import rates
from gapwatch.statistics.estimates.drops import Side
from gapwatch.store.read.sides import PlaceCount

# An attempt without a session is a sitting of its own; more of them than this are not listed one by one.
MOST_LISTED = 5000

ClusterKind = Literal["site", "robot", "session"]
ClusterCounts = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class ClusterEffect:
    """`side` for the drop's interval; with a `design_effect` above 1 it holds effective counts, n by it.

    `inflation` is the design effect of the side as a whole, whichever way the side carries it.
    """

    side: Side
    clusters: int
    design_effect: float = 1.0
    inflation: float = 1.0

    @property
    def worth_one(self) -> float:
        """How many episodes are worth one for its interval, with what is not known of few clusters."""
        return self.side.clustered_rate.worth_one if self.side.clustered else self.design_effect


@dataclass(frozen=True)
class Population:
    """Whom a number speaks for, in words; `by` is what differs and is drawn anew, with so many `levels` seen."""

    name: PopulationName
    words: str
    by: ClusterKind | None
    levels: int


@dataclass(frozen=True)
class PlacesTried:
    """Successes and attempts of each site and each robot that real episodes name, and of those that name none."""

    sites: Mapping[int | str | None, tuple[int, int]]
    robots: Mapping[int | str | None, tuple[int, int]]

    def count(self, by: Literal["site", "robot"]) -> int:
        """How many are named."""
        return sum(name is not None for name in (self.sites if by == "site" else self.robots))

    def counts(self, by: Literal["site", "robot"]) -> ClusterCounts:
        """Episodes that name none are one more: nobody knows of how many."""
        return list((self.sites if by == "site" else self.robots).values())

    @property
    def coarsest(self) -> Literal["site", "robot"] | None:
        """The coarser of what there are two or more of."""
        if self.count("site") >= rates.FEWEST_CLUSTERS:
            return "site"
        return "robot" if self.count("robot") >= rates.FEWEST_CLUSTERS else None


NO_PLACES = PlacesTried({}, {})


def places_of(counts: Sequence[PlaceCount]) -> PlacesTried:
    sites: dict[int | str | None, tuple[int, int]] = {}
    robots: dict[int | str | None, tuple[int, int]] = {}
    for count in counts:
        n = count.successes + count.failures
        if n:
            for total, name in ((sites, count.site), (robots, count.robot)):
                k, m = total.get(name or None, (0, 0))
                total[name or None] = (k + count.successes, m + n)
    return PlacesTried(sites, robots)


class PlacedRow(Protocol):
    """A single episode that knows where it comes from."""

    @property
    def robot_id(self) -> int | None: ...

    @property
    def site_id(self) -> int | None: ...

    @property
    def session(self) -> str | None: ...


def clusters_of_rows(rows: Sequence[PlacedRow], values: Sequence[float], by: ClusterKind) -> list[rates.Cluster]:
    """The values of single episodes by site, robot or session. One without a session is a session of its own."""
    sums: dict[object, list[float]] = {}
    for number, (row, value) in enumerate(zip(rows, values, strict=True)):
        key: object = row.site_id if by == "site" else row.robot_id if by == "robot" else row.session
        if key is None and by == "session":
            key = number
        total = sums.setdefault(key, [0, 0.0, 0.0])
        total[0] += 1
        total[1] += value
        total[2] += value * value
    return [rates.Cluster(int(n), total, squares) for n, total, squares in sums.values()]


def describe_population(name: PopulationName, places: PlacesTried, sessions: int) -> Population:
    """The words for one of the two. With one robot at one site, and no session named, both speak for it alone."""
    coarsest = places.coarsest
    by_session: ClusterKind | None = "session" if sessions >= rates.FEWEST_CLUSTERS else None
    if coarsest is None:
        owner = "this robot" if places.count("robot") else "these robots"
        words = f"any session of {owner}" if by_session else f"further episodes of {owner}"
        return Population(name, words, by_session, sessions if by_session else 0)
    levels = places.count(coarsest)
    if name == "any":
        return Population("any", f"any {coarsest} of this kind", coarsest, levels)
    return Population("these", f"these {levels} {coarsest}s only", by_session, sessions if by_session else 0)


def with_population(
    name: PopulationName,
    successes: int,
    n: int,
    sessions: ClusterCounts,
    places: PlacesTried = NO_PLACES,
    *,
    complete: bool = True,
) -> ClusterEffect:
    """The side of `successes` of `n` for a population.

    `any`: by the coarsest of site, robot and session of which there are two or more. `these`: robots and sites
    stay as they are, and what is drawn anew are their sessions.
    """
    coarsest = places.coarsest if name == "any" else None
    if coarsest is not None:
        counts = places.counts(coarsest)
        if (sum(k for k, _ in counts), sum(m for _, m in counts)) == (successes, n):
            side = Side(successes, n, counts, coarsest)
            return ClusterEffect(side, len(counts), inflation=side.clustered_rate.design_effect)
    return with_sessions(successes, n, sessions, complete=complete)


def crowding_of(side: Side) -> Crowding | None:
    """What the clusters of a side say about any part of it; None where it has none."""
    if not side.clustered:
        return None
    found, clusters = side.clustered_rate, side.clusters or ()
    size = sum(n * n for _, n in clusters) / side.n
    icc = found.icc or 0.0
    return Crowding(icc, size, (found.clusters - 1) * (1 + (1 - icc) / (icc * size)) ** 2) if icc else None


def with_sessions(successes: int, n: int, sessions: ClusterCounts, *, complete: bool = True) -> ClusterEffect:
    """The side of `successes` of `n`, cluster-aware when two or more sessions are known.

    `complete`: all sessions are listed. With very many sessions, or very many attempts outside any, only the
    newest are read: then the design effect of those stands for all, and the side is that of n / design effect
    attempts. At such sizes the t quantile is the normal one, and rounding moves a rate by less than 0.05 points.
    """
    alone_n = n - sum(m for _, m in sessions)
    alone_k = successes - sum(k for k, _ in sessions)
    if len(sessions) < rates.FEWEST_CLUSTERS or alone_n < 0 or not 0 <= alone_k <= alone_n:
        return ClusterEffect(Side(successes, n), len(sessions))
    if complete and alone_n <= MOST_LISTED:
        singles = [(1, 1)] * alone_k + [(0, 1)] * (alone_n - alone_k)
        side = Side(successes, n, [*sessions, *singles])
        return ClusterEffect(side, len(sessions), inflation=side.clustered_rate.design_effect)
    effect = rates.clustered_rate([k for k, _ in sessions], [m for _, m in sessions]).design_effect
    if complete:
        # The attempts outside any session are independent, so the excess variance is that of the others alone.
        effect = 1 + (effect - 1) * (n - alone_n) / n
    return ClusterEffect(Side(round(successes / effect), round(n / effect)), len(sessions), effect, effect)
