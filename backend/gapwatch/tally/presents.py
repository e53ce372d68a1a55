"""The present of a deployment, made from its newest attempts; what the fold keeps of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from gapwatch.statistics.change.present import NEWEST, REACH, MovedWord, Present, Rate, RegimeStart, find_present
from gapwatch.statistics.estimates.odd_ones import Member, odd_ones
from gapwatch.statistics.estimates.rates import FEWEST_SESSIONS, SessionSums

Why = Literal["release", "change", "baseline", "start", "drifting"]
Interval = tuple[float, float]

# Attempts that are read of a deployment, whatever came of them: what one fold costs does not grow with the years.
ATTEMPTS = 2400
MOST_ROBOTS = 100
FEWEST_A_ROBOT = 50


class RecentAttempt(NamedTuple):
    started_at: datetime
    outcome: str
    policy_id: int
    task_id: int
    robot: str | None
    session: str | None


@dataclass(frozen=True)
class PresentFacts:
    """What is known of a deployment beside its episodes.

    `version_since`: the first episode of its version here. `changed_at`: the newest change of success that the
    watch established. `pinned_at`: when its baseline was chosen. `design_effect`: by the watch, how many episodes
    are worth one.
    """

    policy_id: int
    task_id: int
    version_since: datetime | None
    is_first_version: bool
    changed_at: datetime | None
    pinned_at: datetime | None
    design_effect: float


@dataclass(frozen=True)
class StoredRate:
    successes: int
    n: int
    interval: Interval | None

    @property
    def value(self) -> float | None:
        return self.successes / self.n if self.n else None


@dataclass(frozen=True)
class StoredRobot:
    """`than_others`: where it stands against the other robots together, if it stands out."""

    robot: str
    successes: int
    n: int
    interval: Interval | None
    than_others: Literal["below", "above"] | None


@dataclass(frozen=True)
class StoredMove:
    """Now minus before, as a fraction."""

    change: float | None
    interval: Interval | None
    verdict: MovedWord


@dataclass(frozen=True)
class StoredPresent:
    """The real side of the present. `is_cut`: the regime began before the newest 2000, where we stop looking.

    `is_chosen`: where it began was chosen because the episodes differ.
    `aborted` and `abandoned` are attempts of the regime that enter no rate.
    """

    facts: PresentFacts
    since: datetime | None
    why: Why
    is_cut: bool
    is_chosen: bool
    estimate: StoredRate
    estimate_since: datetime | None
    regime: StoredRate
    aborted: int
    abandoned: int
    before: StoredRate | None
    before_until: datetime | None
    moved: StoredMove
    robots: tuple[StoredRobot, ...]
    design_effect: float
    # The first episode of `before`; rows that are older than this field get it with the next episode.
    before_since: datetime | None = None


def make_present(attempts: Sequence[RecentAttempt], facts: PresentFacts) -> StoredPresent:
    """`attempts` newest first, at most `ATTEMPTS` of them, of every version."""
    decided = [one for one in attempts if one.outcome in ("success", "failure")][:REACH][::-1]
    own = [one for one in decided if _is_own(one, facts)]
    first = own[0].started_at if own else None
    earlier = [one for one in decided if not _is_own(one, facts) and first is not None and one.started_at < first]
    effect = max(_design_effect(own), facts.design_effect)
    known_at = max((at for at in (facts.changed_at, facts.pinned_at) if at is not None), default=None)
    known_from = 0 if known_at is None else next((i for i, one in enumerate(own) if one.started_at >= known_at), 0)
    present = find_present(_outcomes(own), _outcomes(earlier), known_from, effect)
    regime = own[present.regime_from :]
    since = regime[0].started_at if regime else None
    is_cut = present.regime_from == 0 and None not in (since, facts.version_since) and since != facts.version_since
    unfinished = [
        one.outcome for one in attempts if since is not None and one.started_at >= since and _is_own(one, facts)
    ]
    return StoredPresent(
        facts=facts,
        since=since,
        why=_why(present.start, facts, known_at),
        is_cut=is_cut,
        is_chosen=present.start in ("found", "drifting"),
        estimate=_stored(present.estimate),
        estimate_since=own[-NEWEST:][0].started_at if own else None,
        regime=_stored(present.regime),
        aborted=unfinished.count("aborted"),
        abandoned=unfinished.count("abandoned"),
        before=None if present.before is None else _stored(present.before),
        before_until=_until(own, present),
        moved=StoredMove(present.moved.change, present.moved.interval, present.moved.verdict),
        robots=_robots(own, regime, effect),
        design_effect=effect,
        before_since=_before_since(own, earlier, present),
    )


def _is_own(attempt: RecentAttempt, facts: PresentFacts) -> bool:
    return (attempt.policy_id, attempt.task_id) == (facts.policy_id, facts.task_id)


def _outcomes(attempts: Sequence[RecentAttempt]) -> list[bool]:
    return [one.outcome == "success" for one in attempts]


def _stored(rate: Rate) -> StoredRate:
    return StoredRate(rate.successes, rate.n, rate.interval)


def _why(start: RegimeStart, facts: PresentFacts, known_at: datetime | None) -> Why:
    if start == "known":
        return "change" if known_at == facts.changed_at else "baseline"
    if start == "first":
        return "start" if facts.is_first_version else "release"
    return "change" if start == "found" else "drifting"


def _until(own: Sequence[RecentAttempt], present: Present) -> datetime | None:
    return own[present.before_until].started_at if own and present.before is not None else None


def _before_since(
    own: Sequence[RecentAttempt], earlier: Sequence[RecentAttempt], present: Present
) -> datetime | None:
    if present.before is None:
        return None
    n = present.before.n
    if present.start == "first" and present.before_until == 0:
        return earlier[-n].started_at
    return own[max(0, present.before_until - n)].started_at


def _design_effect(own: Sequence[RecentAttempt]) -> float:
    """How many episodes are worth one because those of a session are alike; 1 where few sessions are named."""
    totals: dict[str, list[int]] = {}
    alone: list[int] = []
    for one in own:
        success = int(one.outcome == "success")
        if one.session is None:
            alone.append(success)
        else:
            total = totals.setdefault(one.session, [0, 0])
            total[0] += success
            total[1] += 1
    if len(totals) < FEWEST_SESSIONS or all(n == 1 for _, n in totals.values()):
        return 1.0
    sums = SessionSums()
    for successes, n in totals.values():
        sums.add(successes, n)
    if alone:
        sums.add_alone(sum(alone), len(alone))
    return max(1.0, sums.likeness().design_effect)


def _robots(
    own: Sequence[RecentAttempt], regime: Sequence[RecentAttempt], design_effect: float
) -> tuple[StoredRobot, ...]:
    """Each robot's newest episodes of the regime, and which of them stand out.

    A regime of a few hours tells no robot from the others, and would hide one that was odd for weeks: below 50
    episodes a robot, the newest of the version are taken in its place.
    """
    named = {one.robot for one in regime if one.robot is not None}
    if len(regime) < FEWEST_A_ROBOT * len(named):
        regime = own[-NEWEST * len(named) :]
    counts: dict[str, list[int]] = {}
    for one in reversed(regime):
        if one.robot is not None:
            count = counts.setdefault(one.robot, [0, 0])
            if count[1] < NEWEST:
                count[0] += one.outcome == "success"
                count[1] += 1
    names = sorted(sorted(counts, key=lambda name: (-counts[name][1], name))[:MOST_ROBOTS])
    judged = odd_ones([Member(name, *counts[name]) for name in names], design_effect)
    return tuple(StoredRobot(one.name, one.successes, one.n, one.interval, one.stands_out) for one in judged)
