"""The questions of `bench.query` asked of the stored episodes themselves: one SQL statement each, and pandas.

Each returns only what the service's answer is computed from; intervals, weights and verdicts would still have to be
computed from it.
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
# By session, because the interval needs them, and by contract, because a difference is reported first.
DROP = f"""
SELECT e.domain, e.session, e.contract_id, count(*), count(*) FILTER (WHERE e.outcome = 'success')
{SIDES} GROUP BY 1, 2, 3
"""
# What is usual in sim successes, then how many signals of each failure are not; and the cells of both sides.
LEDGER = f"""
WITH usual AS (
    SELECT place, percentile_disc(ARRAY[0.01, 0.5, 0.99]) WITHIN GROUP (ORDER BY value) AS q
    FROM episodes e, unnest(e.signals) WITH ORDINALITY AS s (value, place)
    WHERE e.project_id = %(project_id)s AND e.policy_id = %(policy_id)s AND e.task_id = %(task_id)s
    AND e.domain = 'sim' AND e.outcome = 'success' GROUP BY 1
), failed AS (
    SELECT e.domain, e.id, e.failure_phase, e.failure_labels, e.failure_category, u.place
    FROM episodes e LEFT JOIN LATERAL unnest(e.signals) WITH ORDINALITY AS s (value, place) ON true
    LEFT JOIN usual u ON u.place = s.place AND (s.value < u.q[1] OR s.value > u.q[3])
    {SIDES.partition("WHERE")[1]}{SIDES.partition("WHERE")[2]} AND e.outcome = 'failure'
)
SELECT domain, failure_phase, failure_labels, failure_category, place, count(DISTINCT id), NULL::int, NULL::int
FROM failed GROUP BY 1, 2, 3, 4, 5
UNION ALL
SELECT e.domain, NULL, NULL, NULL, NULL, count(*), e.condition_set_id, count(*) FILTER (WHERE e.outcome = 'success')
{SIDES} GROUP BY e.domain, e.condition_set_id
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
