"""Check one record: its bytes into a valid `EpisodeRecord`, or into everything that is wrong with it.

Records come here only when those of a request could not be read together (`reading.py`). Only an odd one is looked
at closely, and only a refused one is explained field by field: bad records pay for good answers.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import msgspec
from cachetools import LRUCache
from msgspec import UNSET, Raw, UnsetType

from gapwatch.errors import Fault
from gapwatch.ingest.duplicate_keys import record_may_repeat_keys
from gapwatch.ingest.explain import INVISIBLE, explain, fault, pointer_part, unreadable
from gapwatch.ingest.normalise import normalise_text
from gapwatch.record import (
    DEEPEST,
    EARLIEST,
    FARTHEST_AHEAD,
    LARGEST_CONTRACT_BYTES,
    LARGEST_RECORD_BYTES,
    LATER_FIELDS,
    EpisodeRecord,
    Failure,
    Shadow,
    ShadowSteps,
    VersionedName,
)
from gapwatch.taxonomy import CATEGORIES

# Names that go into addresses: no separators of a URL.
ADDRESSABLE = re.compile(r"[^\s/?#%\\\x00-\x1f\x7f-\x9f]+")
# Possessive, and matches a string that never ends: linear whatever is sent.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
# Deeper nesting is no mistake any more but an attack on the parser.
ABSURDLY_DEEP = 500
COUNTED_STEPS = ("agree", "infeasible", "near_limit", "out_of_distribution")
MOST_KNOWN_CONTRACTS = 1000
LARGEST_KNOWN_CONTRACT = 4096

_decoder = msgspec.json.Decoder(EpisodeRecord)
_encoder = msgspec.json.Encoder(order="deterministic")
_canonical_contracts: LRUCache[bytes, Raw] = LRUCache(MOST_KNOWN_CONTRACTS)


class RecordRefused(Exception):
    """A record cannot be stored; has every reason found."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(faults[0]["code"])
        self.faults = faults

    @property
    def is_malformed(self) -> bool:
        return self.faults[0]["code"] in {"malformed-json", "not-utf8", "duplicate-key"}


def check_record(raw: bytes, now: datetime) -> EpisodeRecord:
    """Return the decoded record. Raise RecordRefused."""
    if len(raw) > LARGEST_RECORD_BYTES:
        raise RecordRefused([fault("", "record-too-large", "A record may have at most 1 MiB.")])
    if raw.count(b"[") + raw.count(b"{") > DEEPEST:
        _refuse_depth(raw)
    try:
        record = _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise RecordRefused(explain(raw)) from None
    if record_may_repeat_keys(raw, record):
        faults = unreadable(raw)
        if faults:
            raise RecordRefused(faults)
    faults = _id_faults(record) + context_faults(record) + time_faults(record, now)
    faults += outcome_faults(record) + own_faults(record) + contract_faults(record)
    # Only an escape can bring U+0000, and only an escape or a byte beyond ASCII a letter of two forms.
    if b"\\u" in raw:
        faults += _check_escapes(record)
    if faults:
        raise RecordRefused(faults)
    if (b"\\u" in raw or not raw.isascii()) and not normalise_text(record):
        raise RecordRefused(
            [fault("", "duplicate-key", "Two names in one object differ only in how a letter is composed.")]
        )
    return record


def check_context(record: EpisodeRecord) -> None:
    """Check what types cannot say of the fields that many records share. Raise RecordRefused."""
    _refuse(context_faults(record) + contract_faults(record))


def check_outcome(record: EpisodeRecord) -> None:
    _refuse(outcome_faults(record))


def check_own(record: EpisodeRecord) -> None:
    _refuse(own_faults(record))


def _refuse(faults: list[Fault]) -> None:
    if faults:
        raise RecordRefused(faults)


