"""Which contracts the episodes of a side ran under, and how each real one differs from that of sim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gapwatch.answers.answer import Caution, FieldDifference
from gapwatch.statistics.causes.contracts import (
    ContractDiff,
    Difference,
    compare_contracts,
)
from gapwatch.store.read.robot_contracts import RobotContract
from gapwatch.store.read.sides import ContractCount
from gapwatch.store.tables.rollups import NO_CONTRACT

# So many episodes of sim must run under one contract before a difference from it is evidence for a failure.
NEARLY_ALL = 0.95
# A contract that so many episodes of sim run under is one of those that it is run under.
OFTEN = 0.05
MOST_NAMED = 5
READ_ON = "Read the numbers below with that in mind."
MOST_TOLD = 20
# Every answer carries the differences; beyond so many the contract's own answer has them all.
MOST_WARNED = 20


@dataclass(frozen=True)
class ContractUse:
    """A contract and the episodes that ran under it; null for episodes that sent none.

    `differences` are those from the nearest contract that sim is run under, and `robots` are those of the newest
    episodes that ran under it; both of real ones only, robots where there are several contracts.
    """

    contract: Mapping[str, Any] | None
    episodes: int
    differences: tuple[FieldDifference, ...] = ()
    robots: tuple[str, ...] = ()


@dataclass(frozen=True)
class RobotContracts:
    """How the contracts of one robot differ from that of sim, by its newest episodes."""

    robot: str
    episodes: int
    differing_episodes: int
    verdict: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class SideContracts:
    """The contracts of one side, most used first, cut to the first few, and how many there are."""

    uses: tuple[ContractUse, ...]
    count: int
    episodes: int

    @property
    def most_used(self) -> ContractUse | None:
        return next((use for use in self.uses if use.contract is not None), None)


@dataclass(frozen=True)
class ContractPair:
    """Both sides' contracts: how the most used of each differ, and how every real one does from sim's."""

    sim: SideContracts
    real: SideContracts
    diff: ContractDiff
    # What the sides are called.
    words: tuple[str, str] = ("sim", "real")
    # Of each real contract, by its number, the fields in which it differs; 0 for those that sent none.
    fields_of: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    robots: tuple[RobotContracts, ...] = ()

    @property
    def verdict(self) -> str:
        """`differs` if any contract of the window does."""
        return "differs" if any(self.fields_of.values()) else self.diff.verdict

    @property
    def differences(self) -> tuple[FieldDifference, ...]:
        """Of the most used contract, or else of the most used one that differs."""
        if self.diff.differences:
            return _told(self.diff)
        return next((use.differences for use in self.real.uses if use.differences), ())

    @property
    def differing(self) -> Mapping[int, int]:
        """In how many fields each real contract differs from sim's, by its number; empty where none does, and
        where sim itself is mixed: then no failure is known to have run under anything else than sim does."""
        used = self.sim.most_used
        if used is None or used.episodes < NEARLY_ALL * self.sim.episodes or not any(self.fields_of.values()):
            return {}
        return {number: len(fields) for number, fields in self.fields_of.items()}

    def fields_differing(self, contract: Mapping[str, Any] | None) -> int:
        """In how many fields the contract of one real episode differs from sim's."""
        used = self.sim.most_used
        if not self.differing or used is None or contract is None:
            return 0
        return len(compare_contracts(used.contract, contract).differences)

    def cautions(self) -> Iterable[Caution]:
        if self.verdict == "differs":
            fields = self.differences
            named = ", ".join(d.field for d in fields[:3]) + (" …" if len(fields) > 3 else "")  # noqa: PLR2004
            size = f"{len(fields)} {'field' if len(fields) == 1 else 'fields'}"
            sim, real = self.words
            words = f"{sim.capitalize()} and {real} ran under contracts that differ in {size}: {named}."
            if not self.diff.differences:
                odd = next(use for use in self.real.uses if use.differences)
                whose = f" ({', '.join(odd.robots[:MOST_NAMED])})" if odd.robots else ""
                words = (
                    f"{odd.episodes} of {self.real.episodes} {real} episodes{whose} ran under a contract that "
                    f"differs from that of {sim} in {size}: {named}."
                )
            elif self.robots and any(robot.verdict == "comparable" for robot in self.robots):
                differing = [robot.robot for robot in self.robots if robot.verdict == "differs"]
                words += f" It concerns {', '.join(differing[:MOST_NAMED])}." if differing else ""
            yield Caution("contract-differs", f"{words} {READ_ON}", fields[:MOST_WARNED])
        for word, side in zip(self.words, (self.sim, self.real), strict=True):
            if side.count > 1 and side.most_used is not None:
                share = side.most_used.episodes / side.episodes
                yield Caution(
                    "several-contracts",
                    f"The {word} episodes ran under {side.count} contracts, {100 * share:.0f} % of them under the "
                    "most used one.",
                )

    def unit_mismatch(self, metric: str) -> str | None:
        """Why a metric cannot be compared: the contracts give it different units."""
        for difference in self.diff.differences:
            if _is_unit_of(difference, metric):
                return f"{metric} is in {difference.sim} in sim and in {difference.real} in real."
        return None


