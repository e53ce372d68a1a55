"""Which contracts the episodes of a side ran under, and the field diff of the two most used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gapwatch.answers.answer import Caution, FieldDifference
from gapwatch.statistics.causes.contracts import (
    ContractDiff,
    Difference,
    compare_contracts,
)
from gapwatch.store.read.sides import ContractCount
from gapwatch.store.tables.rollups import NO_CONTRACT

# So many episodes of a side must run under its contract before a difference is evidence for each of its failures.
NEARLY_ALL = 0.95
MOST_TOLD = 20
# Every answer carries the differences; beyond so many the contract's own answer has them all.
MOST_WARNED = 20


@dataclass(frozen=True)
class ContractUse:
    """A contract and the episodes that ran under it; null for episodes that sent none."""

    contract: Mapping[str, Any] | None
    episodes: int


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
    """Both sides' contracts, and how the most used of each differ."""

    sim: SideContracts
    real: SideContracts
    diff: ContractDiff
    # What the sides are called.
    words: tuple[str, str] = ("sim", "real")

    @property
    def differences(self) -> tuple[FieldDifference, ...]:
        return tuple(FieldDifference(d.field, d.kind, d.sim, d.real) for d in self.diff.differences)

    @property
    def differing(self) -> int:
        """In how many fields each real episode's contract differs from each sim one's; 0 where a side is mixed."""
        uniform = all(
            side.most_used is not None and side.most_used.episodes >= NEARLY_ALL * side.episodes
            for side in (self.sim, self.real)
        )
        return len(self.diff.differences) if uniform else 0

    def cautions(self) -> Iterable[Caution]:
        if self.diff.verdict == "differs":
            count = len(self.diff.differences)
            fields = ", ".join(d.field for d in self.diff.differences[:3]) + (" …" if count > 3 else "")  # noqa: PLR2004
            yield Caution(
                "contract-differs",
                f"{self.words[0].capitalize()} and {self.words[1]} ran under contracts that differ in {count} "
                f"{'field' if count == 1 else 'fields'}: {fields}. Read the numbers below with that in mind.",
                self.differences[:MOST_WARNED],
            )
        for word, side in zip(self.words, (self.sim, self.real), strict=True):
            if side.count > 1 and side.most_used is not None:
                share = side.most_used.episodes / side.episodes
                yield Caution(
                    "several-contracts",
                    f"The {word} episodes ran under {side.count} contracts; the most used one, "
                    f"{100 * share:.0f} % of them, is the one compared.",
                )

    def unit_mismatch(self, metric: str) -> str | None:
        """Why a metric cannot be compared: the contracts give it different units."""
        for difference in self.diff.differences:
            if _is_unit_of(difference, metric):
                return f"{metric} is in {difference.sim} in sim and in {difference.real} in real."
        return None


def pair_contracts(
    sim: Sequence[ContractCount], real: Sequence[ContractCount], words: tuple[str, str] = ("sim", "real")
) -> ContractPair:
    first, second = _of_side(sim), _of_side(real)
    bodies = (use.contract if use is not None else None for use in (first.most_used, second.most_used))
    return ContractPair(first, second, compare_contracts(*bodies), words)


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
