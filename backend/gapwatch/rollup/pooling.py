"""Leaving conditions out of the cells when their levels make too many of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from gapwatch.store.core.database import Connection
from gapwatch.store.fold import cells
from gapwatch.tally.sums import CellContent, Sums, without

# A condition with more levels than this tells episodes apart instead of describing them; and a policy version with
# more cells in one task than this would be answered from as many rows as it has episodes.
MOST_LEVELS = 50
MOST_CELLS = 2000


def pool_new(connection: Connection, project_id: int, sums: Sums) -> None:
    """Where new episodes alone make too many cells: left out before those are written, which would only be merged
    (142 instead of 45 µs an episode of a first fold)."""
    new: dict[tuple[int, int], set[CellContent]] = {}
    for scope, _, cell in sums.cells:
        new.setdefault((scope.policy_id, scope.task_id), set()).add(cell)
    left_out: dict[tuple[int, int], Collection[str]] = {}
    for policy_and_task, contents in sorted(new.items()):
        if too_many(contents):
            levels = too_many(contents | cells.cell_contents(connection, project_id, *policy_and_task))
            cells.pool(connection, project_id, *policy_and_task, levels)
            left_out[policy_and_task] = levels
    if left_out:
        sums.leave_out(left_out)


def pool_stored(connection: Connection, project_id: int, policy_id: int, task_id: int) -> None:
    """Where they became too many little by little."""
    levels = too_many(cells.cell_contents(connection, project_id, policy_id, task_id))
    if levels:
        cells.pool(connection, project_id, policy_id, task_id, levels)


def too_many(contents: set[CellContent]) -> dict[str, int]:
    """The conditions to leave out, with their levels: each that has too many of them; then, while there are too
    many cells, the one that has most."""
    left_out: dict[str, int] = {}
    while True:
        levels = Counter(name for name, _ in {pair for cell in contents for pair in cell.levels})
        most = max(levels, key=lambda name: (levels[name], name), default=None)
        if most is None or (levels[most] <= MOST_LEVELS and len(contents) <= MOST_CELLS):
            return left_out
        left_out[most] = levels[most]
        contents = {without((most,), cell) for cell in contents}
