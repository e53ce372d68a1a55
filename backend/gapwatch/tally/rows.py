"""What a fold reads of episodes, and what the numbers in it stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gapwatch.tally.sums import DAY_S, EpisodeGroup, Key

# A one-dimensional float8[] as Postgres sends it: 20 bytes of header, then length and value of each element.
_HEADER = 20
_ELEMENT = np.dtype([("length", ">i4"), ("value", ">f8")])


class Row(NamedTuple):
    """What folding needs of an episode; names and condition sets by number, arrays as Postgres sends them."""

    sign: int
    domain: str
    policy_id: int
    task_id: int
    source_id: int
    hour: int
    robot_id: int | None
    site_id: int | None
    stage: str | None
    condition_set_id: int | None
    number_names_id: int | None
    numbers: bytes | None
    outcome: str
    phase: str | None
    labels: list[str] | None
    category: str | None
    session: str | None
    contract_id: int | None
    duration_s: float | None
    reward: float | None
    signal_names_id: int | None
    signals: bytes | None
    metric_names_id: int | None
    metrics: bytes | None


class Names(NamedTuple):
    """What the numbers of one project's rows stand for."""

    condition_sets: Mapping[int, Mapping[str, Any]]
    name_sets: Mapping[int, Sequence[str]]
    # Conditions that are left out of cells, by policy and task.
    pooled: Mapping[tuple[int, int], frozenset[str]]


def unpack(blobs: Sequence[bytes], width: int) -> NDArray[np.float64]:
    """Arrays of one length as Postgres sends them, into a matrix."""
    row = np.dtype([("header", "V", _HEADER), ("elements", _ELEMENT, (width,))])
    arrays = np.frombuffer(b"".join(blobs), dtype=row)
    return arrays["elements"]["value"].astype(np.float64).reshape(len(blobs), width)


class Columns:
    """Rows of a fold by columns: a count goes through a zip of them without a step of Python for each episode."""

    def __init__(self, rows: Sequence[Row]) -> None:
        of: Any = Row._make(zip(*rows, strict=True))
        days = [hour - hour % DAY_S for hour in of.hour]
        distinct, self.scope_index = numbered(
            zip(of.domain, of.policy_id, of.task_id, of.source_id, days, strict=True)
        )
        self.of = of
        self.scopes: list[tuple[EpisodeGroup, int]] = [
            (EpisodeGroup(domain, policy_id, task_id, source_id), day)
            for domain, policy_id, task_id, source_id, day in distinct
        ]
        """Scope and day; `scope_index` has for each row the index of its own."""


def numbered(keys: Iterable[Key]) -> tuple[list[Key], list[int]]:
    """Return the distinct keys, and for each key its index among them. Small numbers are quick to count by."""
    column = list(keys)
    distinct = list(dict.fromkeys(column))
    index_of = {key: index for index, key in enumerate(distinct)}
    return distinct, [*map(index_of.__getitem__, column)]
