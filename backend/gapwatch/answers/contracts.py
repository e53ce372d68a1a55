"""Which contracts the episodes of a side ran under, and the field diff of the two most used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gapwatch.answers.answer import Caution, FieldDifference
from gapwatch.statistics.contracts import ContractDiff, Difference, compare_contracts
from gapwatch.store.sides import ContractCount

# So many episodes of a side must run under its contract before a difference is evidence for each of its failures.
NEARLY_ALL = 0.95


@dataclass(frozen=True)
class ContractUse:
    """A contract and the episodes that ran under it; null for episodes that sent none."""

    contract: Mapping[str, Any] | None
    episodes: int


@dataclass(frozen=True)
class ContractPair:
    """Both sides' contracts, most used first, and how the first of each differ."""

    sim: tuple[ContractUse, ...]
    real: tuple[ContractUse, ...]
    diff: ContractDiff

    @property
    def differences(self) -> tuple[FieldDifference, ...]:
        return tuple(FieldDifference(d.field, d.kind, d.sim, d.real) for d in self.diff.differences)

    @property
    def differing(self) -> int:
        """In how many fields each real episode's contract differs from each sim one's; 0 where a side is mixed."""
        uniform = all(
            uses[0].contract is not None and uses[0].episodes >= NEARLY_ALL * sum(use.episodes for use in uses)
            for uses in (self.sim, self.real)
            if uses
        )
        return len(self.diff.differences) if uniform else 0

    def cautions(self) -> Iterable[Caution]:
        if self.diff.verdict == "differs":
            count = len(self.diff.differences)
            fields = ", ".join(d.field for d in self.diff.differences[:3]) + (" …" if count > 3 else "")  # noqa: PLR2004
            yield Caution(
                "contract-differs",
                f"Sim and real ran under contracts that differ in {count} "
                f"{'field' if count == 1 else 'fields'}: {fields}. Read the numbers below with that in mind.",
                self.differences,
            )
        sides: tuple[tuple[Literal["sim", "real"], Sequence[ContractUse]], ...] = (
            ("sim", self.sim),
            ("real", self.real),
        )
        for side, uses in sides:
            several = [use for use in uses if use.contract is not None]
            if len(several) > 1:
                share = several[0].episodes / sum(use.episodes for use in several)
                yield Caution(
                    "several-contracts",
                    f"The {side} episodes ran under {len(several)} contracts; the most used one, "
                    f"{100 * share:.0f} % of them, is the one compared.",
                )

    def unit_mismatch(self, metric: str) -> str | None:
        """Why a metric cannot be compared: the contracts give it different units."""
        for difference in self.diff.differences:
            if _is_unit_of(difference, metric):
                return f"{metric} is in {difference.sim} in sim and in {difference.real} in real."
        return None


def pair_contracts(sim: Sequence[ContractCount], real: Sequence[ContractCount]) -> ContractPair:
    first, second = _uses(sim), _uses(real)
    return ContractPair(first, second, compare_contracts(_most_used(first), _most_used(second)))


def _uses(counts: Sequence[ContractCount]) -> tuple[ContractUse, ...]:
    merged: list[ContractUse] = []
    for count in counts:
        for place, use in enumerate(merged):
            if use.contract == count.body:
                merged[place] = ContractUse(use.contract, use.episodes + count.episodes)
                break
        else:
            merged.append(ContractUse(count.body, count.episodes))
    return tuple(sorted(merged, key=lambda use: -use.episodes))


def _most_used(uses: Sequence[ContractUse]) -> Mapping[str, Any] | None:
    return next((use.contract for use in uses if use.contract is not None), None)


def _is_unit_of(difference: Difference, metric: str) -> bool:
    """`units.energy_j` or `metrics.energy_j.unit`, given on both sides and not the same."""
    words = [part for part in difference.path if isinstance(part, str)]
    about_units = any(word in ("unit", "units") for word in words)
    return about_units and metric in words and difference.kind in ("value", "type")
