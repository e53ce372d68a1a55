"""The mix of conditions in sim and in reality: what sim does under the conditions of each real episode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gapwatch.watching.series import level_name

MOST_CELLS = 32
# A cell with fewer sim episodes says nothing.
FEWEST = 30
# With this chance at most a condition that does not matter is taken for one that does.
CERTAIN = 0.01


@dataclass(frozen=True)
class SimCell:
    """Sim successes and n under one combination of levels."""

    levels: Mapping[str, str]
    successes: int
    n: int


SimCells = Callable[[int], Sequence[SimCell]]
"""The sim cells of a policy version at the deployment's task."""


@dataclass(frozen=True)
class SimMix:
    """`shifts`: by how much sim lies above its mean, under the levels of the first one, two … conditions.

    `levels`: those that sim has, of every condition that it names.
    """

    conditions: tuple[str, ...] = ()
    shifts: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    levels: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def missing(self, levels: Mapping[str, str]) -> str | None:
        """The first of these levels that sim has hardly any episode of, as `light=dim`: nothing stands for it."""
        for condition in sorted(levels):
            known = self.levels.get(condition)
            if known is not None and levels[condition] not in known:
                return level_name(condition, levels[condition])
        return None

    def shift(self, levels: Mapping[str, str]) -> float:
        """By how much sim lies above its mean in the narrowest cell of these levels that it knows; 0 in none."""
        key = tuple(levels.get(name, "") for name in self.conditions)
        while key:
            known = self.shifts.get(key)
            if known is not None:
                return known
            key = key[:-1]
        return 0.0


def sim_mix(cells: Sequence[SimCell]) -> SimMix:
    """The conditions that matter in sim, most first, while their cells are few.

    Standardising is by the episode: a real outcome less the shift of its cell is what it would have been in sim's
    mix, as far as sim knows what the conditions do. Source: Fleiss, Levin & Paik 2003, chapter 19.
    """
    n, successes = sum(cell.n for cell in cells), sum(cell.successes for cell in cells)
    levels = {name: _levels(name, cells) for name in {x for cell in cells for x in cell.levels}}
    levels = {name: known for name, known in levels.items() if 0 < len(known) <= MOST_CELLS}
    if not n or not 0 < successes < n:
        return SimMix(levels=levels)
    strength = {name: _strength(name, cells, successes / n) for name in {x for cell in cells for x in cell.levels}}
    ranked = sorted((name for name, value in strength.items() if value > 0), key=lambda x: (-strength[x], x))
    chosen: tuple[str, ...] = ()
    shifts: dict[tuple[str, ...], float] = {}
    for name in ranked:
        counts = _counts((*chosen, name), cells)
        known = {key: k / m - successes / n for key, (k, m) in counts.items() if m >= FEWEST}
        if len(shifts) + len(known) > MOST_CELLS:
            break
        chosen = (*chosen, name)
        shifts |= known
    return SimMix(chosen, shifts, levels)


def _levels(condition: str, cells: Sequence[SimCell]) -> frozenset[str]:
    return frozenset(level for (level,), (_, n) in _counts((condition,), cells).items() if level and n >= FEWEST)


def _counts(conditions: tuple[str, ...], cells: Sequence[SimCell]) -> dict[tuple[str, ...], tuple[int, int]]:
    counts: dict[tuple[str, ...], tuple[int, int]] = {}
    for cell in cells:
        key = tuple(cell.levels.get(name, "") for name in conditions)
        k, n = counts.get(key, (0, 0))
        counts[key] = (k + cell.successes, n + cell.n)
    return counts


def _strength(condition: str, cells: Sequence[SimCell], p: float) -> float:
    """Pearson's χ² of equal rates by its degrees of freedom, 0 where levels may be equal or are too many."""
    from scipy.special import chdtrc

    counts = [count for count in _counts((condition,), cells).values() if count[1] >= FEWEST]
    if not 1 < len(counts) <= MOST_CELLS:
        return 0.0
    chi2 = sum((k - n * p) ** 2 / n for k, n in counts) / (p * (1 - p))
    return chi2 / (len(counts) - 1) if chdtrc(len(counts) - 1, chi2) < CERTAIN else 0.0
