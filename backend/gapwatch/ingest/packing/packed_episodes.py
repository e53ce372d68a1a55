"""Checked records into packed episodes: what they refer to, their row in COPY format, and their content hash.

The hash says whether two episodes with one id are the same. It is over bytes of the row without what the server
adds, so equal content has equal hashes however its JSON was written. Hashes are stored, so what the first release
hashed is frozen: the identity of the context, the outcome, the numbers and the own fields, in this order and
packed this way. A field that came later adds its name and bytes only where it is present (`later_fields.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import astuple, replace

from gapwatch.ingest.checks import check_own
from gapwatch.ingest.duplicate_keys import NUMBER_FIELDS, count_colons, count_own_colons
from gapwatch.ingest.packing import copy_format as pg
from gapwatch.ingest.packing.episode_context import EpisodeContext, encode_json, or_none
from gapwatch.ingest.packing.later_fields import ALL_ABSENT, PackedLaterFields, pack_later_fields
from gapwatch.ingest.packing.numbers import SameWidthEpisodes, pack_numbers
from gapwatch.ingest.packing.packing_cache import PackingCache
from gapwatch.record import LATER_FIELDS, EpisodeRecord, Failure

# Pair, note, embedding, links, provenance.
_NO_OWN_FIELDS = pg.NULL * 5
_IDENTITY_BYTES = 16
_HASH_BYTES = 16
_TIME_BYTES = 12
_HASH_LENGTH = pg.bytea(bytes(_HASH_BYTES))[:-_HASH_BYTES]


class PackedEpisode(Struct, gc=False):
    """An episode ready to be stored."""

    id: str
    started_at: datetime
    context: EpisodeContext
    content: bytes
    """What the first release hashed: the identity of the context, and the row from outcome to own fields."""
    content_hash: bytes
    colons: int
    """See `duplicate_keys.py`."""
    clock_skew: bytes = pg.NULL
    """In COPY format."""
    later_fields: bytes = ALL_ABSENT
    """In COPY format."""
    key_id: int = 0
    """Whose budget its new names are taken from."""

    @property
    def is_measured(self) -> bool:
        """Whether it says a number: a duration, a reward, a condition, a signal or a metric."""
        context, name = self.context, pg.text(self.id)
        at = self.content.find(name) + len(name) + _TIME_BYTES
        has_numbers = self.content[at : at + 2 * len(pg.NULL)] != pg.NULL * 2
        return has_numbers or any(names.order for names in (context.numbers, context.signals, context.metrics))

    @property
    def content_without_id(self) -> bytes:
        return self.content.replace(pg.text(self.id), b"", 1)

    def hash_as(self, episode_id: str) -> bytes:
        """Of a corrected time the hash is over another one, and later fields are hashed apart: nothing is told."""
        if self.clock_skew != pg.NULL or self.later_fields != ALL_ABSENT:
            return b""
        content = self.content.replace(pg.text(self.id), pg.text(episode_id), 1)
        return sha256(content).digest()[:_HASH_BYTES]

    @property
    def row(self) -> tuple[bytes, ...]:
        """The values of RECORD_COLUMNS in COPY format."""
        return (
            self.context.words,
            self.content[_IDENTITY_BYTES:],
            _HASH_LENGTH,
            self.content_hash,
            self.clock_skew,
            self.later_fields,
        )


def pack_episodes(
    cache: PackingCache, project_id: int, records: Sequence[EpisodeRecord], clock_skew_s: float | None = None
) -> list[PackedEpisode]:
    """Pack checked records. Raise RecordRefused for what only a check of a shared part finds.

    `clock_skew_s` is how far the sender's clock is ahead; its times are corrected by it. The hash is over the
    time as it was sent, because the measured skew is another one with every retry.
    """
    episodes = _pack(cache, project_id, records)
    if clock_skew_s is None:
        return episodes
    for record in records:
        record.started_at -= timedelta(seconds=clock_skew_s)
    corrected = _pack(cache, project_id, records)
    for episode, as_sent in zip(corrected, episodes, strict=True):
        episode.content_hash, episode.colons = as_sent.content_hash, as_sent.colons
        episode.clock_skew = pg.float8(clock_skew_s)
    return corrected


def _pack(  # noqa: PLR0915
    cache: PackingCache, project_id: int, records: Sequence[EpisodeRecord]
) -> list[PackedEpisode]:
    """One long loop on purpose: each call in it would be paid by every episode."""
    find_context, find_outcome = cache.find_context, cache.find_outcome
    find_conditions, find_signals, find_metrics = cache.find_conditions, cache.find_signals, cache.find_metrics
    groups: dict[tuple[Any, ...], SameWidthEpisodes] = {}
    numbers: list[bytes] = [b""] * len(records)
    later_fields: dict[int, PackedLaterFields] = {}
    parts: list[tuple[str, datetime, EpisodeContext, bytes, bytes, int]] = []
    for index, record in enumerate(records):
        # fmt: off
        (id_, domain, policy, task, started_at, outcome, deployment, robot, site, simulator, stage, duration_s,
         reward, metrics, conditions, signals, failure, safety, session, pair, contract, embedding, links,
         provenance, *later_values) = astuple(record)
        # fmt: on
        levels: tuple[Any, ...] = ()
        values: tuple[float, ...] = ()
        if conditions:
            shape = (*conditions, *map(type, conditions.values()))
            condition_names = find_conditions(shape) or cache.condition_names(shape)
            levels, values = condition_names.take_levels(conditions), condition_names.take_numbers(conditions)
        else:
            condition_names = _without_empty(conditions)
        if signals:
            names = tuple(signals)
            signal_names = find_signals(names) or cache.name_order("signal", names)
        else:
            signal_names = _without_empty(signals)
        if metrics:
            names = tuple(metrics)
            metric_names = find_metrics(names) or cache.name_order("metric", names)
        else:
            metric_names = _without_empty(metrics)
        if contract is not UNSET:
            contract = bytes(contract)
        # fmt: off
        key = (project_id, domain, policy, task, deployment, robot, site, simulator, stage, condition_names,
               levels, signal_names, metric_names, contract)
        # fmt: on
        context = find_context(key) or cache.make_context(key, project_id, record)
        own, colons = _NO_OWN_FIELDS, context.colons
        if (
            not (pair is links is provenance is embedding is UNSET)
            or (failure and failure.note is not UNSET)
            or (later_values and later_values.count(UNSET) != len(later_values))
        ):
            check_own(record)
            colons += count_own_colons(record)
            own, failure = _pack_own(record)
            if LATER_FIELDS:
                later_fields[index] = pack_later_fields(record)
        how = (outcome, session, failure, safety)
        outcome_part = find_outcome(how) or cache.make_outcome(how, record, failure)
        colons += outcome_part.colons
        if type(duration_s) is float and type(reward) is float and id_.isascii():
            colons += 2  # the keys of duration_s and reward
            width = (context.numbers, context.signals, context.metrics, len(id_))
            group = groups.get(width)
            if group is None:
                group = groups[width] = SameWidthEpisodes(width[:3])
            group.indexes.append(index)
            group.ids.append(id_)
            group.times.append(started_at)
            flat = group.numbers
            flat += (duration_s, reward)
            flat += values
            if signals:
                flat += signals.values()
            if metrics:
                flat += metrics.values()
        else:
            colons += count_colons(record, NUMBER_FIELDS)
            numbers[index] = _pack_numbers_alone(record, context, values)
        parts.append((id_, started_at, context, outcome_part.packed, own, colons))
    for group in groups.values():
        for index, packed in zip(group.indexes, group.pack(), strict=True):
            numbers[index] = packed
    episodes = []
    for (id_, started_at, context, packed_outcome, own, colons), own_numbers in zip(parts, numbers, strict=True):
        content = b"".join((context.identity, packed_outcome, own_numbers, own))
        content_hash = sha256(content).digest()[:_HASH_BYTES]
        episodes.append(PackedEpisode(id_, started_at, context, content, content_hash, colons))
    for index, later in later_fields.items():
        episode = episodes[index]
        episode.later_fields = later.columns
        episode.content_hash = sha256(episode.content + later.hashed).digest()[:_HASH_BYTES]
    return episodes


def _without_empty(value: Any) -> Any:
    """Absent, null and empty mean the same, but their JSON has different colons: three keys of the cache."""
    return () if value == {} else value


def _pack_numbers_alone(record: EpisodeRecord, context: EpisodeContext, values: tuple[float, ...]) -> bytes:
    signals, metrics = or_none(record.signals) or {}, or_none(record.metrics) or {}
    return pack_numbers(
        record.id,
        record.started_at,
        or_none(record.duration_s),
        or_none(record.reward),
        (context.numbers, context.signals, context.metrics),
        (values, tuple(signals.values()), tuple(metrics.values())),
    )


def _pack_own(record: EpisodeRecord) -> tuple[bytes, Failure | None | UnsetType]:
    """Pack what only this episode says. Return the failure without its note, which is part of that."""
    failure, note = record.failure, None
    if isinstance(failure, Failure) and failure.note is not UNSET:
        note = failure.note
        failure = replace(failure, note=UNSET)
    links, provenance = or_none(record.links), or_none(record.provenance)
    packed = b"".join(
        (
            pg.text(or_none(record.pair)),
            pg.text(note),
            pg.float8_array(or_none(record.embedding)),
            pg.jsonb(encode_json(links)) if links else pg.NULL,
            pg.jsonb(encode_json(_plain(provenance))) if provenance else pg.NULL,
        )
    )
    return packed, failure


def _plain(provenance: dict[str, Any]) -> dict[str, Any]:
    """Drop nulls, and write −0.0 as 0.0."""
    return {
        name: value + 0.0 if isinstance(value, float) else value
        for name, value in provenance.items()
        if value is not None
    }
