"""One question about a deployment and everything that is made from it: route, schema, example, link and CSV."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapwatch.answers.answer import Answer
from gapwatch.answers.needs import Need
from gapwatch.answers.sides import Sides
from gapwatch.filters import StatisticsFilter

EXAMPLES = Path(__file__).parent / "examples"
TableRow = list[Any]


@dataclass(frozen=True)
class AnswerTable:
    """The answer as a table, its head first; `name` is what the page's CSV link calls it."""

    name: str
    rows: Callable[[Any], list[TableRow]]


@dataclass(frozen=True, kw_only=True)
class AnswerKind:
    """`name` is the last part of the address and the page's field; `gives` says what the answer holds."""

    name: str
    answer_type: type[Answer]
    answer: Callable[[Sides], Answer]
    needs: Need
    summary: str
    gives: str
    description: str
    filter: type[StatisticsFilter] = StatisticsFilter
    table: AnswerTable | None = None

    @property
    def example(self) -> Any:
        return read_example(self.name)


def read_example(name: str) -> Any:
    """Return an answer as the service gave it, shortened; None where none was kept."""
    path = EXAMPLES / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None
