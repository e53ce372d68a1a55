"""A record as the bytes that are spooled: JSON, whatever a caller put into it."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

LARGEST_RECORD_BYTES = 1024 * 1024


def _plain(value: Any) -> Any:
    """Convert NumPy and PyTorch scalars and arrays to plain numbers, anything else to text."""
    for method in ("tolist", "item"):
        convert = getattr(value, method, None)
        if callable(convert):
            return convert()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    return str(value)


_strict = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain).encode


def encode(record: dict[str, Any]) -> bytes:
    """One line of JSON, without numbers that JSON lacks and characters that UTF-8 lacks."""
    try:
        text = _strict(record)
    except (ValueError, TypeError, RecursionError):
        text = _strict(without_strange(record))
    return text.encode("utf-8", "replace")


def without_strange(value: Any, depth: int = 0) -> Any:
    """Replace NaN, infinities, keys that are not text, and nesting too deep to be intended."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, (str, int, bool)) or value is None:
        return value
    if depth > 30:  # noqa: PLR2004 - the server takes 32
        return str(value)
    if isinstance(value, dict):
        cleaned = {str(name): without_strange(member, depth + 1) for name, member in value.items()}
        return {name: member for name, member in cleaned.items() if member is not None}
    if isinstance(value, (list, tuple)):
        return [without_strange(member, depth + 1) for member in value]
    return without_strange(_plain(value), depth + 1)


def finite(value: Any) -> float | None:
    """A finite number, or None."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if isfinite(number) else None
