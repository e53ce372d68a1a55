"""Raw bytes of one record into a checked episode, or into everything that is wrong with it.

The common case is one decode and a few comparisons. Only a record that looks odd is looked at closely, and
only a refused one is explained field by field: the cost of good answers is paid by bad records.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import astuple

from gapwatch.errors import Fault
from gapwatch.ingest.explain import INVISIBLE, MAPS, explain, fault, pointer_part, unreadable
from gapwatch.ingest.normalise import drop_nulls, normalise_text, normalise_zeros
from gapwatch.record import (
    DEEPEST,
    LARGEST_CONTRACT_BYTES,
    LARGEST_RECORD_BYTES,
    EpisodeRecord,
    Failure,
)
from gapwatch.taxonomy import CATEGORIES

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
FARTHEST_AHEAD = timedelta(hours=24)

# Names that go into addresses: no separators of a URL.
ADDRESSABLE = re.compile(r"[^\s/?#%\\\x00-\x1f\x7f-\x9f]+")
# Possessive, and content with a string that never ends: linear whatever is sent.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
# Beyond this the nesting is no mistake any more but an attack on the parser.
ABSURDLY_DEEP = 500
NAME_FIELDS = ("task", "robot", "site", "session", "pair")
MOST_KNOWN_CONTRACTS = 1000
LARGEST_KNOWN_CONTRACT = 4096
MOST_REMEMBERED = 50_000

_decoder = msgspec.json.Decoder(EpisodeRecord)
_encoder = msgspec.json.Encoder(order="deterministic")
_known_contracts: dict[bytes, Raw] = {}
_clean_names: set[str] = set()
_clean_deployments: set[str] = set()


class Refused(Exception):
    """A record that cannot be stored, with every reason found."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(faults[0]["code"])
        self.faults = faults

    @property
    def is_malformed(self) -> bool:
        return self.faults[0]["code"] in {"malformed-json", "not-utf8", "duplicate-key"}


def check_record(raw: bytes, now: datetime) -> EpisodeRecord:
    """The record as an episode ready to store, or Refused."""
    if len(raw) > LARGEST_RECORD_BYTES:
        raise Refused([fault("", "record-too-large", "A record may have at most 1 MiB.")])
    if raw.count(b"[") + raw.count(b"{") > DEEPEST:
        _refuse_depth(raw)
    try:
        record = _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Refused(explain(raw)) from None
    if _may_have_duplicate_keys(raw, record):
        faults = unreadable(raw)
        if faults:
            raise Refused(faults)
    faults = _check_rules(record, now)
    if record.contract is not UNSET:
        faults += _check_contract(record)
    # Only an escape can bring U+0000, and only an escape or a byte beyond ASCII a letter of two forms.
    if b"\\u" in raw:
        faults += _check_escapes(record)
    if faults:
        raise Refused(faults)
    if b"null" in raw:
        drop_nulls(record)
    if (b"\\u" in raw or not raw.isascii()) and not normalise_text(record):
        raise Refused(
            [fault("", "duplicate-key", "Two names in one object differ only in how a letter is composed.")]
        )
    if record.started_at.tzinfo is not UTC:
        record.started_at = record.started_at.astimezone(UTC)
    return record


def content_hash(record: EpisodeRecord) -> bytes:
    """Equal for records that say the same, however their JSON was written."""
    written = _encoder.encode(record)
    if b"-0.0" in written:
        normalise_zeros(record)
        written = _encoder.encode(record)
    return hashlib.blake2b(written, digest_size=16).digest()


def _check_rules(record: EpisodeRecord, now: datetime) -> list[Fault]:
    """What types cannot say."""
    faults: list[Fault] = []
    if not ADDRESSABLE.fullmatch(record.id) or (not record.id.isascii() and INVISIBLE.search(record.id)):
        message = "An id has no spaces, control characters or any of / ? # % \\."
        faults.append(fault("/id", "bad-id", message))
    deployment = record.deployment
    if isinstance(deployment, str):
        if deployment not in _clean_deployments and not _is_clean_deployment(deployment):
            message = "A deployment name has no spaces, control characters or any of / ? # % \\."
            faults.append(fault("/deployment", "bad-name", message))
    elif record.domain == "real":
        faults.append(fault("/deployment", "missing", "A real episode names its deployment."))
    if record.domain == "sim" and not isinstance(record.simulator, msgspec.Struct):
        faults.append(fault("/simulator", "missing", "A sim episode names its simulator."))
    for name in NAME_FIELDS:
        value = getattr(record, name)
        if value is not UNSET and value not in _clean_names and not _is_clean(value):
            faults.append(fault(f"/{name}", "bad-name", _BAD_NAME))
    for versioned, pointer in ((record.policy, "/policy"), (record.simulator, "/simulator")):
        if isinstance(versioned, msgspec.Struct):
            for part in ("name", "version"):
                value = getattr(versioned, part)
                if value not in _clean_names and not _is_clean(value):
                    faults.append(fault(f"{pointer}/{part}", "bad-name", _BAD_NAME))
    if record.started_at < EARLIEST:
        faults.append(fault("/started_at", "out-of-range", "Times start in the year 2000."))
    elif record.started_at > now + FARTHEST_AHEAD:
        message = "This is more than 24 hours ahead of the server; set the sender's clock."
        faults.append(fault("/started_at", "clock-skew", message))
    if isinstance(record.failure, Failure):
        faults += _check_failure(record.failure)
    if isinstance(record.links, dict):
        for name, link in record.links.items():
            if not link.startswith("https://") or name.startswith(".") or not ADDRESSABLE.fullmatch(name):
                message = "A link starts with https://, and its name is a plain word."
                faults.append(fault(f"/links/{pointer_part(name)}", "bad-link", message))
    return faults


