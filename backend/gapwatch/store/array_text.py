"""Lists as the text of Postgres arrays: long columns on their way into unnest().

psycopg writes lists element by element in Python, which took most of the time of a fold.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def array_text(values: Iterable[Any], kind: str) -> str:
    """A one-dimensional array of integers, texts, JSON texts or bytes; None is NULL."""
    if kind in {"int", "bigint", "smallint"}:
        return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"
    if kind == "bytea":
        return "{" + ",".join([f'"\\\\x{value.hex()}"' for value in values]) + "}"
    return "{" + ",".join([_quoted(value) for value in values]) + "}"


def _quoted(value: str | None) -> str:
    if value is None:
        return "NULL"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
