"""The drop at each level of each condition, for the answer that lists them and the ledger that suspects some."""

from __future__ import annotations

from collections.abc import Mapping

from gapwatch.answers.cell_table import CellTable
from gapwatch.statistics.causes.slices import Counts, Crowding, Slice, slice_drops
from gapwatch.statistics.causes.suspects import adjust_suspects

MOST_SLICES = 200


def level_drops(
    counts: Mapping[tuple[str, str], Counts],
    table: CellTable,
    crowding: tuple[Crowding | None, Crowding | None] = (None, None),
) -> list[Slice]:
    """Return the most tried levels, where there are more than can be read: three episodes settle nothing.

    A level that is worse only because it comes with a worse one of another condition is not suspected.
    """
    most = sorted(counts, key=lambda key: (-counts[key][3], -counts[key][1], key))[:MOST_SLICES]
    return adjust_suspects(slice_drops({key: counts[key] for key in most}, crowding=crowding), table.count)
