"""What one process remembers of the contexts and outcomes of episodes, checked and packed when first seen.

Plain dictionaries that are emptied when full. They are looked up five times an episode: with
`cachetools.LRUCache` reading and packing took 27 % longer in batches and 20 % for single records.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import UnsetType
from msgspec.structs import replace

from gapwatch.ingest.checks import check_context, check_outcome
from gapwatch.ingest.duplicate_keys import CONTEXT_FIELDS, OUTCOME_FIELDS, count_colons
from gapwatch.ingest.packing import copy_format as pg
from gapwatch.ingest.packing.episode_context import (
    EpisodeContext,
    EpisodeOutcome,
    identify_context,
    list_references,
    or_none,
    pack_outcome,
)
from gapwatch.ingest.packing.name_orders import (
    NO_CONDITIONS,
    ConditionNames,
    NameOrder,
    Names,
    make_taker,
    order_names,
)
from gapwatch.record import EpisodeRecord, Failure, VersionedName, side_of
from gapwatch.store.write.registry import LONGEST_REMEMBERED, count_letters

T = TypeVar("T")

# What is not remembered is made again.
MOST_CONTEXTS = 10_000
MOST_OUTCOMES = 2000
MOST_NAME_ORDERS = 500


class PackingCache:
    def __init__(self) -> None:
        self._contexts: dict[tuple[Any, ...], EpisodeContext] = {}
        self._outcomes: dict[tuple[Any, ...], EpisodeOutcome] = {}
        self._condition_names: dict[tuple[Any, ...], ConditionNames] = {}
        self._name_orders: dict[str, dict[Names, NameOrder]] = {"condition": {}, "signal": {}, "metric": {}}
        self._interned: dict[Any, Any] = {}
        # Looked up on every episode: bound once.
        self.find_context = self._contexts.get
        self.find_outcome = self._outcomes.get
        self.find_conditions = self._condition_names.get
        self.find_signals = self._name_orders["signal"].get
        self.find_metrics = self._name_orders["metric"].get

    def condition_names(self, shape: tuple[Any, ...]) -> ConditionNames:
        """`shape`: the names, then the types of their values, in the order they were sent."""
        known = self._condition_names.get(shape)
        if known is not None:
            return known
        count = len(shape) // 2
        types = dict(zip(shape[:count], shape[count:], strict=True))
        levels = tuple(sorted(name for name, kind in types.items() if kind in (str, bool)))
        numbers = tuple(name for name, kind in types.items() if kind is float)
        names = ConditionNames(
            levels, make_taker(levels), self.name_order("condition", numbers), make_taker(numbers)
        )
        return _remember(self._condition_names, shape, names, MOST_NAME_ORDERS)

    def name_order(self, kind: str, names: Names) -> NameOrder:
        orders = self._name_orders[kind]
        return orders.get(names) or _remember(orders, names, order_names(kind, names), MOST_NAME_ORDERS)

    def make_context(self, key: tuple[Any, ...], project_id: int, record: EpisodeRecord) -> EpisodeContext:
        """Check and pack what the record refers to. Raise RecordRefused where it cannot be stored."""
        # Counted first: the check brings the contract to another form.
        colons = count_colons(record, CONTEXT_FIELDS)
        check_context(record)
        conditions = or_none(record.conditions)
        names = NO_CONDITIONS
        if conditions:
            names = self.condition_names((*conditions, *map(type, conditions.values())))
        signals = self.name_order("signal", tuple(or_none(record.signals) or ()))
        metrics = self.name_order("metric", tuple(or_none(record.metrics) or ()))
        references = list_references(record, names, signals, metrics)
        deployment, stage = or_none(record.deployment), or_none(record.stage)
        context = EpisodeContext(
            project_id,
            self._intern(references),
            None if deployment is None else self._intern((project_id, deployment)),
            stage,
            names.numbers,
            signals,
            metrics,
            pg.text(side_of(record.domain, stage)) + pg.text(stage),
            identify_context(record, references),
            colons,
        )
        if count_letters(references) <= LONGEST_REMEMBERED:
            _remember(self._contexts, self._intern(key), context, MOST_CONTEXTS)
        return context

    def make_outcome(
        self, key: tuple[Any, ...], record: EpisodeRecord, failure: Failure | None | UnsetType
    ) -> EpisodeOutcome:
        """Check and pack how the episode went; `failure` is the record's without its note."""
        check_outcome(record)
        colons = count_colons(replace(record, failure=failure), OUTCOME_FIELDS)
        return _remember(self._outcomes, key, EpisodeOutcome(pack_outcome(record, failure), colons), MOST_OUTCOMES)

    def _intern(self, value: Any) -> Any:
        """Return the one object that stands for all equal values.

        What thousands of contexts have in common takes memory once, and stays in the processor's cache while
        they are compared.
        """
        if isinstance(value, tuple):
            value = tuple(map(self._intern, value))
        elif not isinstance(value, str | VersionedName):
            return value
        if len(self._interned) >= MOST_CONTEXTS:
            self._interned.clear()
        return self._interned.setdefault(value, value)


def _remember(cache: dict[Any, T], key: Any, value: T, most: int) -> T:
    if len(cache) >= most:
        cache.clear()
    cache[key] = value
    return value
