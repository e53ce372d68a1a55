"""Which cells of conditions a plan may visit for its goal, and what is known of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import sqrt

from gapwatch.answers.cell_table import CellTable
from gapwatch.answers.sides import Sides
from gapwatch.answers.strata import condition_strata
from gapwatch.levels import MISSING
from gapwatch.notation import count
from gapwatch.statistics.plans.allocation import FEWEST_A_CELL, Stratum

MOST_CELLS = 40
# However small the budget, so many are told apart; which of them are visited is another question.
FEW_CELLS = 4
# Suspects that are tried beside the usual conditions.
MOST_SUSPECTS = 3


@dataclass(frozen=True)
class CandidateCell:
    """A combination of levels. `weight`: its part of the estimate; `why` it would be visited.

    `pull`: its part of the trials where that is another; `at_least`: what it gets if it is visited; `spread` as in
    `Stratum`; `can_be_set_up`: every condition of it has a level.
    """

    conditions: Mapping[str, str]
    sim_successes: int
    sim_n: int
    successes: int
    n: int
    weight: float
    why: str
    is_urgent: bool = False
    at_least: int = FEWEST_A_CELL
    pull: float | None = None
    spread: float | None = None

    @property
    def can_be_set_up(self) -> bool:
        return MISSING not in self.conditions.values()

    @property
    def stratum(self) -> Stratum:
        weight = abs(self.weight) if self.pull is None else self.pull
        return Stratum(weight, self.successes, self.n, self.is_urgent, self.at_least, self.spread)


@dataclass(frozen=True)
class Candidates:
    """`simulate`: conditions that real has met and sim never ran, so that no trial can compare them."""

    cells: tuple[CandidateCell, ...]
    simulate: tuple[tuple[Mapping[str, str], int], ...] = ()


Key = tuple[str, ...]


def for_verdict(sides: Sides, most: int) -> Candidates:
    """Crossed levels of the conditions that both sides name, each with the mean of its shares on both sides."""
    strata = condition_strata(sides.table)
    names = _crossed(sides.table, strata.names, most)
    return _weighted(names, sides.table)


def for_coverage(sides: Sides) -> Candidates:
    """Combinations that sim has run and real has seen fewer than five times, however many can be visited."""
    strata = condition_strata(sides.table)
    names = _crossed(sides.table, (*strata.names, *strata.left_out), MOST_CELLS)
    found = _weighted(names, sides.table)
    cells = []
    for cell in found.cells:
        if cell.n >= FEWEST_A_CELL:
            continue
        why = f"{_times(cell.n)} in real, {_times(cell.sim_n)} in sim: five make it known"
        # All alike: the one with the fewest is the least known.
        cells.append(replace(cell, why=why, is_urgent=True, pull=1.0, spread=1.0))
    return Candidates(tuple(cells), found.simulate)


def for_cause(sides: Sides) -> Candidates:
    """The usual conditions, and each suspect with nothing else changed: what differs is its doing."""
    suspects = _suspects(sides)
    while suspects:
        found = _one_at_a_time(sides.table, suspects)
        if all(cell.sim_n for cell in found):
            return Candidates(found)
        suspects = suspects[:-1]
    return Candidates(())


def _one_at_a_time(table: CellTable, suspects: Sequence[tuple[str, str]]) -> tuple[CandidateCell, ...]:
    names = [name for name, _ in suspects]
    usual = {name: _usual_level(table, name, level) for name, level in suspects}
    counts = table.count(names)
    base = tuple(usual[name] for name in names)
    words = ", ".join(f"{name} {level}" for name, level in usual.items())
    why = f"the usual conditions ({words}), which the others are held against"
    # What several are held against is worth the root of their number (Dunnett 1955).
    first = replace(_at(names, base, counts, -1.0, why), pull=sqrt(len(suspects)), is_urgent=True)
    cells = [first]
    for at, (name, level) in enumerate(suspects):
        key = (*base[:at], level, *base[at + 1 :])
        why = f"{name} {level} is a suspect: only that is changed"
        cell = _at(names, key, counts, 0.0 if at else 1.0, why)
        cells.append(replace(cell, pull=1.0, is_urgent=not at))
    return tuple(cells)


def for_gate(
    sides: Sides, most: int, planned: Mapping[str, Sequence[str]] | None, seen: Mapping[Key, int], needed: int
) -> Candidates:
    """The planned cells of the gate, those that it still misses first; else what real meets, by its share."""
    if planned is None:
        found = for_verdict(sides, most)
        in_real = sum(cell.n for cell in found.cells) or 1
        cells = tuple(
            replace(
                cell,
                pull=cell.n / in_real,
                spread=1.0,
                is_urgent=False,
                why=_share_words(cell.n / in_real),
            )
            for cell in found.cells
            if cell.n
        )
        anywhere = CandidateCell({}, 0, 0, 0, 0, 1.0, "the gate counts every episode alike")
        return Candidates(cells or (anywhere,))
    names = list(planned)
    counts = sides.table.count(names)
    total = sum(c[3] for c in counts.values()) or 1
    cells_: list[CandidateCell] = []
    for key in product(*planned.values()):
        has = seen.get(key, 0)
        share = counts.get(key, (0, 0, 0, 0))[3] / total
        missing = max(0, needed - has)
        why = f"the gate wants {needed} episodes there and has {has}" if missing else _share_words(share)
        cell = _at(names, key, counts, share, why)
        at_least = max(FEWEST_A_CELL, missing)
        cells_.append(replace(cell, is_urgent=missing > 0, at_least=at_least, spread=1.0))
    return Candidates(tuple(cells_))


def _weighted(names: Sequence[str], table: CellTable) -> Candidates:
    counts = table.count(names)
    n_sim, n_real = (sum(c[side] for c in counts.values()) or 1 for side in (1, 3))
    cells, simulate = [], []
    for key, c in counts.items():
        if not c[1]:
            if MISSING not in key:
                simulate.append((dict(zip(names, key, strict=True)), int(c[3])))
            continue
        weight = (c[1] / n_sim + c[3] / n_real) / 2
        if c[3]:
            why = f"{100 * weight:.0f} % of the estimate, {int(c[2])} of {int(c[3])} succeeded so far"
        else:
            why = f"no real episode yet, {100 * c[1] / n_sim:.0f} % of sim's"
        cells.append(replace(_at(names, key, counts, weight, why), is_urgent=not c[3]))
    return Candidates(tuple(cells), tuple(simulate))


def _at(
    names: Sequence[str], key: Key, counts: Mapping[Key, tuple[float, ...]], weight: float, why: str
) -> CandidateCell:
    c = counts.get(key, (0, 0, 0, 0))
    conditions = dict(zip(names, key, strict=True))
    return CandidateCell(conditions, int(c[0]), int(c[1]), int(c[2]), int(c[3]), weight, why)


def _crossed(table: CellTable, names: Sequence[str], most: int) -> list[str]:
    """As many conditions, the most telling first, as leave no more cells than can be visited."""
    crossed: list[str] = []
    for name in names:
        tried = [*crossed, name]
        if len(table.count(tried)) <= min(max(most, FEW_CELLS), MOST_CELLS):
            crossed = tried
    # Of one condition with more levels than can be visited, those that are worth most are.
    return crossed or list(names[:1])


def _suspects(sides: Sides) -> list[tuple[str, str]]:
    """Levels where real fails more than elsewhere, one a condition, the surest first."""
    found: dict[str, str] = {}
    candidates = [
        one
        for one in sides.level_drops
        if one.level != MISSING and one.excess is not None and one.excess > 0 and not one.is_shared
    ]
    candidates.sort(key=lambda one: (not one.is_suspect, one.goes_with is not None, -(one.excess or 0)))
    for one in candidates:
        if one.condition not in found and _usual_level(sides.table, one.condition, one.level):
            found[one.condition] = one.level
    return list(found.items())[:MOST_SUSPECTS]


def _usual_level(table: CellTable, name: str, other_than: str) -> str:
    """The level that real meets most often, of those that sim has run too; empty where there is none."""
    counts = {
        key[0]: c[3]
        for key, c in table.count([name]).items()
        if key[0] not in (MISSING, other_than) and c[1] and c[3]
    }
    return max(counts, key=lambda level: (counts[level], level), default="")


def _share_words(share: float) -> str:
    return f"{100 * share:.0f} % of the real episodes are there, and the gate counts each alike"


def _times(n: int) -> str:
    return "never" if not n else "once" if n == 1 else f"{count(n)} times"
