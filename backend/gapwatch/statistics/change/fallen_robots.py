"""Which robots a fall of success concerns: one, some, or all alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gapwatch.statistics.causes.slices import excess_tests, newcombe, rate_test
from gapwatch.statistics.estimates.multiplicity import benjamini_hochberg
from gapwatch.statistics.estimates.rates import wilson

Interval = tuple[float, float]
RobotWord = Literal["fell", "did not fall", "rose", "too few episodes"]
FewWord = Literal["one robot", "alone", "some", "all", "none", "too few episodes"]
FEWEST = 5
LEVEL = 0.05
# A robot whose fall is for certain smaller than this share of that of the fallen ones is spared.
SPARED = 0.5


@dataclass(frozen=True)
class RobotSides:
    """Successes of one robot before the change and since."""

    robot: str
    before_successes: int
    before_n: int
    successes: int
    n: int


@dataclass(frozen=True)
class RobotFall:
    """`fall`: what it lost against its own past, or against the reference where it has none; `q`: of no fall."""

    robot: str
    before: float | None
    before_n: int
    value: float | None
    n: int
    interval: Interval | None
    fall: float | None
    fall_interval: Interval | None
    q: float | None
    verdict: RobotWord


@dataclass(frozen=True)
class FallenRobots:
    robots: tuple[RobotFall, ...]
    verdict: FewWord
    # Those that fell more than the rest where the verdict is `alone` or `some`; all that fell otherwise.
    affected: tuple[str, ...]
    spared: tuple[str, ...]


def fallen_robots(sides: Sequence[RobotSides], reference: float | None = None) -> FallenRobots:
    """Each robot against its own past, and against the other robots.

    Formula: of each robot the exact test of equal rates (`rate_test`) and Newcombe's interval of the fall; the p
    of all robots together by Benjamini and Hochberg, at 5 %. A robot without five episodes before the change is
    held against `reference` by an exact binomial test. It stands out if its fall exceeds that of the others
    together (MOVER, `excess_tests`, again by Benjamini and Hochberg). The verdict is `alone` or `some` if those
    that stand out fell and the rest together did not; `all` if every robot fell, or most did and nobody stands
    out; `none` if they did not fall together.
    Assumes independent episodes. Sources: Barnard 1947, Newcombe 1998, Zou and Donner 2008, Benjamini and
    Hochberg 1995. Smallest n: 5 episodes of a robot since the change; with fewer it has no verdict.
    """
    known = [side for side in sides if side.n >= FEWEST and (_has_past(side) or reference is not None)]
    q_values = benjamini_hochberg([_p_of(side, reference) for side in known]) if known else ()
    q_of = {side.robot: q for side, q in zip(known, q_values, strict=True)}
    robots = tuple(_fall(side, reference, q_of.get(side.robot)) for side in sides)
    fell = tuple(robot.robot for robot in robots if robot.verdict == "fell")
    verdict, affected = _together(known, fell, reference)
    return FallenRobots(robots, verdict, affected, _spared(robots, affected))


def _has_past(side: RobotSides) -> bool:
    return side.before_n >= FEWEST


def _p_of(side: RobotSides, reference: float | None) -> float:
    if _has_past(side):
        return rate_test(side.before_successes, side.before_n, side.successes, side.n)[0]
    from scipy.stats import binomtest

    return float(binomtest(side.successes, side.n, min(1.0, max(0.0, reference or 0.0))).pvalue)


def _fall(side: RobotSides, reference: float | None, q: float | None) -> RobotFall:
    before = side.before_successes / side.before_n if side.before_n else None
    value = side.successes / side.n if side.n else None
    interval = wilson(side.successes, side.n) if side.n else None
    fall: float | None = None
    fall_interval: Interval | None = None
    if _has_past(side) and side.n:
        fall, fall_interval = newcombe(side.before_successes, side.before_n, side.successes, side.n)
    elif reference is not None and value is not None and interval is not None:
        fall, fall_interval = reference - value, (reference - interval[1], reference - interval[0])
    verdict: RobotWord
    if q is None or fall is None:
        verdict = "too few episodes"
    elif q > LEVEL:
        verdict = "did not fall"
    else:
        verdict = "fell" if fall > 0 else "rose"
    return RobotFall(side.robot, before, side.before_n, value, side.n, interval, fall, fall_interval, q, verdict)


def _together(
    known: Sequence[RobotSides], fell: tuple[str, ...], reference: float | None
) -> tuple[FewWord, tuple[str, ...]]:
    if not known:
        return "too few episodes", ()
    if len(known) == 1:
        return ("one robot", fell) if fell else ("none", ())
    outstanding = _outstanding(known, reference)
    rest = [side for side in known if side.robot not in outstanding]
    if outstanding and rest and not _fell_together(rest, reference):
        return ("alone" if len(outstanding) == 1 else "some"), outstanding
    if outstanding:
        return "all" if len(fell) == len(known) else "some", fell or outstanding
    if len(fell) == len(known):
        return "all", fell
    if not _fell_together(known, reference):
        return "none", fell
    # They fell together and nobody differs. Whether each of them did is known only with enough episodes of each.
    return (
        ("all", tuple(side.robot for side in known)) if len(fell) > len(known) / 2 else ("too few episodes", fell)
    )


def _outstanding(known: Sequence[RobotSides], reference: float | None) -> tuple[str, ...]:
    """Robots that fell more than the others together."""
    tables = [
        (_counts([side], reference), _counts([s for s in known if s is not side], reference)) for side in known
    ]
    tests = excess_tests(tables)
    q_values = benjamini_hochberg([p for _, _, p in tests])
    return tuple(
        side.robot
        for side, (excess, _, _), q in zip(known, tests, q_values, strict=True)
        if q <= LEVEL and excess > 0
    )


def _fell_together(sides: Sequence[RobotSides], reference: float | None) -> bool:
    k, n, k_now, n_now = _counts(sides, reference)
    return newcombe(k, n, k_now, n_now)[1][0] > 0


def _counts(sides: Sequence[RobotSides], reference: float | None) -> tuple[int, int, int, int]:
    """Before and since, pooled. Without a past of their own the reference stands for a thousand episodes."""
    past = [side for side in sides if _has_past(side)]
    k, n = sum(side.before_successes for side in past), sum(side.before_n for side in past)
    if not n:
        k, n = round(1000 * (reference or 0.0)), 1000
    return k, n, sum(side.successes for side in sides), sum(side.n for side in sides)


def _spared(robots: Sequence[RobotFall], affected: tuple[str, ...]) -> tuple[str, ...]:
    """Robots that are known to have lost little: their fall is at most half that of the affected ones."""
    falls = [robot.fall for robot in robots if robot.robot in affected and robot.fall is not None]
    if not falls:
        return ()
    half = SPARED * sum(falls) / len(falls)
    return tuple(
        robot.robot
        for robot in robots
        if robot.robot not in affected
        and robot.verdict in ("did not fall", "rose")
        and robot.fall is not None
        and robot.fall <= half
    )