def _id_faults(record: EpisodeRecord) -> list[Fault]:
    if not ADDRESSABLE.fullmatch(record.id) or (not record.id.isascii() and INVISIBLE.search(record.id)):
        return [fault("/id", "bad-id", "An id has no spaces, control characters or any of / ? # % \\.")]
    return []


def context_faults(record: EpisodeRecord) -> list[Fault]:
    faults: list[Fault] = []
    deployment = record.deployment
    if isinstance(deployment, str):
        if not ADDRESSABLE.fullmatch(deployment) or INVISIBLE.search(deployment):
            message = "A deployment name has no spaces, control characters or any of / ? # % \\."
            faults.append(fault("/deployment", "bad-name", message))
    elif record.domain == "real":
        faults.append(fault("/deployment", "missing", "A real episode names its deployment."))
    if record.domain == "sim" and not isinstance(record.simulator, VersionedName):
        faults.append(fault("/simulator", "missing", "A sim episode names its simulator."))
    for name in ("task", "robot", "site"):
        faults += _name_faults(getattr(record, name), f"/{name}")
    for versioned, pointer in ((record.policy, "/policy"), (record.simulator, "/simulator")):
        if isinstance(versioned, VersionedName):
            faults += _name_faults(versioned.name, f"{pointer}/name")
            faults += _name_faults(versioned.version, f"{pointer}/version")
    return faults


def time_faults(record: EpisodeRecord, now: datetime) -> list[Fault]:
    if record.started_at < EARLIEST:
        return [fault("/started_at", "out-of-range", "Times start in the year 2000.")]
    if record.started_at > now + FARTHEST_AHEAD:
        message = "This is more than 24 hours ahead of the server; set the sender's clock."
        return [fault("/started_at", "clock-skew", message)]
    return []


def outcome_faults(record: EpisodeRecord) -> list[Fault]:
    faults = _name_faults(record.session, "/session")
    failure = record.failure
    if isinstance(failure, Failure) and isinstance(failure.category, str) and failure.category not in CATEGORIES:
        message = f"A category is one of: {', '.join(CATEGORIES)}."
        faults.append(fault("/failure/category", "unknown-category", message))
    return faults


def own_faults(record: EpisodeRecord) -> list[Fault]:
    faults = _name_faults(record.pair, "/pair")
    for later in LATER_FIELDS:
        if later.type == "text" and later.value is None:
            faults += _name_faults(getattr(record, later.column), f"/{later.column}")
    if isinstance(record.shadow, Shadow):
        faults += shadow_faults(record, record.shadow)
    if isinstance(record.links, dict):
        for name, link in record.links.items():
            if not link.startswith("https://") or name.startswith(".") or not ADDRESSABLE.fullmatch(name):
                message = "A link starts with https://, and its name is a plain word."
                faults.append(fault(f"/links/{pointer_part(name)}", "bad-link", message))
    return faults


def shadow_faults(record: EpisodeRecord, shadow: Shadow) -> list[Fault]:
    """What a candidate proposed, against its episode and in itself."""
    if record.domain != "real" or record.stage != "shadow":
        message = "Only a real episode of stage shadow has this field: set `stage` to shadow, or leave it out."
        return [fault("/shadow", "not-in-shadow", message)]
    faults: list[Fault] = []
    executed_by = shadow.executed_by
    if isinstance(executed_by, VersionedName):
        faults += _name_faults(executed_by.name, "/shadow/executed_by/name")
        faults += _name_faults(executed_by.version, "/shadow/executed_by/version")
        if executed_by == record.policy:
            message = "The policy of the episode drove nothing in shadow; name what drove, or send another stage."
            faults.append(fault("/shadow/executed_by", "is-the-candidate", message))
    faults += _step_faults(shadow, "/shadow")
    if isinstance(shadow.critical, ShadowSteps):
        faults += _step_faults(shadow.critical, "/shadow/critical") or _critical_faults(shadow, shadow.critical)
    return faults


