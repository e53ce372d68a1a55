"""Reads catalogue.yaml: its entries become cases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from ingest.bodies import content, written
from ingest.refusals import MARKER

JSON = {"Content-Type": "application/json"}


class Request(NamedTuple):
    headers: dict[str, str]
    first: list[bytes]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Case:
    line: int
    words: str
    status: int
    body: Any = ""
    code: str | None = None
    pointer: str | None = None
    stored: int = 0
    quarantined: int | None = 0
    path: str = "/episodes"
    method: str = "POST"
    scope: str = "ingest"
    headers: dict[str, str] = field(default_factory=lambda: JSON)
    first: list[Any] = field(default_factory=list)
    answer: dict[str, Any] = field(default_factory=dict)
    answer_headers: dict[str, str] = field(default_factory=dict)
    reads: tuple[str, Any] | None = None
    secrets: tuple[str, ...] = (MARKER,)

    def __str__(self) -> str:
        return f"{self.line:03}-{self.words}".replace(" ", "-")

    def request(self) -> Request:
        """All its times are counted from one instant, so that a record sent twice is the same record."""
        now = datetime.now(UTC)
        bodies = [content(body, now) for body in (*self.first, self.body)]
        return Request(written(self.headers, now), bodies[:-1], bodies[-1])


def filled(value: Any, row: dict[str, Any]) -> Any:
    """«name» replaced by what a row says; a text that is nothing else becomes the value itself."""
    if isinstance(value, str):
        alone = re.fullmatch(r"«(\w+)»", value)
        if alone and alone[1] in row:
            return row[alone[1]]
        return re.sub(r"«(\w+)»", lambda found: str(row.get(found[1], found[0])), value)
    if isinstance(value, list):
        return [filled(one, row) for one in value]
    return {filled(k, row): filled(v, row) for k, v in value.items()} if isinstance(value, dict) else value


def cases(entry: dict[str, Any], known: dict[str, Any], outer: dict[str, Any]) -> Iterator[Case]:
    """One entry of the file, or what a group of them and the rows of `each` make of it."""
    own = {name: value for name, value in entry.items() if name not in {"each", "cases", "let"}}
    each = entry.get("each", [{}])
    if isinstance(each, str):
        each = known["places"][each]
    elif isinstance(each, dict):
        each = [{name: value} for name, values in each.items() for value in values]
    for row in each:
        values = outer | entry.get("let", {}) | row
        if "cases" not in entry:
            yield case(filled(kinds(own, known) | own, values))
        for one in entry.get("cases", []):
            yield from cases(own | one, known, values)


def kinds(entry: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    wanted = entry.get("is", [])
    found: dict[str, Any] = {}
    for kind in [wanted] if isinstance(wanted, str) else wanted:
        found |= known["kinds"][kind]
    return found


def case(given: dict[str, Any]) -> Case:
    given.pop("is", None)
    now = datetime.now(UTC)
    for name in ("words", "path"):
        if name in given:
            given[name] = written(str(given[name]), now)
    if "sql" in given:
        given["reads"] = tuple(written(given.pop("sql"), now))
    elif "reads" in given:
        [(expression, value)] = given["reads"].items()
        given["reads"] = (f"SELECT {expression} FROM episodes WHERE project_id = :p", value)
    given["secrets"] = (MARKER, *(written(str(one), now) for one in given.get("secrets", [])))
    given["answer"] = {
        name: pytest.approx(value["about"], abs=10) if isinstance(value, dict) else value
        for name, value in given.get("answer", {}).items()
    }
    return Case(**given)


KNOWN = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
CASES = [one for entry in KNOWN["cases"] for one in cases(entry, KNOWN, {})]
ELSEWHERE = {name: set(lines) for name, lines in KNOWN["elsewhere"].items()}
SLOW = {words: written(text, datetime.now(UTC)) for words, text in KNOWN["slow"].items()}
