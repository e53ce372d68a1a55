"""What changed just before: events ranked by how well they fit the change point, and the robots that are
affected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gapwatch.statistics.estimates.rates import wilson

LOOK_BACK = timedelta(days=7)
# The change point is an estimate: what happened a little after it may still be the cause.
SLACK = timedelta(hours=1)
FEWEST_OF_A_ROBOT = 5
MOST_SHOWN = 3


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
class RobotShare:
    """Successes of one robot since the change."""

    robot: str
    successes: int
    n: int


@dataclass(frozen=True)
class AffectedRobots:
    affected: tuple[str, ...]
    unaffected: tuple[str, ...]


def affected_robots(shares: Sequence[RobotShare], reference: float) -> AffectedRobots:
    """Return the robots established below the reference since the change, and those that are as good as it.

    Below: Wilson's upper limit is under the reference. As good: it is not, and the rate is no more than half the
    fall of the affected ones away from it. Robots with fewer than five episodes are in neither list.
    """
    known = [share for share in shares if share.n >= FEWEST_OF_A_ROBOT]
    below = [share for share in known if wilson(share.successes, share.n)[1] < reference]
    if not below:
        return AffectedRobots((), ())
    fallen = sum(share.successes for share in below) / sum(share.n for share in below)
    half_way = (reference + fallen) / 2
    others = [share for share in known if share not in below and share.successes / share.n >= half_way]
    return AffectedRobots(
        tuple(sorted(share.robot for share in below)), tuple(sorted(share.robot for share in others))
    )


def rank_events(
    events: Sequence[Happened],
    change_at: datetime,
    *,
    deployment: str,
    site: str | None,
    robots: AffectedRobots,
) -> list[dict[str, Any]]:
    """Return the events that fit best, each with its fit from 0 to 1.

    Fit = nearness in time, 1/(1 + hours/6), times scope: 1 for this deployment, 0.9 for its site, 0.7 for
    everything; an event that names robots also counts by the share of affected robots among them and of unaffected
    ones outside them. Events of another deployment or site, after the change or a week before it, are left out.
    """
    ranked = []
    for event in events:
        if not change_at - LOOK_BACK <= event.at <= change_at + SLACK:
            continue
        if event.deployment not in {None, deployment} or (event.site is not None and event.site != site):
            continue
        hours = abs((change_at - event.at).total_seconds()) / 3600
        scope = 1.0 if event.deployment is not None else 0.9 if event.site is not None else 0.7
        fit = scope / (1 + hours / 6) * _robots_fit(event.robots, robots)
        if fit > 0:
            ranked.append((fit, event))
    ranked.sort(key=lambda pair: (-pair[0], pair[1].at, pair[1].title))
    return [
        {
            "kind": event.kind,
            "at": event.at.isoformat().replace("+00:00", "Z"),
            "title": event.title,
            "fit": round(fit, 3),
            **({"robots": list(event.robots)} if event.robots else {}),
        }
        for fit, event in ranked[:MOST_SHOWN]
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
    """Return the three worst levels by Wilson's upper limit, from five episodes on.

    A level that every episode of its condition has tells nothing, and is left out.
    """
    totals: dict[str, int] = {}
    for share in shares:
        totals[share.condition] = totals.get(share.condition, 0) + share.n
    comparable = [s for s in shares if s.n >= FEWEST_OF_A_ROBOT and s.n < totals[s.condition]]
    comparable.sort(key=lambda s: (wilson(s.successes, s.n)[1], s.condition, s.level))
    return [
        {"condition": s.condition, "level": s.level, "value": s.successes / s.n, "n": s.n}
        for s in comparable[:MOST_SHOWN]
    ]


def slice_words(worst: Sequence[Mapping[str, Any]]) -> list[str]:
    """`lighting=dim 31 % of 26` for each."""
    return [f"{s['condition']}={s['level']} {100 * s['value']:.0f} % of {s['n']}" for s in worst]
