"""The fields of an episode record as importers name them (`conditions.lighting`), and how values become them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timezone, tzinfo
from math import isfinite
from typing import Any

TEXT = {"id", "domain", "task", "deployment", "robot", "site", "stage", "session", "pair"}
TEXT |= {"policy.name", "policy.version", "simulator.name", "simulator.version"}
TEXT |= {"failure.phase", "failure.category", "failure.note"}
NUMBERS = {"duration_s", "reward"}
COUNTS = {"safety.violations", "safety.interventions", "safety.overrides"}
MAPS = {"conditions", "signals", "metrics", "links", "provenance"}
JSON = {"contract", "embedding", "failure.labels", "shadow"}
# The service's own exports have these columns. It computes them itself, so they are not sent back.
SERVERS_OWN = {"received_at", "revision", "clock_skew_s", "contract_hash"}

_SUCCESS = {"success", "succeeded", "successful", "true", "1", "1.0", "yes", "ok", "pass", "passed"}
_FAILURE = {"failure", "failed", "fail", "false", "0", "0.0", "no", "nok", "error"}
_ABORTED = {"aborted", "abort", "cancelled", "canceled", "killed", "interrupted"}
_ABANDONED = {"abandoned", "abandon", "given up"}
# Exports prefix these with an apostrophe, so that a spreadsheet does not run them as formulas.
_GUARDED = re.compile(r"^'[=+\-@\t\r\n]")
_FRACTION = re.compile(r"[.,](\d+)")
# Seconds since 1970 are below the first until the year 5138, milliseconds below the second until then, and so on.
_EPOCHS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (float("inf"), 1e9))


class NotConvertible(ValueError):
    """Reported with its column and counted; the text says what was expected."""


def is_field(name: str) -> bool:
    head, dot, rest = name.partition(".")
    return name in _CONVERT or name in {"policy", "simulator"} or (head in MAPS and (not dot or bool(rest)))


def converted(field: str, value: Any, zone: tzinfo | None = None) -> Any:
    """Return the value in the type of that field, or raise NotConvertible."""
    if isinstance(value, str):
        value = value[1:] if _GUARDED.match(value) else value
    if field == "started_at":
        return as_time(value, zone)
    head, dot, _ = field.partition(".")
    if head in MAPS and dot:
        return _IN_MAP[head](value)
    if field in MAPS:
        return _as_json(value)
    return _CONVERT[field](value)


def as_time(value: Any, zone: tzinfo | None = None) -> str:
    if isinstance(value, str) and not re.fullmatch(r"-?\d+(\.\d+)?", value.strip()):
        try:
            value = datetime.fromisoformat(_FRACTION.sub(_six_digits, value.strip().replace("Z", "+00:00")))
        except ValueError:
            raise NotConvertible("is no time (RFC 3339, or seconds since 1970)") from None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=zone or timezone.utc)
        return str(value.isoformat())
    number = _as_number(value)
    divisor = next(divisor for limit, divisor in _EPOCHS if abs(number) < limit)
    try:
        return datetime.fromtimestamp(number / divisor, timezone.utc).isoformat()
    except (ValueError, OverflowError, OSError):
        raise NotConvertible("is no time") from None


def _six_digits(fraction: re.Match[str]) -> str:
    """Python 3.9 parses fractions of three or six digits only."""
    return f".{fraction[1][:6]:0<6}"


def _as_text(value: Any) -> str:
    text = str(value).strip()
    if not text:
        raise NotConvertible("is empty")
    return text


def _as_number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise NotConvertible("is no number") from None
    if not isfinite(number):
        raise NotConvertible("is no finite number")
    return number


def _as_count(value: Any) -> int:
    return int(_as_number(value))


def _as_outcome(value: Any) -> str:
    word = str(value).strip().lower()
    for outcome, words in (
        ("success", _SUCCESS),
        ("failure", _FAILURE),
        ("aborted", _ABORTED),
        ("abandoned", _ABANDONED),
    ):
        if word in words:
            return outcome
    raise NotConvertible("is no outcome; name it under [values.outcome] of the mapping")


def _as_json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise NotConvertible("is no JSON") from None


def _as_labels(value: Any) -> list[str]:
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return [label.strip() for label in re.split(r"[;,|]", value) if label.strip()]
    return [str(label) for label in _as_json(value)]


def as_condition(value: Any) -> str | float | bool:
    """Text files have no types: `true` is a boolean, `3` a number, anything else a word."""
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        if value.strip().lower() in {"true", "false"}:
            return value.strip().lower() == "true"
        try:
            value = float(value)
        except ValueError:
            return _as_text(value)
    if isinstance(value, float):
        return _as_number(value)
    return _as_text(value)


_IN_MAP: dict[str, Callable[[Any], Any]] = {
    "conditions": as_condition,
    "signals": _as_number,
    "metrics": _as_number,
    "links": _as_text,
    "provenance": as_condition,
}
_CONVERT: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(TEXT, _as_text),
    **dict.fromkeys(NUMBERS, _as_number),
    **dict.fromkeys(COUNTS, _as_count),
    **dict.fromkeys(JSON, _as_json),
    "failure.labels": _as_labels,
    "outcome": _as_outcome,
    "started_at": as_time,
    "policy": _as_text,
    "simulator": _as_text,
    "failure": _as_json,
    "safety": _as_json,
}
