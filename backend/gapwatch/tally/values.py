"""Moments and log-bin sketches of named numbers: added, taken away, and written as bytes.

Everything is an integer, names and bins are written in order: equal sums are equal bytes, whatever came first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec


@dataclass(slots=True)
class ValueSum:
    """Moments in whole steps (statistics/estimates/sketches.py), and bins.

    `bins[i]` counts values in log-bin i, `negative`
    the same of −x."""

    n: int = 0
    total: int = 0
    total_sq: int = 0
    zero: int = 0
    bins: dict[int, int] = field(default_factory=dict)
    negative: dict[int, int] = field(default_factory=dict)

    def add(self, other: ValueSum, sign: int = 1) -> None:
        self.n += sign * other.n
        self.total += sign * other.total
        self.total_sq += sign * other.total_sq
        self.zero += sign * other.zero
        for bins, other_bins in ((self.bins, other.bins), (self.negative, other.negative)):
            for index, count in other_bins.items():
                bins[index] = bins.get(index, 0) + sign * count

    def copy(self) -> ValueSum:
        return ValueSum(self.n, self.total, self.total_sq, self.zero, dict(self.bins), dict(self.negative))

    @property
    def is_empty(self) -> bool:
        return not (self.n or self.total or self.total_sq or self.zero or _full(self.bins) or _full(self.negative))


NamedValues: TypeAlias = dict[str, ValueSum]

# n, zero, the sums as bytes (they outgrow 64 bits), then bins and their counts.
_Written: TypeAlias = tuple[int, int, bytes, bytes, list[int], list[int], list[int], list[int]]
_decode = msgspec.msgpack.Decoder(dict[str, _Written]).decode
_encode = msgspec.msgpack.Encoder().encode


def add_values(into: NamedValues, other: Mapping[str, ValueSum], sign: int = 1) -> None:
    for name, value in other.items():
        existing = into.get(name)
        if existing is not None:
            existing.add(value, sign)
        elif sign > 0:
            into[name] = value.copy()
        else:
            into[name] = ValueSum()
            into[name].add(value, sign)


def pack_values(values: Mapping[str, ValueSum]) -> bytes | None:
    """None when nothing is left of any name."""
    written = {
        name: (
            *(value.n, value.zero, _bytes(value.total), _bytes(value.total_sq)),
            *_columns(value.bins),
            *_columns(value.negative),
        )
        for name, value in sorted(values.items())
        if not value.is_empty
    }
    return _encode(written) if written else None


def unpack_values(body: bytes) -> NamedValues:
    return {
        name: ValueSum(
            n,
            int.from_bytes(total, "big", signed=True),
            int.from_bytes(total_sq, "big", signed=True),
            zero,
            dict(zip(bins, counts, strict=True)),
            dict(zip(negative, negative_counts, strict=True)),
        )
        for name, (n, zero, total, total_sq, bins, counts, negative, negative_counts) in _decode(body).items()
    }


def _bytes(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def _columns(bins: Mapping[int, int]) -> tuple[list[int], list[int]]:
    filled = sorted(item for item in bins.items() if item[1])
    return [index for index, _ in filled], [count for _, count in filled]


def _full(bins: Mapping[int, int]) -> bool:
    return any(bins.values())
