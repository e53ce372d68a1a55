"""What changed: when it may have been, the events that fit it, and the robots that are affected."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gapwatch.statistics.change.change_set import change_set
from gapwatch.statistics.change.fallen_robots import RobotSides, fallen_robots
from gapwatch.statistics.estimates.rates import wilson
from gapwatch.statistics.estimates.worst_first import is_few, is_shared, surest_first
from gapwatch.watching.series import RATE_SERIES

LOOK_BACK = timedelta(days=7)
# Clocks differ, and an event is noted a little late: what stands just after a change may still be its cause.
SLACK = timedelta(hours=1)
# An event inside the plausible set fits at least half as well as one at its best place; outside it less than that.
INSIDE = 0.5
FIRST_DAY = timedelta(days=1)
# So many episodes before an estimate and after it say when the change was.
EPISODES_AROUND = 200
MOST_SHOWN = 3


@dataclass(frozen=True)
class ChangeSpan:
    """When something changed: the best estimate, and from when to when the change lies with 95 %.

    `times` and `weights`: of episodes around it, how plausible it is that each is the first one after the change.
    Without them nothing is known but the estimate.
    """

    at: datetime
    earliest: datetime
    latest: datetime
    n: int = 0
    times: tuple[datetime, ...] = ()
    weights: tuple[float, ...] = ()

    def fit(self, at: datetime) -> float:
        """How well a cause at that time fits, from 0 to 1.

        Whatever happened between two episodes can first be seen in the later one, whose weight counts. Before the
        set a cause may have acted late, and fits the less the earlier it was; after the set it is none.
        """
        if self.earliest < at <= self.latest and self.weights:
            seen = min(bisect_left(self.times, at), len(self.weights) - 1)
            return INSIDE + (1 - INSIDE) * self.weights[seen] / max(self.weights)
        if self.earliest <= at <= self.latest:
            return 1.0
        if at > self.latest:
            return INSIDE / 2 if at <= self.latest + SLACK else 0.0
        hours = (self.earliest - at).total_seconds() / 3600
        return INSIDE / (1 + hours / 6) if at >= self.earliest - LOOK_BACK else 0.0


def change_span(
    estimate: datetime, values: Sequence[tuple[datetime, float]], series: str, evidence: Mapping[str, Any]
) -> ChangeSpan:
    """The span of a change of a series from its values around a detector's estimate.

    A detector names an episode to count from, which may be dozens of episodes off; the values around it tell
    better, and how well. Without enough of them the estimate stands, give or take an hour; where it is the first
    episode there is, its cause may be a day older.
    """
    if not any(at < estimate for at, _ in values):
        return ChangeSpan(estimate, estimate - (FIRST_DAY if values else SLACK), estimate + SLACK)
    name = series.partition("@")[0]
    rate = name in RATE_SERIES
    sessions = evidence.get("sessions")
    alike = sessions.get("design_effect") if isinstance(sessions, Mapping) else None
    found = change_set(
        [value for _, value in values],
        rate=rate,
        moved=("lower" if name == "success" else "higher") if rate else None,
        alike=float(alike) if isinstance(alike, int | float) else 1.0,
    )
    if found is None:
        return ChangeSpan(estimate, estimate - SLACK, estimate + SLACK)
    times = tuple(at for at, _ in values)
    return ChangeSpan(
        at=times[found.best],
        earliest=times[max(0, found.first - 1)],
        latest=times[found.last],
        n=len(values),
        times=times,
        weights=found.weights,
    )


@dataclass(frozen=True)
class Happened:
    """An event; `scope` is what it names: deployment, site, robots, or nothing for the whole project."""

    kind: str
    at: datetime
    title: str
    deployment: str | None = None
    site: str | None = None
    robots: tuple[str, ...] = ()


@dataclass(frozen=True)
class AffectedRobots:
    """`verdict`: how many it concerns, in the words of `fallen_robots`."""

    affected: tuple[str, ...]
    unaffected: tuple[str, ...]
    verdict: str = "too few episodes"


def affected_robots(sides: Sequence[RobotSides], reference: float | None) -> AffectedRobots:
    """Return the robots that are established to have fallen, and those that are as good as before."""
    found = fallen_robots(sides, reference)
    return AffectedRobots(found.affected, found.spared, found.verdict)


def rank_events(
    events: Sequence[Happened],
    change: ChangeSpan,
    *,
    deployment: str,
    site: str | None,
    robots: AffectedRobots,
    most: int = MOST_SHOWN,
) -> list[dict[str, Any]]:
    """Return the events that fit best, each with its fit from 0 to 1.

    Fit = fit in time by the uncertainty of the change (`ChangeSpan.fit`), times scope: 1 for this deployment, 0.9
    for its site, 0.7 for everything; an event that names robots also counts by the share of affected robots among
    them and of unaffected ones outside them. Events of another deployment are left out; those of a site that had
    no episodes of this one are not read at all, so that one of another site counts as one of everything.
    """
    ranked = []
    for event in events:
        if event.deployment not in {None, deployment}:
            continue
        is_here = event.site is not None and event.site == site
        scope = 1.0 if event.deployment is not None else 0.9 if is_here else 0.7
        fit = scope * change.fit(event.at) * _robots_fit(event.robots, robots)
        if fit > 0:
            ranked.append((fit, event))
    ranked.sort(key=lambda pair: (-round(pair[0], 6), abs(pair[1].at - change.at), pair[1].title))
    return [
        {
            "kind": event.kind,
            "at": event.at.isoformat().replace("+00:00", "Z"),
            "title": event.title,
            "fit": round(fit, 3),
            "inside": change.earliest < event.at <= change.latest,
            **({"robots": list(event.robots)} if event.robots else {}),
        }
        for fit, event in ranked[:most]
    ]


def _robots_fit(named: Sequence[str], robots: AffectedRobots) -> float:
    if not named or not robots.affected:
        return 1.0
    inside = sum(robot in named for robot in robots.affected) / len(robots.affected)
    outside = [robot not in named for robot in robots.unaffected]
    return inside * (sum(outside) / len(outside) if outside else 1.0)


@dataclass(frozen=True)
class LevelShare:
    """Successes under one level of one condition since the change."""

    condition: str
    level: str
    successes: int
    n: int


def worst_slices(shares: Sequence[LevelShare]) -> list[dict[str, Any]]:
    """Return the three levels that fail most for certain: by the lower limit of failure, 1 − Wilson's upper one.

    A level of fewer than twenty episodes is left out, and so is one that nearly all episodes have: what is lost
    there is what is lost altogether.
    """
    totals: dict[str, int] = {}
    for share in shares:
        totals[share.condition] = totals.get(share.condition, 0) + share.n
    comparable = [s for s in shares if not is_few(s.n) and not is_shared(0, 0, s.n, totals[s.condition])]
    comparable.sort(key=lambda s: (surest_first(1 - wilson(s.successes, s.n)[1]), s.condition, s.level))
    return [
        {
            "condition": s.condition,
            "level": s.level,
            "value": s.successes / s.n,
            "interval": list(wilson(s.successes, s.n)),
            "n": s.n,
        }
        for s in comparable[:MOST_SHOWN]
    ]


def slice_words(worst: Sequence[Mapping[str, Any]]) -> list[str]:
    """`lighting=dim 31 % of 26` for each."""
    return [f"{s['condition']}={s['level']} {100 * s['value']:.0f} % of {s['n']}" for s in worst]
