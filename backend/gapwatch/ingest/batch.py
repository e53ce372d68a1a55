"""Split a batch into the bytes of its records, so that one bad record cannot take the others with it."""

from __future__ import annotations

import json

import msgspec
from msgspec import Raw

from gapwatch.errors import BodyTooLarge, Fault, Invalid, MalformedBody
from gapwatch.ingest.body import NDJSON

MOST_ITEMS = 10_000
# Count the members of a body beyond these before making anything of them: it may be millions of zeros.
MANY_COMMAS = 100_000
MOST_OBJECTS = 500_000


class _AnyObject(msgspec.Struct, gc=False):
    pass


_decoder = msgspec.json.Decoder(list[Raw])
_object_decoder = msgspec.json.Decoder(list[_AnyObject])


def split_batch(body: bytes, kind: str) -> list[bytes]:
    items = _lines(body) if kind == NDJSON else _members(body)
    if not items:
        message = "The batch is empty; send at least one episode."
        raise Invalid(message, errors=[Fault(pointer="", code="empty-batch", message=message)])
    if len(items) > MOST_ITEMS:
        raise _too_many()
    return items


def _lines(body: bytes) -> list[bytes]:
    return [line for line in body.split(b"\n") if line and not line.isspace()]


def _members(body: bytes) -> list[bytes]:
    if body.count(b",") > MANY_COMMAS:
        _refuse_many_members(body)
    try:
        return [bytes(member) for member in _decoder.decode(body)]
    except msgspec.ValidationError:
        # Not an array; but is it JSON at all?
        try:
            msgspec.json.decode(body, type=Raw)
        except msgspec.DecodeError:
            raise _malformed("malformed-json", "This is not one JSON array.") from None
        message = "A batch is a JSON array of episodes; a single one goes to /episodes."
        raise Invalid(message, errors=[Fault(pointer="", code="wrong-type", message=message)]) from None
    except RecursionError:
        raise MalformedBody("The nesting is too deep.") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _members_of_bad_json(body)


def _refuse_many_members(body: bytes) -> None:
    if body.count(b"{") > MOST_OBJECTS:
        raise _too_many()
    try:
        if len(_object_decoder.decode(body)) > MOST_ITEMS:
            raise _too_many()
    except msgspec.ValidationError:
        if b"{" not in body:
            raise _too_many() from None
        message = "Every member of a batch is a JSON object."
        raise Invalid(message, errors=[Fault(pointer="", code="wrong-type", message=message)]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # not JSON; the caller finds out where


def _too_many() -> BodyTooLarge:
    message = f"A batch may have at most {MOST_ITEMS} episodes."
    return BodyTooLarge(message, errors=[Fault(pointer="", code="too-many-items", message=message)])


def _members_of_bad_json(body: bytes) -> list[bytes]:
    """Split an array with NaN in it. Python's json writes such; its parser still finds where each member ends."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise _malformed("not-utf8", "A body is UTF-8 text.") from None
    scanner = json.JSONDecoder()
    blank = " \t\r\n"
    position = len(text) - len(text.lstrip(blank))
    if text[position : position + 1] != "[":
        raise _malformed("malformed-json", "This is not a JSON array.")
    members: list[bytes] = []
    position += 1
    try:
        while True:
            while text[position] in blank:
                position += 1
            _, end = scanner.raw_decode(text, position)
            members.append(text[position:end].encode("utf-8"))
            position = end
            while text[position] in blank:
                position += 1
            if text[position] == "]":
                break
            if text[position] != ",":
                raise ValueError
            position += 1
            if len(members) > MOST_ITEMS:
                break
    except (ValueError, IndexError, RecursionError):
        where = len(text[:position].encode("utf-8", "replace"))
        raise _malformed("malformed-json", f"This is not JSON, from byte {where} on.") from None
    if text[position] == "]" and text[position + 1 :].strip(blank):
        raise _malformed("malformed-json", "Something follows the JSON array.")
    return members


def _malformed(code: str, message: str) -> MalformedBody:
    return MalformedBody(message, errors=[Fault(pointer="", code=code, message=message)])
