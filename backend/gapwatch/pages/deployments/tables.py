"""The tables of a page as CSV: numbers as they are, and no text that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

from starlette.responses import Response

from gapwatch.errors import NotFound
from gapwatch.pages.deployments.view import DeploymentPage

Row = list[Any]
# What a spreadsheet takes for the start of a formula (OWASP, CSV injection).
_FORMULA = re.compile(r"^[=+\-@\t\r\n]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def csv_answer(name: str, rows: Iterable[Row]) -> Response:
    buffer = io.StringIO()
    csv.writer(buffer).writerows([_safe(value) for value in row] for row in rows)
    file = _NOT_A_NAME.sub("-", name).strip("-")[:100] or "table"
    headers = {"Content-Disposition": f'attachment; filename="{file}.csv"'}
    return Response(buffer.getvalue().encode(), 200, headers, "text/csv; charset=utf-8")


def deployment_table(page: DeploymentPage, name: str) -> list[Row]:
    tables = {
        "ledger": _ledger,
        "conditions": _conditions,
        "signals": _signals,
        "failures": _failures,
        "trend": _trend,
    }
    if name not in tables:
        raise NotFound("There is no such table.")
    return tables[name](page)


def _ledger(page: DeploymentPage) -> list[Row]:
    parts = [*page.ledger.categories, *([page.ledger.unattributed] if page.ledger.unattributed else [])]
    return [
        ["category", "contribution", "low", "high", "real_weight", "sim_weight", "real_episodes", "sim_episodes"],
        *(
            [
                part.category,
                part.contribution,
                *(part.interval or (None, None)),
                part.real_weight,
                part.sim_weight,
                part.episodes.count,
                part.episodes.sim_count,
            ]
            for part in parts
        ),
    ]


def _conditions(page: DeploymentPage) -> list[Row]:
    return [
        [
            "condition",
            "level",
            "seen",
            "n_sim",
            "sim",
            "n_real",
            "real",
            "drop",
            "low",
            "high",
            "q_value",
            "verdict",
        ],
        *(
            [
                one.condition,
                one.level,
                one.seen,
                one.sim.n,
                one.sim.value,
                one.real.n,
                one.real.value,
                one.drop,
                *(one.interval or (None, None)),
                one.q_value,
                one.verdict,
            ]
            for one in page.slices.slices
        ),
    ]


def _signals(page: DeploymentPage) -> list[Row]:
    return [
        [
            "signal",
            "categories",
            "n_sim",
            "sim_median",
            "n_real",
            "real_median",
            "effect",
            "low",
            "high",
            "q_value",
        ],
        *(
            [
                one.signal,
                " ".join(one.categories),
                one.sim.n,
                one.sim.median,
                one.real.n,
                one.real.median,
                one.effect,
                *(one.interval or (None, None)),
                one.q_value,
            ]
            for one in page.signals.signals
        ),
    ]


def _failures(page: DeploymentPage) -> list[Row]:
    return [
        ["phase", "labels", "points_to", "seen", "real", "sim", "excess", "low", "high"],
        *(
            [
                group.phase,
                " ".join(group.labels),
                " ".join(group.points_to),
                group.seen,
                group.real.failures,
                group.sim.failures,
                group.excess,
                *(group.interval or (None, None)),
            ]
            for group in page.failures.groups
        ),
    ]


def _trend(page: DeploymentPage) -> list[Row]:
    return [
        ["at", "version", "n", "successes", "value", "low", "high", "aborted", "abandoned"],
        *(
            [
                step.at.isoformat(),
                step.version,
                step.n,
                step.successes,
                step.value,
                *(step.interval or (None, None)),
                step.aborted,
                step.abandoned,
            ]
            for step in page.trend.steps
        ),
    ]


def _safe(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    clean = _CONTROL.sub("", value)
    return f"'{clean}" if _FORMULA.match(value) else clean
