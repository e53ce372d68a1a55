"""What many episodes share, packed once: where they were made, and how they went.

Robots say the same again and again. All that an episode refers to is one `Place`, all small words about how it
went one `Course`; both are looked up by what was sent, and everything that depends on it is ready there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from gapwatch.record import EpisodeRecord, Failure, Safety, VersionedName
from gapwatch.store.write import copy_format as pg
from gapwatch.store.write.new_episodes import EpisodeReferences
from gapwatch.store.write.registry import LONGEST_REMEMBERED, Key, References, letters

T = TypeVar("T")

# A process remembers so many of each; what is not remembered is made again.
MOST_PLACES = 10_000
MOST_COURSES = 2000
MOST_NAME_SETS = 500

# Names of a map in an order of their own, and where each stands in what was sent.
Names = tuple[str, ...]

_json = msgspec.json.Encoder(order="deterministic").encode


@dataclass(slots=True, eq=False, frozen=True)
class NameSet:
    """The names of a map from names to numbers. Equal sets are stored once, whatever their order was."""

    key: Key | None
    order: tuple[int, ...]
    """The place in the sent map of each name of the key."""


@dataclass(slots=True, eq=False, frozen=True)
class ConditionNames:
    """The names and types of a map of conditions: words and booleans are levels, numbers are values."""

    levels: Names
    take_levels: Callable[[dict[str, Any]], tuple[Any, ...]]
    numbers: NameSet
    take_numbers: Callable[[dict[str, Any]], tuple[float, ...]]


@dataclass(slots=True, eq=False)
class Place(EpisodeReferences):
    """All that an episode refers to, and what follows from it."""

    numbers: NameSet
    signals: NameSet
    metrics: NameSet
    words: bytes
    """Domain and stage in COPY format."""
    identity: bytes
    """What content hashes have of it: 16 bytes."""
    colons: int
    """Colons that the JSON of this part has when no key stands there twice."""


@dataclass(slots=True, eq=False)
class Course:
    """How an episode went, in words and small numbers."""

    packed: bytes
    colons: int


_NO_NAMES = NameSet(None, ())
_NO_CONDITIONS = ConditionNames((), lambda _: (), _NO_NAMES, lambda _: ())


class Rules(Protocol):
    """What types cannot say of each part of a record; raises when it cannot be stored.

    Parts that are shared are checked when they are first seen, and not again while they are remembered.
    """

    def check_place(self, record: EpisodeRecord) -> None: ...

    def check_course(self, record: EpisodeRecord) -> None: ...

    def check_own(self, record: EpisodeRecord) -> None: ...


class Places:
    """What one process remembers of places and courses."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._places: dict[tuple[Any, ...], Place] = {}
        self._courses: dict[tuple[Any, ...], Course] = {}
        self._condition_names: dict[tuple[Any, ...], ConditionNames] = {}
        self._same: dict[Any, Any] = {}
        self._name_sets: dict[str, dict[Names, NameSet]] = {"condition": {}, "signal": {}, "metric": {}}
        # Looked up on every episode: bound once.
        self.find_place = self._places.get
        self.find_course = self._courses.get
        self.find_conditions = self._condition_names.get
        self.find_signals = self._name_sets["signal"].get
        self.find_metrics = self._name_sets["metric"].get

    def condition_names(self, shape: tuple[Any, ...]) -> ConditionNames:
        """`shape`: the names, then the types of their values, in the order they were sent."""
        known = self._condition_names.get(shape)
        if known is not None:
            return known
        count = len(shape) // 2
        types = dict(zip(shape[:count], shape[count:], strict=True))
        levels = tuple(sorted(name for name, kind in types.items() if kind in (str, bool)))
        numbers = tuple(name for name, kind in types.items() if kind is float)
        known = ConditionNames(levels, _taker(levels), self.name_set("condition", numbers), _taker(numbers))
        _remember(self._condition_names, shape, known, MOST_NAME_SETS)
        return known

    def name_set(self, kind: str, names: Names) -> NameSet:
        if not names:
            return _NO_NAMES
        sets = self._name_sets[kind]
        known = sets.get(names)
        if known is None:
            ordered = sorted(names)
            known = NameSet((kind, *ordered), tuple(map(names.index, ordered)))
            _remember(sets, names, known, MOST_NAME_SETS)
        return known

    def make_place(self, key: tuple[Any, ...], project_id: int, record: EpisodeRecord) -> Place:
        colons = _colons(record, _OF_PLACE)
        self.rules.check_place(record)
        conditions = given(record.conditions)
        names = _NO_CONDITIONS
        levels: tuple[Any, ...] = ()
        if conditions:
            names = self.condition_names((*conditions, *map(type, conditions.values())))
            levels = names.take_levels(conditions)
        signals = self.name_set("signal", tuple(given(record.signals) or ()))
        metrics = self.name_set("metric", tuple(given(record.metrics) or ()))
        contract, deployment, stage = record.contract, given(record.deployment), given(record.stage)
        references: References = (
            _versioned(record.policy),
            (record.task,),
            _versioned(record.simulator),
            _single(record.robot),
            _single(record.site),
            tuple(zip(names.levels, levels, strict=True)) or None,
            names.numbers.key,
            signals.key,
            metrics.key,
            (bytes(contract),) if isinstance(contract, Raw) else None,
        )
        place = Place(
            project_id,
            self._shared(references),
            None if deployment is None else self._shared((project_id, deployment)),
            stage,
            names.numbers,
            signals,
            metrics,
            pg.text(record.domain) + pg.text(stage),
            _digest(_json((references, deployment, record.domain, stage))),
            colons,
        )
        if letters(references) <= LONGEST_REMEMBERED:
            _remember(self._places, self._shared(key), place, MOST_PLACES)
        return place

    def _shared(self, value: Any) -> Any:
        """An equal value of which there is only one: what thousands of places have in common takes memory once,
        and stays in the processor's cache while they are compared."""
        if isinstance(value, tuple):
            value = tuple(map(self._shared, value))
        elif not isinstance(value, str | VersionedName):
            return value
        if len(self._same) >= MOST_PLACES:
            self._same.clear()
        return self._same.setdefault(value, value)

    def make_course(self, key: tuple[Any, ...], record: EpisodeRecord, failure: Any) -> Course:
        """`failure` is the record's without its note, which is the episode's own."""
        self.rules.check_course(record)
        safety = given(record.safety) or Safety()
        told = given(failure) or Failure()
        texts = (record.outcome, given(record.session), given(told.phase))
        counts = (given(safety.violations), given(safety.interventions), given(safety.overrides))
        packed = b"".join(
            (
                *map(pg.text, texts),
                pg.text_array(given(told.labels)),
                pg.text(given(told.category)),
                *map(pg.int4, counts),
            )
        )
        course = Course(packed, _colons(replace(record, failure=failure), _OF_COURSE))
        _remember(self._courses, key, course, MOST_COURSES)
        return course


_OF_PLACE = (
    *("domain", "policy", "task", "deployment", "robot", "site", "simulator", "stage"),
    *("conditions", "signals", "metrics", "contract"),
)
_OF_COURSE = ("outcome", "session", "failure", "safety")


def given(value: T | None | UnsetType) -> T | None:
    return None if value is UNSET else value


def json_colons(fields: dict[str, Any]) -> int:
    """Colons in the JSON of an object's members."""
    return _json(fields).count(b":")


def _colons(record: EpisodeRecord, names: Names) -> int:
    return json_colons({name: value for name in names if (value := getattr(record, name)) is not UNSET})


def _taker(names: Names) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    if names:
        [name] = names
        return lambda values: (values[name],)
    return lambda _: ()


def _versioned(value: VersionedName | None | UnsetType) -> Key | None:
    return (value.name, value.version) if isinstance(value, VersionedName) else None


def _single(value: str | None | UnsetType) -> Key | None:
    return (value,) if isinstance(value, str) else None


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


def _remember(known: dict[Any, T], key: Any, value: T, most: int) -> None:
    if len(known) >= most:
        known.clear()
    known[key] = value
