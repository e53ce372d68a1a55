"""Say what is wrong with a refused record, field by field and without echoing its values.

Runs only for refused records, so it may take its time: the standard library's parser accepts what the
decoder refused (NaN, repeated keys) just long enough to say where it stands.
"""

from __future__ import annotations

import json
import math
import re
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import fields

from gapwatch.errors import Fault
from gapwatch.record import EpisodeRecord

# Control, bidirectional and zero-width characters make two names look alike.
INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
# The fields that are maps from names to values.
MAPS = ("metrics", "conditions", "signals", "links", "provenance")

MOST_REASONS = 20

_FIELDS = fields(EpisodeRecord)
_NAMES = {field.name for field in _FIELDS}
_REQUIRED = [field.name for field in _FIELDS if field.required]


def explain(raw: bytes) -> list[Fault]:
    """Return the first twenty reasons why a record is refused."""
    return _reasons(raw)[:MOST_REASONS]


def _reasons(raw: bytes) -> list[Fault]:
    value, unreadable = _parse_leniently(raw)
    if unreadable is not None:
        return [unreadable]
    if not isinstance(value, dict):
        return [fault("", "wrong-type", "An episode is a JSON object.")]
    unknown = list(islice((name for name in value if name not in _NAMES), MOST_REASONS))
    message = (
        "This field is not part of the record; free-form data goes in conditions, signals, metrics or provenance."
    )
    faults = [fault(f"/{pointer_part(name)}", "unknown-field", message) for name in unknown]
    if len(faults) == MOST_REASONS:
        return faults
    faults = not_finite(value, "") + faults
    bad = {reason["pointer"].split("/")[1] for reason in faults}
    for name in _REQUIRED:
        if value.get(name) is None:
            faults.append(fault(f"/{name}", "missing", "This field is required."))
            bad.add(name)
    for field in _FIELDS:
        if field.name in value and field.name not in bad and field.name != "contract":
            faults += _convert(value[field.name], field.type, f"/{field.name}")
    return faults or [fault("", "invalid", "The record is not valid.")]


def unreadable(raw: bytes) -> list[Fault]:
    """Return why the bytes are not readable JSON without repeated keys; nothing if they are."""
    fault = _parse_leniently(raw)[1]
    return [] if fault is None else [fault]


class _DuplicateKey(ValueError):
    pass


def _parse_leniently(raw: bytes) -> tuple[Any, Fault | None]:
    """Return what the standard library reads in bytes that were refused, or why it cannot read them either."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None, fault("", "not-utf8", "A body is UTF-8 text.")
    try:
        value = json.loads(text, object_pairs_hook=_no_duplicates)
        if b"\\ud" in raw.lower():
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except _DuplicateKey:
        return None, fault("", "duplicate-key", "A key stands twice in one object.")
    except UnicodeEncodeError:
        return None, fault("", "malformed-json", "A \\u escape is half of a pair (lone surrogate).")
    except json.JSONDecodeError as error:
        message = f"This is not JSON, from byte {len(text[: error.pos].encode())} on."
        return None, fault("", "malformed-json", message)
    except RecursionError:
        return None, fault("", "malformed-json", "The nesting is too deep.")
    except ValueError:
        return None, fault("", "malformed-json", "A number has too many digits.")
    return value, None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _DuplicateKey
    return value


def _convert(value: Any, kind: Any, pointer: str) -> list[Fault]:
    """Return the faults of one field. Members of a map are tried one by one, so that each bad one is named."""
    if value is None and pointer.count("/") == 1:
        return []
    if pointer.lstrip("/") in MAPS and isinstance(value, dict):
        faults: list[Fault] = []
        for name, member in value.items():
            faults += _convert_value({name: member}, kind, f"{pointer}/{pointer_part(str(name))}")
            if len(faults) >= MOST_REASONS:
                break
        return faults or _convert_value(value, kind, pointer)
    return _convert_value(value, kind, pointer)


def _convert_value(value: Any, kind: Any, pointer: str) -> list[Fault]:
    try:
        # The value came from the standard parser; back to JSON so that one decoder judges all.
        msgspec.json.decode(msgspec.json.encode(value), type=kind)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        inner = "".join(f"/{part}" for part in re.findall(r"[A-Za-z_0-9]+", path))
        return [fault(pointer + inner, *_plain_words(message))]
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError):
        return [fault(pointer, "invalid", "This value cannot be read.")]
    return []


def _plain_words(message: str) -> tuple[str, str]:
    """Translate a decoder's message into a code and a sentence without any value of the sender's."""
    if message.startswith("Object missing required field"):
        return "missing", f"The field {message.split('`')[1]} is required here."
    if message.startswith("Object contains unknown field"):
        return "unknown-field", "This object has a field that is not part of the record."
    if message.startswith("Invalid enum value"):
        return "unknown-value", "This is not one of the allowed words."
    if message.startswith("Invalid RFC3339"):
        return "bad-time", "A time is RFC 3339, such as 2026-11-02T09:14:03Z."
    if "timezone" in message:
        return "offset-required", "A time needs an offset, such as Z or +01:00."
    if message.startswith("Number out of range"):
        return "out-of-range", "This number is out of range."
    if "length" in message:
        return "bad-length", message.replace("`", "") + "."
    if ">=" in message or "<=" in message:
        return "out-of-range", message.replace("`", "") + "."
    return "wrong-type", message.replace("`", "") + "."


def not_finite(value: Any, pointer: str) -> list[Fault]:
    if isinstance(value, float) and not math.isfinite(value):
        return [fault(pointer, "not-finite", "NaN and infinity are refused; leave the field out.")]
    if isinstance(value, dict):
        return [
            reason
            for name, member in value.items()
            for reason in not_finite(member, f"{pointer}/{pointer_part(name)}")
        ]
    if isinstance(value, list):
        return [
            reason for index, member in enumerate(value) for reason in not_finite(member, f"{pointer}/{index}")
        ]
    return []


def pointer_part(name: str) -> str:
    """Escape a name for a JSON pointer, and cut it short: it is the sender's text."""
    clean = INVISIBLE.sub("�", name.encode("utf-8", "replace").decode())
    return clean[:64].replace("~", "~0").replace("/", "~1")


def fault(pointer: str, code: str, message: str) -> Fault:
    return Fault(pointer=pointer, code=code, message=message)
