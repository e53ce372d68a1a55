"""The questions of `bench.query` put to the stored episodes themselves: one SQL statement each, and pandas.

They give less than the service does (no intervals, no baseline choice, no evidence from signals), so the comparison is
kind to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import psycopg

SIDES = """
FROM episodes e WHERE e.project_id = %(project_id)s AND e.policy_id = %(policy_id)s AND e.task_id = %(task_id)s
AND (e.deployment_id = %(deployment_id)s OR e.domain = 'sim') AND e.outcome IN ('success', 'failure')
"""
DROP = f"SELECT e.domain, count(*), count(*) FILTER (WHERE e.outcome = 'success') {SIDES} GROUP BY 1"
LEDGER = f"""
SELECT e.domain, e.failure_phase, e.failure_labels, e.failure_category, count(*) {SIDES}
AND e.outcome = 'failure' GROUP BY 1, 2, 3, 4
"""
SLICES = f"""
SELECT e.domain, l.key, l.value, count(*), count(*) FILTER (WHERE e.outcome = 'success')
{
    SIDES.replace(
        "WHERE",
        "JOIN condition_sets c ON c.project_id = e.project_id AND c.id = e.condition_set_id,"
        " jsonb_each_text(c.levels) l WHERE",
        1,
    )
} GROUP BY 1, 2, 3
"""
TREND = f"""
SELECT date_trunc('day', e.started_at), count(*), count(*) FILTER (WHERE e.outcome = 'success') {SIDES} GROUP BY 1
"""
ROWS = f"""
SELECT e.domain, e.outcome, e.started_at, e.failure_phase, c.levels
{SIDES.replace("WHERE", "JOIN condition_sets c ON c.project_id = e.project_id AND c.id = e.condition_set_id WHERE", 1)}
"""
NAMES = ["domain", "outcome", "started_at", "phase", "levels"]


def parameters(connection: psycopg.Connection[Any], project_id: int, slug: str) -> dict[str, Any]:
    row = connection.execute(
        "SELECT id, policy_id, task_id FROM deployments WHERE project_id = %s AND slug = %s", (project_id, slug)
    ).fetchone()
    assert row is not None
    return dict(zip(("deployment_id", "policy_id", "task_id"), row, strict=True), project_id=project_id)


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    frame.columns = pd.Index(NAMES)
    return frame.assign(success=frame["outcome"] == "success")


def _slices(frame: pd.DataFrame) -> Any:
    frame = _named(frame)
    levels = pd.DataFrame(frame["levels"].tolist(), index=frame.index)
    return [frame.groupby(["domain", levels[name]])["success"].agg(["size", "sum"]) for name in levels]


PANDAS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "drop": lambda frame: _named(frame).groupby("domain")["success"].agg(["size", "sum"]),
    "ledger": lambda frame: _named(frame).query("not success").groupby(["domain", "phase"], dropna=False).size(),
    "slices": _slices,
    "trend": lambda frame: (
        _named(frame).groupby(pd.Grouper(key="started_at", freq="D"))["success"].agg(["size", "sum"])
    ),
}
STATEMENTS = {"drop": DROP, "ledger": LEDGER, "slices": SLICES, "trend": TREND}
