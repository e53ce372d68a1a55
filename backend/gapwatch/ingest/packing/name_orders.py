"""The names of maps from names to numbers. Numbers are stored in the order of their sorted names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from gapwatch.store.write.registry import Key

Names = tuple[str, ...]


@dataclass(slots=True, eq=False, frozen=True)
class NameOrder:
    """Where the names of a map stand as sent, and as stored. Equal sets of names are stored once."""

    key: Key | None
    order: tuple[int, ...]
    """For each name of the key, its index in the sent map."""


NO_NAMES = NameOrder(None, ())


@dataclass(slots=True, eq=False, frozen=True)
class ConditionNames:
    """The names of a map of conditions by type: words and booleans are levels, numbers are values."""

    levels: Names
    take_levels: Callable[[dict[str, Any]], tuple[Any, ...]]
    numbers: NameOrder
    take_numbers: Callable[[dict[str, Any]], tuple[float, ...]]


NO_CONDITIONS = ConditionNames((), lambda _: (), NO_NAMES, lambda _: ())


def order_names(kind: str, names: Names) -> NameOrder:
    """`kind` is condition, signal or metric: the same names of two kinds are two entries of the registry."""
    if not names:
        return NO_NAMES
    ordered = sorted(names)
    return NameOrder((kind, *ordered), tuple(map(names.index, ordered)))


def make_taker(names: Names) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """Return a function that takes the values of these names out of a map, as a tuple."""
    if len(names) > 1:
        return itemgetter(*names)
    if names:
        [name] = names
        return lambda values: (values[name],)
    return lambda _: ()
