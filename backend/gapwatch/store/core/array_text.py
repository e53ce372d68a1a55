"""Write lists as the text of Postgres arrays: long columns for unnest().

psycopg writes lists element by element in Python, which took most of the time of a fold.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def array_text(values: Iterable[Any], kind: str) -> str:
    """Write a one-dimensional array of integers, texts, JSON texts or bytes; None is NULL."""
    if kind in {"int", "bigint", "smallint"}:
        return "{" + ",".join(map(str, values)).replace("None", "NULL") + "}"
    if kind == "bytea":
        return "{" + ",".join([f'"\\\\x{value.hex()}"' for value in values]) + "}"
    texts = list(values)
    if texts and None not in texts:
        plain = '","'.join(texts)
        if plain.count('"') == 2 * (len(texts) - 1) and "\\" not in plain:
            return '{"' + plain + '"}'
    return "{" + ",".join(map(_quoted, texts)) + "}"


def _quoted(value: str | None) -> str:
    if value is None:
        return "NULL"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
