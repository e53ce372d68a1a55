"""The strata in which sim and real are compared like with like: tasks, or crossed levels of shared conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gapwatch.answers.cell_table import CellTable, Key
from gapwatch.answers.comparison_side import ComparisonSide
from gapwatch.statistics.causes.decomposition import Counts

# A further condition is crossed in as long as this share of the episodes at most, of those whose every level both
# sides have, falls into a combination that one side lacks. Beyond it, thin data would pass for off-support.
LARGEST_HOLE = 0.05
MOST_CROSSED = 6


@dataclass(frozen=True)
class Strata:
    """Counts per combination of levels of the `names`; `left_out` are shared conditions too thin to be crossed."""

    names: tuple[str, ...]
    counts: dict[Key, Counts]
    left_out: tuple[str, ...] = ()


def task_strata(sim: ComparisonSide, real: ComparisonSide, tasks: Mapping[int, str]) -> Strata:
    """One stratum per task; tasks that only one side tried are off-support."""
    sums: dict[Key, list[int]] = {}
    for first, side in ((0, sim), (2, real)):
        for cell in side.cells:
            if cell.successes + cell.failures:
                total = sums.setdefault((tasks[cell.task_id],), [0, 0, 0, 0])
                total[first] += cell.successes
                total[first + 1] += cell.successes + cell.failures
    return Strata(("task",), {key: (c[0], c[1], c[2], c[3]) for key, c in sums.items()})


def condition_strata(table: CellTable) -> Strata:
    """Conditions that both sides report, crossed one after the other, the most telling first."""
    in_sim, in_real = table.reported
    shared = sorted(in_sim & in_real)
    names = sorted(shared, key=lambda name: (-_weight(table.count([name]).values()), name))
    crossed: list[str] = []
    left_out: list[str] = []
    for name in names:
        tried = [*crossed, name]
        if len(tried) <= MOST_CROSSED and table.hole(tried) <= LARGEST_HOLE:
            crossed = tried
        else:
            left_out.append(name)
    return Strata(tuple(crossed), table.count(crossed), tuple(left_out))


def level_counts(table: CellTable) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    """(condition, level) → (successes and episodes in sim, then in real), of every condition a side reports."""
    in_sim, in_real = table.reported
    return _levels(table, [(name,) for name in sorted(in_sim | in_real)])


def pair_counts(table: CellTable, names: Sequence[str]) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    """The same for each two of the named conditions, written "lighting × object" and "dim × glass"."""
    return _levels(table, [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]])


def _levels(
    table: CellTable, groups: Iterable[tuple[str, ...]]
) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    counts = {}
    for group in groups:
        for key, c in table.count(group).items():
            counts[" × ".join(group), " × ".join(key)] = (int(c[0]), int(c[1]), int(c[2]), int(c[3]))
    return counts


def _weight(table: Iterable[Counts]) -> float:
    """How much a condition tells: the spread of shares between sides plus the spread of success between levels."""
    rows = list(table)
    n_sim, n_real = sum(c[1] for c in rows), sum(c[3] for c in rows)
    rate = sum(c[0] + c[2] for c in rows) / (n_sim + n_real)
    shares = sum(abs(c[1] / n_sim - c[3] / n_real) for c in rows) / 2
    rates = sum(abs(c[0] + c[2] - rate * (c[1] + c[3])) for c in rows) / (n_sim + n_real)
    return shares + rates
