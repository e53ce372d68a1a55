"""What many episodes share, packed once: what they refer to, and how they went.

Robots send the same names and words again and again. Whatever an episode refers to is one `EpisodeContext`, the
small words about how it went are one `EpisodeOutcome`. Both are looked up by what was sent (`packing_cache.py`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from gapwatch.ingest.packing import copy_format as pg
from gapwatch.ingest.packing.name_orders import ConditionNames, NameOrder
from gapwatch.record import EpisodeRecord, Failure, Safety, VersionedName
from gapwatch.store.write.new_episodes import EpisodeReferences
from gapwatch.store.write.registry import Key, References

T = TypeVar("T")

encode_json = msgspec.json.Encoder(order="deterministic").encode


@dataclass(slots=True, eq=False)
class EpisodeContext(EpisodeReferences):
    """Everything an episode refers to, and how its numbers are ordered."""

    numbers: NameOrder
    signals: NameOrder
    metrics: NameOrder
    words: bytes
    """The side it is counted on, and its stage, in COPY format."""
    identity: bytes
    """16 bytes that stand for the context in content hashes."""
    colons: int
    """See `duplicate_keys.py`."""


@dataclass(slots=True, eq=False)
class EpisodeOutcome:
    """How an episode went, in words and small numbers."""

    packed: bytes
    colons: int


def pack_outcome(record: EpisodeRecord, failure: Failure | None | UnsetType) -> bytes:
    """`failure` is the record's without its note, which is the episode's own."""
    safety = or_none(record.safety) or Safety()
    failure = or_none(failure) or Failure()
    texts = (record.outcome, or_none(record.session), or_none(failure.phase))
    counts = (or_none(safety.violations), or_none(safety.interventions), or_none(safety.overrides))
    return b"".join(
        (
            *map(pg.text, texts),
            pg.text_array(or_none(failure.labels)),
            pg.text(or_none(failure.category)),
            *map(pg.int4, counts),
        )
    )


def list_references(
    record: EpisodeRecord, conditions: ConditionNames, signals: NameOrder, metrics: NameOrder
) -> References:
    """Return the record's keys in the order of REFERENCE_COLUMNS."""
    levels = conditions.take_levels(or_none(record.conditions) or {})
    return (
        _versioned_key(record.policy),
        (record.task,),
        _versioned_key(record.simulator),
        _name_key(record.robot),
        _name_key(record.site),
        tuple(zip(conditions.levels, levels, strict=True)) or None,
        conditions.numbers.key,
        signals.key,
        metrics.key,
        (bytes(record.contract),) if isinstance(record.contract, Raw) else None,
    )


def identify_context(record: EpisodeRecord, references: References) -> bytes:
    """Content hashes depend on this digest: neither its input nor its form may change."""
    identity = (references, or_none(record.deployment), record.domain, or_none(record.stage))
    return hashlib.blake2b(encode_json(identity), digest_size=16).digest()


def or_none(value: T | None | UnsetType) -> T | None:
    """Absent and null mean the same."""
    return None if value is UNSET else value


def _versioned_key(value: VersionedName | None | UnsetType) -> Key | None:
    return (value.name, value.version) if isinstance(value, VersionedName) else None


def _name_key(value: str | None | UnsetType) -> Key | None:
    return (value,) if isinstance(value, str) else None
