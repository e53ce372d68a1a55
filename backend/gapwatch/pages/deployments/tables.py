"""The tables of a page as CSV: numbers as they are, and no text that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

from starlette.responses import Response

from gapwatch.answers.answer_kind import TableRow
from gapwatch.answers.catalogue import TABLES
from gapwatch.csv_cells import safe_cell
from gapwatch.errors import NotFound
from gapwatch.pages.deployments.view import DeploymentPage

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def csv_answer(name: str, rows: Iterable[TableRow]) -> Response:
    buffer = io.StringIO()
    csv.writer(buffer).writerows([safe_cell(value) for value in row] for row in rows)
    file = _NOT_A_NAME.sub("-", name).strip("-")[:100] or "table"
    headers = {"Content-Disposition": f'attachment; filename="{file}.csv"'}
    return Response(buffer.getvalue().encode(), 200, headers, "text/csv; charset=utf-8")


def deployment_table(page: DeploymentPage, name: str) -> list[TableRow]:
    kind = TABLES.get(name)
    if kind is None or kind.table is None:
        raise NotFound("There is no such table.")
    return kind.table.rows(getattr(page, kind.name))
