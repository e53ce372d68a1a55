"""Checked episodes on their way into the table: what they refer to, their rows in COPY format, their hash.

The hash says whether two episodes with one id are the same. It is over the bytes of the row without what the
server adds, so equal content has equal hashes however its JSON was written. Hashes are stored: changing these
columns, their order or how they are packed makes retries across an upgrade look like conflicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import astuple, replace

from gapwatch.record import EpisodeRecord, Failure
from gapwatch.store.write import copy_format as pg
from gapwatch.store.write.numbers import (
    Alike,
    pack_numbers,
)
from gapwatch.store.write.places import (
    Place,
    Places,
    given,
    json_colons,
)

_OWN_FIELDS = ("pair", "embedding", "links", "provenance")
# Pair, note, embedding, links, provenance.
_NOTHING_OWN = pg.NULL * 5
_IDENTITY = 16
_HASH = 16
_HASH_LENGTH = pg.bytea(bytes(_HASH))[:-_HASH]

_json = msgspec.json.Encoder(order="deterministic").encode


class Arrival(Struct, gc=False):
    """One episode to be stored."""

    id: str
    started_at: datetime
    context: Place
    content: bytes
    """What is hashed: the identity of the place, and the rest of the row up to the hash."""
    content_hash: bytes
    clock_skew: bytes = pg.NULL
    """In COPY format."""

    @property
    def row(self) -> tuple[bytes, ...]:
        """What the record says, in COPY format."""
        return self.context.words, self.content[_IDENTITY:], _HASH_LENGTH, self.content_hash, self.clock_skew


def make_arrivals(
    places: Places, project_id: int, records: Sequence[EpisodeRecord], clock_skew_s: float | None = None
) -> tuple[list[Arrival], int]:
    """The arrivals, and how many colons the JSON of these records has when no key stands there twice.

    `clock_skew_s` is how far the sender's clock is ahead; its times are corrected by it. The hash is over the
    time as it was sent, because the measured skew is another one with every retry.
    """
    arrivals, colons = _make(places, project_id, records)
    if clock_skew_s is not None:
        for record in records:
            record.started_at -= timedelta(seconds=clock_skew_s)
        corrected, _ = _make(places, project_id, records)
        for arrival, sent in zip(corrected, arrivals, strict=True):
            arrival.content_hash = sent.content_hash
            arrival.clock_skew = pg.float8(clock_skew_s)
        return corrected, colons
    return arrivals, colons


def _make(  # noqa: PLR0915
    places: Places, project_id: int, records: Sequence[EpisodeRecord]
) -> tuple[list[Arrival], int]:
    """One long loop on purpose: each call in it would be paid by every episode."""
    find_place, find_course = places.find_place, places.find_course
    find_conditions, find_signals, find_metrics = places.find_conditions, places.find_signals, places.find_metrics
    # The keys of id and time, and the two colons of a time.
    colons = 4 * len(records)
    groups: dict[tuple[Any, ...], Alike] = {}
    numbers: list[bytes] = [b""] * len(records)
    parts: list[tuple[str, datetime, Place, bytes, bytes]] = []
    for index, record in enumerate(records):
        # fmt: off
        (id_, domain, policy, task, started_at, outcome, deployment, robot, site, simulator, stage, duration_s,
         reward, metrics, conditions, signals, failure, safety, session, pair, contract, embedding, links,
         provenance) = astuple(record)
        # fmt: on
        levels: tuple[Any, ...] = ()
        values: tuple[float, ...] = ()
        if conditions:
            shape = (*conditions, *map(type, conditions.values()))
            names = find_conditions(shape) or places.condition_names(shape)
            levels, values = names.take_levels(conditions), names.take_numbers(conditions)
        else:
            names = _nothing(conditions)
        if signals:
            given_names = tuple(signals)
            signal_names = find_signals(given_names) or places.name_set("signal", given_names)
        else:
            signal_names = _nothing(signals)
        if metrics:
            given_names = tuple(metrics)
            metric_names = find_metrics(given_names) or places.name_set("metric", given_names)
        else:
            metric_names = _nothing(metrics)
        if contract is not UNSET:
            contract = bytes(contract)
        # fmt: off
        key = (project_id, domain, policy, task, deployment, robot, site, simulator, stage, names, levels,
               signal_names, metric_names, contract)
        # fmt: on
        place = find_place(key) or places.make_place(key, project_id, record)
        own = _NOTHING_OWN
        if not (pair is links is provenance is embedding is UNSET) or (failure and failure.note is not UNSET):
            places.rules.check_own(record)
            own, failure, own_colons = _pack_own(record)
            colons += own_colons
        told = (outcome, session, failure, safety)
        course = find_course(told) or places.make_course(told, record, failure)
        colons += place.colons + course.colons
        if type(duration_s) is float and type(reward) is float and id_.isascii():
            colons += 2
            width = (place.numbers, place.signals, place.metrics, len(id_))
            group = groups.get(width)
            if group is None:
                group = groups[width] = Alike(width[:3])
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
            colons += (duration_s is not UNSET) + (reward is not UNSET)
            numbers[index] = _pack_alone(record, place, values)
        parts.append((id_, started_at, place, course.packed, own))
    for group in groups.values():
        for index, packed in zip(group.indexes, group.pack(), strict=True):
            numbers[index] = packed
    colons += "".join([part[0] for part in parts]).count(":")
    arrivals = []
    for (id_, started_at, place, course_packed, own), own_numbers in zip(parts, numbers, strict=True):
        content = b"".join((place.identity, course_packed, own_numbers, own))
        arrivals.append(Arrival(id_, started_at, place, content, sha256(content).digest()[:_HASH]))
    return arrivals, colons


def _nothing(value: Any) -> Any:
    """Absent, null and empty say the same, in JSON of different lengths."""
    return () if value == {} else value


def _pack_alone(record: EpisodeRecord, place: Place, values: tuple[float, ...]) -> bytes:
    maps = (values, tuple((given(record.signals) or {}).values()), tuple((given(record.metrics) or {}).values()))
    sets = (place.numbers, place.signals, place.metrics)
    return pack_numbers(record.id, record.started_at, given(record.duration_s), given(record.reward), sets, maps)


def _pack_own(record: EpisodeRecord) -> tuple[bytes, Failure | None | UnsetType, int]:
    """What only this episode says; the failure without its note, which is part of that; and the colons in it."""
    failure, note = record.failure, None
    told = {name: value for name in _OWN_FIELDS if (value := getattr(record, name)) is not UNSET}
    colons = json_colons(told)
    if isinstance(failure, Failure) and failure.note is not UNSET:
        note = failure.note
        failure = replace(failure, note=UNSET)
        colons += json_colons({"note": note})
    links, provenance = given(record.links), given(record.provenance)
    packed = b"".join(
        (
            pg.text(given(record.pair)),
            pg.text(note),
            pg.float8_array(given(record.embedding)),
            pg.jsonb(_json(links)) if links else pg.NULL,
            pg.jsonb(_json(_plain(provenance))) if provenance else pg.NULL,
        )
    )
    return packed, failure, colons


def _plain(provenance: dict[str, Any]) -> dict[str, Any]:
    """Without nulls, and without −0.0."""
    return {
        name: value + 0.0 if isinstance(value, float) else value
        for name, value in provenance.items()
        if value is not None
    }