def _step_faults(counts: ShadowSteps, pointer: str) -> list[Fault]:
    """Counts are of steps: none without their number, and none larger than it."""
    given = {name: n for name in COUNTED_STEPS if isinstance(n := getattr(counts, name), int)}
    if not isinstance(counts.steps, int):
        message = "Counts are of steps: say how many there were."
        return [fault(f"{pointer}/steps", "missing", message)] if given else []
    message = "This is a count of steps and cannot exceed `steps`."
    return [
        fault(f"{pointer}/{name}", "more-than-steps", message) for name, n in given.items() if n > counts.steps
    ]


def _critical_faults(shadow: Shadow, critical: ShadowSteps) -> list[Fault]:
    """The critical interval is a part of the episode: no count in it is larger, nor what is left outside of it."""
    if not isinstance(critical.steps, int) or not isinstance(shadow.steps, int):
        if isinstance(critical.steps, int):
            return [fault("/shadow/steps", "missing", "Counts are of steps: say how many there were.")]
        return []
    message = "The critical interval is a part of the episode and cannot have more steps, or more of any count."
    if critical.steps > shadow.steps:
        return [fault("/shadow/critical/steps", "more-than-the-episode", message)]
    faults = []
    for name in COUNTED_STEPS:
        within, whole = getattr(critical, name), getattr(shadow, name)
        if isinstance(within, int) and isinstance(whole, int):
            if within > whole:
                faults.append(fault(f"/shadow/critical/{name}", "more-than-the-episode", message))
            elif whole - within > shadow.steps - critical.steps:
                outside = "Outside of the critical interval this leaves more than the steps that are there."
                faults.append(fault(f"/shadow/critical/{name}", "more-than-steps", outside))
    return faults


def _name_faults(name: str | None | UnsetType, pointer: str) -> list[Fault]:
    if isinstance(name, str) and (name != name.strip() or INVISIBLE.search(name)):
        return [fault(pointer, "bad-name", _BAD_NAME)]
    return []


_BAD_NAME = "A name has no control or invisible characters and no space at either end."


def contract_faults(record: EpisodeRecord) -> list[Fault]:
    """Bring the contract to its canonical form, so that equal ones are stored once. Robots send few, and often."""
    if not isinstance(record.contract, Raw):
        return []
    raw = bytes(record.contract)
    if raw == b"null":
        record.contract = UNSET
        return []
    canonical = _canonical_contracts.get(raw)
    if canonical is None:
        canonical, faults = _canonical_contract(raw)
        if faults:
            return faults
        if len(raw) <= LARGEST_KNOWN_CONTRACT:
            _canonical_contracts[raw] = canonical
    record.contract = canonical
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


def _refuse_depth(raw: bytes) -> None:
    """Refuse deep nesting before decoding, where recursion would end at a depth that is not ours."""
    depth = deepest = 0
    for bracket in _BRACKET.finditer(_STRING.sub(b"", raw)):
        depth += 1 if bracket[0] in b"[{" else -1
        deepest = max(deepest, depth)
        if deepest > ABSURDLY_DEEP:
            raise RecordRefused([fault("", "malformed-json", "The nesting is too deep.")])
    # The record itself is one level, the contract's own levels begin below it.
    if deepest > DEEPEST + 1:
        raise RecordRefused([fault("", "too-deep", f"At most {DEEPEST} levels of nesting.")])


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _contains_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any("\0" in name or _contains_nul(member) for name, member in value.items())
    if isinstance(value, list | tuple):
        return any(map(_contains_nul, value))
    return isinstance(value, str) and "\0" in value


def _check_escapes(record: EpisodeRecord) -> list[Fault]:
    """Find U+0000, the one character that Postgres cannot store. The contract is checked by itself."""
    return [
        fault(f"/{name}", "nul-character", "U+0000 cannot be stored.")
        for name in record.__struct_fields__
        if name != "contract"
        and (value := getattr(record, name)) is not UNSET
        and _contains_nul(msgspec.to_builtins(value))
    ]
