"""Cells of a side as they are read, made by hand."""

from hypothesis import settings
from hypothesis import strategies as st

from gapwatch.store.read.rollup_counts import CellCount
from gapwatch.store.read.selection import Cell

steady = settings(deadline=None, derandomize=True, database=None)


def cell(successes: int, failures: int, *, task_id: int = 2, robot: str | None = None, **levels: str) -> CellCount:
    """So many judged episodes where these levels held; one more of each other outcome, which no rate is about."""
    return CellCount(3, 1, task_id, Cell(robot, None, None, levels), successes, failures, 1, 1)


_levels = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(["x", "y", "missing"]) for name in ("lighting", "object", "surface")}
)
some_cells = st.lists(
    st.builds(
        lambda successes, failures, robot, levels: cell(successes, failures, robot=robot, **levels),
        st.integers(0, 30),
        st.integers(0, 5),
        st.sampled_from([None, "r1"]),
        _levels,
    ),
    max_size=8,
)
