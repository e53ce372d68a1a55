"""An episode's id, time and numbers in COPY format.

One episode is packed field by field. Many with the same names are packed as one array, at a tenth of the cost.
Both give the same bytes, and both write −0.0 as 0.0: one value to people, two to a hash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import islice
from struct import Struct
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gapwatch.ingest.packing import copy_format as pg
from gapwatch.ingest.packing.name_orders import NameOrder

MAP_COLUMNS = ("numbers", "signals", "metrics")
# An array is cheaper from this many episodes on.
FEWEST_FOR_ARRAY = 16

_PAIR = np.dtype([("length", ">i4"), ("value", ">f8")])
# MessagePack writes a float as a tag and eight bytes in network order: from Python's floats to those of
# Postgres in one call.
_TAGGED = np.dtype([("tag", "u1"), ("value", ">f8")])
_encode = msgspec.msgpack.Encoder().encode

NameOrders = tuple[NameOrder, NameOrder, NameOrder]


@dataclass(slots=True)
class SameWidthEpisodes:
    """Episodes whose rows have the same width: same names of numbers, ids of the same length."""

    orders: NameOrders
    indexes: list[int] = field(default_factory=list)
    """Of the episodes, among all that are packed together."""
    ids: list[str] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    """Duration, reward, and the numbers of the three maps as they were sent; episode after episode."""

    def pack(self) -> list[bytes]:
        return self._pack_as_array() if len(self.ids) >= FEWEST_FOR_ARRAY else self._pack_each()

    def _pack_each(self) -> list[bytes]:
        sizes = [len(names.order) for names in self.orders]
        pack, constants, starts = _format(len(self.ids[0]), *sizes)
        numbers = iter(self.numbers)
        packed = []
        for id_, time in zip(self.ids, self.times, strict=True):
            fields = constants.copy()
            fields[1], fields[3] = id_.encode(), pg.microseconds(time)
            fields[5], fields[7] = next(numbers) + 0.0, next(numbers) + 0.0
            for names, start in zip(self.orders, starts, strict=True):
                if names.order:
                    sent = [value + 0.0 for value in islice(numbers, len(names.order))]
                    fields[start : start + 2 * len(sent) : 2] = [sent[index] for index in names.order]
            packed.append(pack(*fields))
        return packed

    def _pack_as_array(self) -> list[bytes]:
        count = len(self.ids)
        sizes = tuple(len(names.order) for names in self.orders)
        width = 2 + sum(sizes)
        encoded = _encode(self.numbers)
        tagged = np.frombuffer(encoded, _TAGGED, offset=len(encoded) - _TAGGED.itemsize * count * width)
        values = tagged["value"].reshape(count, width) + 0.0
        template = _template(len(self.ids[0]), *sizes)
        rows = np.full(count, template)
        rows["id"] = np.frombuffer("".join(self.ids).encode(), template.dtype["id"])
        rows["started_at"] = [(time - pg.EPOCH) // pg.MICROSECOND for time in self.times]
        rows["duration_s"]["value"], rows["reward"]["value"] = values[:, 0], values[:, 1]
        start = 2
        for column, names in zip(MAP_COLUMNS, self.orders, strict=True):
            if names.order:
                rows[column]["value"] = values[:, [start + index for index in names.order]]
                start += len(names.order)
        packed, size = rows.tobytes(), rows.itemsize
        return [packed[start : start + size] for start in range(0, len(packed), size)]


def pack_numbers(
    id_: str,
    started_at: datetime,
    duration_s: float | None,
    reward: float | None,
    orders: NameOrders,
    maps: Sequence[Sequence[float]],
) -> bytes:
    """Pack one episode, of which anything may be absent."""
    return b"".join(
        (
            pg.text(id_),
            pg.timestamptz(started_at),
            pg.float8(duration_s),
            pg.float8(reward),
            *(
                pg.float8_array([values[index] for index in names.order] or None)
                for names, values in zip(orders, maps, strict=True)
            ),
        )
    )


@lru_cache(maxsize=256)
def _format(id_length: int, *sizes: int) -> tuple[Callable[..., bytes], list[Any], list[int]]:
    """Return how to pack a row, its fields with the constant ones in place, and where each map begins."""
    fields: list[Any] = [id_length, b"", 8, 0, 8, 0.0, 8, 0.0]
    form, starts = f">i{id_length}siqidid", []
    for size in sizes:
        form += "6i" + "id" * size if size else "i"
        fields += pg.float8_array_head(size) if size else [-1]
        starts.append(len(fields) + 1)
        fields += [8, 0.0] * size
    return Struct(form).pack, fields, starts


@lru_cache(maxsize=256)
def _template(id_length: int, *sizes: int) -> NDArray[Any]:
    """Return a row with everything that is the same in all of them."""
    fields: list[tuple[Any, ...]] = [
        *(("id_length", ">i4"), ("id", f"S{id_length}")),
        *(("time_length", ">i4"), ("started_at", ">i8")),
        *(("duration_s", _PAIR), ("reward", _PAIR)),
    ]
    for column, size in zip(MAP_COLUMNS, sizes, strict=True):
        if size:
            fields += [(f"{column}_head", ">i4", (6,)), (column, _PAIR, (size,))]
        else:
            fields.append((f"{column}_null", ">i4"))
    row = np.zeros((), np.dtype(fields))
    row["id_length"], row["time_length"] = id_length, 8
    row["duration_s"]["length"] = row["reward"]["length"] = 8
    for column, size in zip(MAP_COLUMNS, sizes, strict=True):
        if size:
            row[f"{column}_head"] = pg.float8_array_head(size)
            row[column]["length"] = 8
        else:
            row[f"{column}_null"] = -1
    return row
