"""An MCAP recording as one episode: rates, gaps and latencies by topic, and summaries of numbers in messages."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gapwatch_client.importers.mapping import Row
from gapwatch_client.importers.report import ImportReport
from gapwatch_client.summaries import Summary

NS = 1e9
# Metadata records with these names hold fields of the episode: task, outcome, conditions.lighting …
METADATA = {"gapwatch", "episode"}
# Arrays longer than this are pictures and point clouds, not joints.
LONGEST_ARRAY = 16
_DECODERS = {"ros2msg": "mcap_ros2.decoder", "protobuf": "mcap_protobuf.decoder"}


@dataclass
class _Topic:
    first: int
    last: int
    count: int = 0
    longest_gap: int = 0
    delay: Summary = field(default_factory=Summary)
    numbers: dict[str, Summary] = field(default_factory=dict)


def read_recording(path: Path, report: ImportReport) -> Iterator[Row]:
    from mcap.reader import make_reader

    with path.open("rb") as file:
        digest = hashlib.sha256()
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
        file.seek(0)
        reader = make_reader(file)
        values: dict[str, Any] = {"provenance.recording": path.name}
        for metadata in reader.iter_metadata():
            for name, value in metadata.metadata.items():
                values[name if metadata.name in METADATA else f"{metadata.name}.{name}"] = value
        topics = _read_topics(reader, report)
    if not topics:
        report.skipped("the recording has no messages")
        return
    began = min(topic.first for topic in topics.values())
    ended = max(topic.last for topic in topics.values())
    values.setdefault("started_at", began)
    values.setdefault("duration_s", (ended - began) / NS)
    for name, topic in topics.items():
        values |= {f"signals.{key}": value for key, value in _signals(name, topic).items()}
    yield Row(f"mcap/{digest.hexdigest()}", values)


def _read_topics(reader: Any, report: ImportReport) -> dict[str, _Topic]:
    factories = [_Json(), *_installed_decoders()]
    topics: dict[str, _Topic] = {}
    decoders: dict[tuple[str, int], Any] = {}
    for schema, channel, message in reader.iter_messages():
        topic = topics.get(channel.topic)
        if topic is None:
            topic = topics[channel.topic] = _Topic(message.log_time, message.log_time)
        topic.longest_gap = max(topic.longest_gap, message.log_time - topic.last)
        topic.last = max(topic.last, message.log_time)
        topic.count += 1
        topic.delay.add((message.log_time - message.publish_time) / 1e6)
        key = (channel.message_encoding, schema.id if schema else 0)
        if key not in decoders:
            candidates = (f.decoder_for(channel.message_encoding, schema) for f in factories)
            decoders[key] = next((decoder for decoder in candidates if decoder), None)
        decode = decoders[key]
        if decode is None:
            missing = _DECODERS.get(schema.encoding if schema else "", "").partition(".")[0].replace("_", "-")
            hint = f"; install {missing}-support" if missing else ""
            report.left_out(channel.topic, f"{channel.message_encoding} messages are not read{hint}; rates are")
            continue
        try:
            for name, number in _numbers(decode(message.data)):
                topic.numbers.setdefault(name, Summary()).add(number)
        except Exception as error:
            report.left_out(channel.topic, f"a message cannot be read ({type(error).__name__})")
    return topics


def _signals(name: str, topic: _Topic) -> dict[str, float]:
    base = _word(name)
    signals: dict[str, float] = {}
    for inner, summary in topic.numbers.items():
        signals.update(summary.signals(f"{base}_{inner}" if inner else base))
    if topic.count > 1 and topic.last > topic.first:
        signals[f"{base}_rate_hz"] = (topic.count - 1) / ((topic.last - topic.first) / NS)
        signals[f"{base}_gap_ms_peak"] = topic.longest_gap / 1e6
    if topic.delay.peak > 0:
        signals[f"{base}_latency_ms_p95"] = topic.delay.p95()
    return signals


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number in a message with its path. Header stamps are bookkeeping and skipped."""
    if isinstance(value, (bool, int, float)):
        yield path, float(value)
    elif isinstance(value, dict):
        for name, member in value.items():
            if name not in {"header", "stamp", "timestamp"}:
                yield from _numbers(member, f"{path}_{_word(name)}" if path else _word(name))
    elif isinstance(value, (list, tuple)) and len(value) <= LONGEST_ARRAY:
        for index, member in enumerate(value):
            yield from _numbers(member, f"{path}_{index}" if path else str(index))
    elif hasattr(value, "__slots__") and not isinstance(value, (str, bytes)):
        yield from _numbers({name: getattr(value, name) for name in value.__slots__}, path)
    elif hasattr(value, "DESCRIPTOR"):
        yield from _numbers({f.name: getattr(value, f.name) for f in value.DESCRIPTOR.fields}, path)


def _word(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_").lower()


class _Json:
    """A decoder as `mcap` wants one. JSON needs no library."""

    def decoder_for(self, message_encoding: str, schema: Any) -> Any:
        return json.loads if message_encoding == "json" else None


def _installed_decoders() -> list[Any]:
    import importlib

    factories = []
    for module in _DECODERS.values():
        try:
            factories.append(importlib.import_module(module).DecoderFactory())
        except ImportError:
            continue
    return factories