_BAD_NAME = "A name has no control or invisible characters and no space at either end."


def _is_clean(name: str | None) -> bool:
    """Names come again and again; a clean one is looked through once."""
    if name is None:
        return True
    clean = name == name.strip() and not INVISIBLE.search(name)
    if clean:
        if len(_clean_names) >= MOST_REMEMBERED:
            _clean_names.clear()
        _clean_names.add(name)
    return clean


def _is_clean_deployment(name: str) -> bool:
    clean = ADDRESSABLE.fullmatch(name) is not None and not INVISIBLE.search(name)
    if clean:
        if len(_clean_deployments) >= MOST_REMEMBERED:
            _clean_deployments.clear()
        _clean_deployments.add(name)
    return clean


def _check_failure(failure: Failure) -> list[Fault]:
    if isinstance(failure.category, str) and failure.category not in CATEGORIES:
        message = f"A category is one of: {', '.join(CATEGORIES)}."
        return [fault("/failure/category", "unknown-category", message)]
    return []


def _check_contract(record: EpisodeRecord) -> list[Fault]:
    """Bring the contract to its canonical form, so that equal ones are one. Robots send few, and often."""
    raw = bytes(record.contract) if isinstance(record.contract, Raw) else b"null"
    if raw == b"null":
        record.contract = UNSET
        return []
    known = _known_contracts.get(raw)
    if known is None:
        known, faults = _canonical_contract(raw)
        if faults:
            return faults
        if len(raw) <= LARGEST_KNOWN_CONTRACT:
            if len(_known_contracts) >= MOST_KNOWN_CONTRACTS:
                _known_contracts.clear()
            _known_contracts[raw] = known
    record.contract = known
    return []


def _canonical_contract(raw: bytes) -> tuple[Raw, list[Fault]]:
    if len(raw) > LARGEST_CONTRACT_BYTES:
        return Raw(), [fault("/contract", "too-large", "A contract may have at most 64 KiB.")]
    faults = unreadable(raw)
    if faults:
        return Raw(), faults
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return Raw(), [fault("/contract", "out-of-range", "The contract holds a number that is out of range.")]
    if not isinstance(value, dict):
        return Raw(), [fault("/contract", "wrong-type", "A contract is a JSON object.")]
    if _depth(value) > DEEPEST:
        faults.append(fault("/contract", "too-deep", f"At most {DEEPEST} levels of nesting."))
    if _contains_nul(value):
        faults.append(fault("/contract", "nul-character", "U+0000 cannot be stored."))
    return Raw(_encoder.encode(value)), faults


def _may_have_duplicate_keys(raw: bytes, record: EpisodeRecord) -> bool:
    """Compare the number of `":` in the bytes with the number of keys that were decoded.

    Decoding keeps the last of two equal keys, so a repeated key makes the first number larger. A string that
    contains the two characters does too, and white space before a colon could hide one: both are "maybe".
    """
    if b" :" in raw or b"\t:" in raw or b"\n:" in raw or b"\r:" in raw:
        return True
    values = astuple(record)
    keys = len(values) - values.count(UNSET) + 2  # the record's own, and those of `policy`
    for name in MAPS:
        value = getattr(record, name)
        if value:
            keys += len(value)
    if record.simulator:
        keys += 2
    for part in (record.failure, record.safety):
        if part:
            inner = astuple(part)
            keys += len(inner) - inner.count(UNSET)
    if isinstance(record.contract, Raw):
        # Looked through for repeated keys of its own when it was first seen.
        keys += bytes(record.contract).count(b'":')
    return raw.count(b'":') != keys


def _refuse_depth(raw: bytes) -> None:
    """Looked at before decoding: recursion would end somewhere, and not where we say."""
    depth = deepest = 0
    for bracket in _BRACKET.finditer(_STRING.sub(b"", raw)):
        depth += 1 if bracket[0] in b"[{" else -1
        deepest = max(deepest, depth)
        if deepest > ABSURDLY_DEEP:
            raise Refused([fault("", "malformed-json", "The nesting is too deep.")])
    # The record itself is one level, the contract's own levels begin below it.
    if deepest > DEEPEST + 1:
        raise Refused([fault("", "too-deep", f"At most {DEEPEST} levels of nesting.")])


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _contains_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any("\0" in name or _contains_nul(member) for name, member in value.items())
    if isinstance(value, list):
        return any(map(_contains_nul, value))
    return isinstance(value, str) and "\0" in value


def _check_escapes(record: EpisodeRecord) -> list[Fault]:
    """Postgres stores every character but U+0000. The contract was looked through by itself."""
    return [
        fault(f"/{name}", "nul-character", "U+0000 cannot be stored.")
        for name in record.__struct_fields__
        if name != "contract"
        and (value := getattr(record, name)) is not UNSET
        and _contains_nul(msgspec.to_builtins(value))
    ]