def pair_contracts(
    sim: Sequence[ContractCount],
    real: Sequence[ContractCount],
    words: tuple[str, str] = ("sim", "real"),
    robots: Sequence[RobotContract] = (),
) -> ContractPair:
    """`robots`: who ran under which of the real contracts, where that was read."""
    first, second = _of_side(sim), _of_side(real)
    bodies = (use.contract if use is not None else None for use in (first.most_used, second.most_used))
    diff = compare_contracts(*bodies)
    # Sim may be run under several contracts for good; one that it hardly uses says nothing.
    most_used = [] if first.most_used is None else [first.most_used]
    often = [use for use in first.uses if use.episodes >= OFTEN * first.episodes]
    known = [use.contract for use in (*most_used, *often) if use.contract is not None]
    diffs = {count.contract_id: _nearest(known, count.body) for count in real if count.body is not None and known}
    fields_of = {number: tuple(d.field for d in found.differences) for number, found in diffs.items()}
    numbers = {id(count.body): count.contract_id for count in real if count.body is not None}
    uses = tuple(
        replace(
            use,
            differences=_told(diffs[number]) if number in diffs else (),
            robots=tuple(one.robot for one in robots if one.robot and one.contract_id == number),
        )
        for use in second.uses
        for number in [NO_CONTRACT if use.contract is None else numbers[id(use.contract)]]
    )
    return ContractPair(first, replace(second, uses=uses), diff, words, fields_of, _by_robot(robots, fields_of))


def _nearest(known: Sequence[Mapping[str, Any]], body: Mapping[str, Any]) -> ContractDiff:
    return min((compare_contracts(sim, body) for sim in known), key=lambda diff: len(diff.differences))


def _told(diff: ContractDiff) -> tuple[FieldDifference, ...]:
    return tuple(FieldDifference(d.field, d.kind, d.sim, d.real) for d in diff.differences)


def _by_robot(
    robots: Sequence[RobotContract], fields_of: Mapping[int, tuple[str, ...]]
) -> tuple[RobotContracts, ...]:
    """Those that differ first, then by name."""
    found = []
    for robot in sorted({one.robot for one in robots if one.robot}):
        own = [one for one in robots if one.robot == robot]
        fields = dict.fromkeys(field for one in own for field in fields_of.get(one.contract_id, ()))
        differing = sum(one.episodes for one in own if fields_of.get(one.contract_id))
        known = any(one.contract_id in fields_of for one in own)
        verdict = "differs" if fields else "comparable" if known else "unknown"
        found.append(RobotContracts(robot, sum(one.episodes for one in own), differing, verdict, tuple(fields)))
    return tuple(sorted(found, key=lambda one: (one.verdict != "differs", one.robot)))


def _of_side(counts: Sequence[ContractCount]) -> SideContracts:
    """All sources together; episodes without a contract get an entry of their own, with a null."""
    episodes: dict[int, int] = {}
    bodies: dict[int, Mapping[str, Any] | None] = {}
    for count in counts:
        episodes[count.contract_id] = episodes.get(count.contract_id, 0) + count.episodes
        bodies[count.contract_id] = count.body
    uses = [
        ContractUse(bodies[number], n)
        for number, n in sorted(episodes.items(), key=lambda item: -item[1])
        if number == NO_CONTRACT or bodies[number] is not None
    ]
    known = len(episodes.keys() - {NO_CONTRACT})
    return SideContracts(tuple(uses[:MOST_TOLD]), known, sum(episodes.values()))


def _is_unit_of(difference: Difference, metric: str) -> bool:
    """`units.energy_j` or `metrics.energy_j.unit`, given on both sides and not the same."""
    words = [part for part in difference.path if isinstance(part, str)]
    about_units = any(word in ("unit", "units") for word in words)
    return about_units and metric in words and difference.kind in ("value", "type")
