"""The bytes that a case of catalogue.yaml sends, made at the moment of sending: every time in them is counted from it."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from datetime import datetime, timedelta
from typing import Any

import zstandard
from ingest.refusals import MARKER, MIB

from parts import episode

UNITS = {"d": "days", "h": "hours", "min": "minutes", "s": "seconds"}
PACK = {"gzip": gzip.compress, "zstd": zstandard.compress}


def written(value: Any, now: datetime) -> Any:
    """A value as it is sent: repetitions, times and the marker in its texts and names; `names` and `repeat` at length."""
    if isinstance(value, str):
        return re.sub(r"«([^«»]*)»", lambda found: _written(found[1], now), value)
    if isinstance(value, list):
        return [written(one, now) for one in value]
    if not isinstance(value, dict):
        return value
    if "names" in value:
        names = [value["as"] % number for number in range(value["names"])]
        return dict.fromkeys(names, value["value"]) if "value" in value else names
    if "repeat" in value:
        return [written(value["repeat"], now)] * value["times"]
    return {written(name, now): written(one, now) for name, one in value.items()}


def _written(inside: str, now: datetime) -> str:
    text, times, count = inside.rpartition(" × ")
    if times:
        return text * int(count)
    if inside == "marker":
        return MARKER
    assert re.fullmatch(r"now([+-]\d+(d|h|min|s))*", inside), inside
    by = re.findall(r"([+-]\d+)([a-z]+)", inside)
    return (now + sum((timedelta(**{UNITS[unit]: int(n)}) for n, unit in by), timedelta())).isoformat()


def record(fields: Any, now: datetime) -> dict[str, Any]:
    """The valid episode with some fields replaced; null removes one, `nulls` are sent, `reversed` turns its order."""
    given = {"provenance": {"note": MARKER}, "started_at": now.isoformat()}
    for part in fields if isinstance(fields, list) else [fields]:
        given |= written(part, now)
    nulls, turned = given.pop("nulls", []), given.pop("reversed", False)
    found = episode(**given) | dict.fromkeys(nulls)
    return dict(reversed(found.items())) if turned else found


def records(items: list[Any], now: datetime) -> list[Any]:
    """An item is the fields of a record, sent so many `times`; or, among lines, a text."""
    found: list[Any] = []
    for item in items:
        if isinstance(item, str):
            found.append(item)
            continue
        fields = {name: value for name, value in item.items() if name != "times"}
        found += [record(fields, now) for _ in range(item.get("times", 1))]
    return found


def bomb(packing: str, mib: int) -> bytes:
    """So many spaces, packed without holding them."""
    packer = zstandard.ZstdCompressor().compressobj() if packing == "zstd" else zlib.compressobj(wbits=31)
    return b"".join(packer.compress(b" " * MIB) for _ in range(mib)) + packer.flush()


def content(body: Any, now: datetime) -> bytes:
    """The bytes of a body: a text, or steps that each go on from what the last has made."""
    made = b""
    for step, wanted in ({"text": body} if isinstance(body, str) else body).items():
        text = written(str(wanted), now) if isinstance(wanted, str | int) else ""
        match step:
            case "text":
                made = text.encode()
            case "record":
                made = json.dumps(record(wanted, now)).encode()
            case "batch":
                made = json.dumps(records(wanted, now)).encode()
            case "lines":
                parts = (one if isinstance(one, str) else json.dumps(one) for one in records(wanted, now))
                made = "\n".join(parts).encode()
            case "value":
                made = json.dumps(written(wanted, now)).encode()
            case "bomb":
                made = bomb(wanted, body["mib"])
            case "here":
                made = made.replace(b'"@here@"', text.encode())
            case "here_hex":
                made = made.replace(b'"@here@"', bytes.fromhex(text))
            case "before":
                made = text.encode() + made
            case "after":
                made += text.encode()
            case "after_packed":
                made += b"".join(PACK[packing](part.encode()) for packing, part in wanted.items())
            case "cut":
                made = made[:-wanted]
            case "encoding":
                made = made.decode().encode(wanted)
            case "unescaped":
                made = json.dumps(json.loads(made), ensure_ascii=False).encode()
            case "indent":
                made = json.dumps(json.loads(made), indent=wanted).encode()
            case "pack" | "pack_again":
                made = PACK[wanted](made)
            case _:
                assert step == "mib", step
    return made
