"""A checked episode on its way into the table: what it refers to, and its values in COPY format."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from gapwatch.record import EpisodeRecord, VersionedName
from gapwatch.store import copy_format as pg
from gapwatch.store.registry import Description, Key, Numbers, References, Table

T = TypeVar("T")

# The columns of a COPY row: first the numbers that the registry gives, then the episode's own values.
REFERENCES: tuple[tuple[str, Table], ...] = (
    ("policy_id", "policies"),
    ("task_id", "tasks"),
    ("simulator_id", "simulators"),
    ("robot_id", "robots"),
    ("site_id", "sites"),
    ("condition_set_id", "condition_sets"),
    ("number_names_id", "name_sets"),
    ("signal_names_id", "name_sets"),
    ("metric_names_id", "name_sets"),
    ("contract_id", "contracts"),
)
# What most episodes share with others comes in one piece that is packed once (`_pack_common`).
COMMON = (
    *("domain", "outcome", "stage", "session", "failure_phase", "failure_labels", "failure_category"),
    *("violations", "interventions", "overrides", "clock_skew_s", "revision"),
)
VALUES = (
    *("id", "started_at", "duration_s", "reward", "pair", "failure_note", "numbers", "signals", "metrics"),
    *("embedding", "links", "provenance", "content_hash"),
)
COLUMNS = ("project_id", "deployment_id", *(column for column, _ in REFERENCES), *COMMON, *VALUES)
ROW_START = pg.row_start(len(COLUMNS))

_json = msgspec.json.Encoder(order="deterministic").encode


@dataclass(slots=True)
class Arrival:
    """One episode to be stored. `references` are keys in the order of REFERENCES, None where not given."""

    project_id: int
    record: EpisodeRecord
    content_hash: bytes
    references: References
    common: bytes
    values: bytes
    clock_skew_s: float | None

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def deployment(self) -> str | None:
        return given(self.record.deployment)


def make_arrival(
    project_id: int,
    record: EpisodeRecord,
    content_hash: bytes,
    clock_skew_s: float | None = None,
) -> Arrival:
    """`clock_skew_s` is how far the sender's clock is ahead; its times are corrected by it."""
    if clock_skew_s is not None:
        record.started_at -= timedelta(seconds=clock_skew_s)
    levels: list[tuple[str, str | bool]] = []
    numbers: dict[str, float] = {}
    for name, value in (given(record.conditions) or {}).items():
        if isinstance(value, float):
            numbers[name] = value
        elif value is not None:
            levels.append((name, value))
    levels.sort()
    number_names, number_values = _split("condition", numbers)
    signal_names, signal_values = _split("signal", given(record.signals))
    metric_names, metric_values = _split("metric", given(record.metrics))
    contract = record.contract
    references = (
        (record.policy.name, record.policy.version),
        (record.task,),
        _versioned(record.simulator),
        _single(record.robot),
        _single(record.site),
        tuple(levels) or None,
        number_names,
        signal_names,
        metric_names,
        (bytes(contract),) if isinstance(contract, Raw) else None,
    )
    return Arrival(
        project_id,
        record,
        content_hash,
        references,
        _pack_common(*_common(record), clock_skew_s, 1),
        _pack_values(record, number_values, signal_values, metric_values, content_hash),
        clock_skew_s,
    )


def with_revision(arrival: Arrival, revision: int) -> Arrival:
    common = _pack_common(*_common(arrival.record), arrival.clock_skew_s, revision)
    return replace(arrival, common=common)


def pack_references(project_id: int, deployment_id: int | None, numbers: Numbers) -> bytes:
    """The front of a row: everything that the registry gave."""
    return b"".join((ROW_START, pg.int4(project_id), pg.int4(deployment_id), *map(pg.int4, numbers)))


def registry_row(table: Table, key: Key) -> tuple[Any, ...]:
    """The database row of a registry key: names as they are, sets and contracts with their hash."""
    if table == "condition_sets":
        body = _json(dict(key))
        return _digest(body), body.decode()
    if table == "name_sets":
        kind, *names = key
        return _digest(_json(list(key))), kind, names
    if table == "contracts":
        return _digest(key[0]), key[0].decode()
    return key


def description(arrival: Arrival, numbers: Numbers) -> Description:
    policy_id, task_id = cast(int, numbers[0]), cast(int, numbers[1])
    return Description(policy_id, task_id, numbers[4], given(arrival.record.stage))


def given(value: T | None | UnsetType) -> T | None:
    return None if value is UNSET else value


def _versioned(value: VersionedName | None | UnsetType) -> Key | None:
    return (value.name, value.version) if isinstance(value, VersionedName) else None


def _single(value: str | None | UnsetType) -> Key | None:
    return (value,) if isinstance(value, str) else None


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


@lru_cache(maxsize=500)
def _name_set(kind: str, names: tuple[str, ...]) -> tuple[Key, Callable[[dict[str, float]], Any]]:
    """The registry's key for a set of names, and what takes the values out in the order of that key."""
    ordered = sorted(names)
    return (kind, *ordered), itemgetter(*ordered)


def _split(kind: str, numbers: dict[str, float] | None) -> tuple[Key | None, Sequence[float] | None]:
    """Names in order, and the values in that order: equal sets of names are stored once."""
    if not numbers:
        return None, None
    key, take = _name_set(kind, tuple(numbers))
    values = take(numbers)
    return key, values if len(numbers) > 1 else (values,)


def _common(record: EpisodeRecord) -> tuple[Any, ...]:
    failure, safety = given(record.failure), given(record.safety)
    labels = given(failure.labels) if failure else None
    return (
        record.domain,
        record.outcome,
        given(record.stage),
        given(record.session),
        given(failure.phase) if failure else None,
        None if labels is None else tuple(labels),
        given(failure.category) if failure else None,
        given(safety.violations) if safety else None,
        given(safety.interventions) if safety else None,
        given(safety.overrides) if safety else None,
    )


@lru_cache(maxsize=2000)
def _pack_common(
    domain: str,
    outcome: str,
    stage: str | None,
    session: str | None,
    phase: str | None,
    labels: tuple[str, ...] | None,
    category: str | None,
    violations: int | None,
    interventions: int | None,
    overrides: int | None,
    clock_skew_s: float | None,
    revision: int,
) -> bytes:
    texts = b"".join(map(pg.text, (domain, outcome, stage, session, phase)))
    failure = pg.text_array(labels) + pg.text(category)
    safety = b"".join(map(pg.int4, (violations, interventions, overrides)))
    return texts + failure + safety + pg.float8(clock_skew_s) + pg.int4(revision)


def _pack_values(
    record: EpisodeRecord,
    numbers: Sequence[float] | None,
    signals: Sequence[float] | None,
    metrics: Sequence[float] | None,
    content_hash: bytes,
) -> bytes:
    links, provenance = given(record.links), given(record.provenance)
    return b"".join(
        (
            pg.text(record.id),
            pg.timestamptz(record.started_at),
            pg.float8(given(record.duration_s)),
            pg.float8(given(record.reward)),
            pg.text(given(record.pair)),
            pg.text(given(record.failure.note)) if record.failure else pg.NULL,
            pg.float8_array(numbers),
            pg.float8_array(signals),
            pg.float8_array(metrics),
            pg.float8_array(given(record.embedding)),
            pg.jsonb(_json(links)) if links else pg.NULL,
            pg.jsonb(_json(provenance)) if provenance else pg.NULL,
            pg.bytea(content_hash),
        )
    )
