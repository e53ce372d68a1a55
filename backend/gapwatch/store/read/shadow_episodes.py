"""Episodes in which a policy version only proposed, what was forecast from them, and what it did when it drove."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from psycopg import sql
from sqlalchemy import Connection, text

from gapwatch.record import Shadow
from gapwatch.store.core.driver import named_cursor
from gapwatch.store.read.selection import CellFilter, Window, time_clauses
from gapwatch.tally.sums import Signature

# Of a deployment, the newest: what a page costs does not grow with the years.
MOST_EPISODES = 20_000

_decode = msgspec.json.Decoder(Shadow).decode


class ShadowPlace(NamedTuple):
    deployment_id: int
    policy_id: int
    task_ids: tuple[int, ...] | None


class ShadowEpisode(NamedTuple):
    """`shadow` is None where the sender did not say what drove, nor what the candidate proposed."""

    outcome: str
    session: str | None
    signature: Signature
    shadow: Shadow | None

    @property
    def agreed(self) -> bool | None:
        """Whether the candidate agreed in every step; None where nobody says."""
        shadow = self.shadow
        if shadow is None or not isinstance(shadow.agree, int) or not shadow.steps:
            return None
        return shadow.agree == shadow.steps


@dataclass(frozen=True)
class StoredForecast:
    made_at: datetime
    body: dict[str, Any]


@dataclass(frozen=True)
class ShadowRead:
    """`followed`: decided episodes of the version that it drove itself, and their failures by what was said."""

    episodes: tuple[ShadowEpisode, ...] = ()
    is_cut: bool = False
    forecast: StoredForecast | None = None
    followed: int = 0
    followed_failures: Mapping[Signature, int] = field(default_factory=dict)


NO_SHADOW = ShadowRead()


class _ShadowRow(NamedTuple):
    outcome: str
    session: str | None
    failure_phase: str | None
    failure_labels: list[str] | None
    failure_category: str | None
    shadow: str | None


def read_shadow(
    connection: Connection, project_id: int, place: ShadowPlace, window: Window, wanted: CellFilter
) -> ShadowRead:
    """The newest that match, the frozen forecast if there is one, and what it is scored by."""
    rows = _rows(connection, project_id, place, window, wanted)
    episodes = tuple(
        ShadowEpisode(
            row.outcome,
            row.session,
            Signature(row.failure_phase, tuple(sorted({*(row.failure_labels or ())})), row.failure_category),
            None if row.shadow is None else _decode(row.shadow),
        )
        for row in rows[:MOST_EPISODES]
    )
    found = connection.execute(_FORECAST, {"p": project_id, "d": place.deployment_id, "policy": place.policy_id})
    forecast = None
    followed, failures = 0, {}
    for row in found:
        if row.what == "forecast":
            forecast = StoredForecast(row.at, row.body)
        elif row.what == "followed":
            followed = row.n
        else:
            failures[Signature(row.phase, tuple(sorted({*(row.labels or ())})), row.category)] = row.n
    return ShadowRead(episodes, len(rows) > MOST_EPISODES, forecast, followed, failures)


def _rows(
    connection: Connection, project_id: int, place: ShadowPlace, window: Window, wanted: CellFilter
) -> list[_ShadowRow]:
    times, parameters = time_clauses(window)
    clauses, own = wanted.clauses()
    tasks = "" if place.task_ids is None else " AND e.task_id = ANY(%(tasks)s)"
    statement = sql.SQL(
        "SELECT e.outcome, e.session, e.failure_phase, e.failure_labels, e.failure_category,"  # noqa: S608 - ours
        " e.shadow::text AS shadow FROM episodes e WHERE e.project_id = %(p)s AND e.deployment_id = %(d)s"
        f" AND e.domain = 'shadow' AND e.policy_id = %(policy)s{tasks}{times}{clauses}"
        " ORDER BY e.started_at DESC, e.id DESC LIMIT %(most)s"
    )
    parameters |= own | {
        "p": project_id,
        "d": place.deployment_id,
        "policy": place.policy_id,
        "tasks": list(place.task_ids or ()),
        "most": MOST_EPISODES + 1,
    }
    with named_cursor(connection, _ShadowRow) as cursor:
        return cursor.execute(statement, parameters).fetchall()


_FORECAST = text("""
SELECT 'forecast' AS what, made_at AS at, body, 0 AS n, NULL AS phase, NULL::text[] AS labels, NULL AS category
FROM shadow_forecasts WHERE project_id = :p AND deployment_id = :d AND policy_id = :policy
UNION ALL
SELECT 'followed', NULL, NULL, coalesce(sum(successes + failures), 0)::int, NULL, NULL, NULL FROM rollup_counts
WHERE project_id = :p AND domain = 'real' AND source_id = :d AND policy_id = :policy AND tier = 'month'
UNION ALL
SELECT 'failures', NULL, NULL, f.n, s.phase, s.labels, s.category FROM (
    SELECT signature_id, sum(failures)::int AS n FROM rollup_failures
    WHERE project_id = :p AND domain = 'real' AND source_id = :d AND policy_id = :policy AND tier = 'month'
    GROUP BY 1) f
JOIN signatures s ON s.project_id = :p AND s.id = f.signature_id
""")
# Of deployments that left shadow, by their newest episode or by a decision.
_DUE = text("""
SELECT d.project_id, d.slug, d.id AS deployment_id, d.policy_id FROM deployments d
LEFT JOIN rollouts r ON r.project_id = d.project_id AND r.deployment_id = d.id
WHERE d.project_id = ANY(:projects) AND (d.stage IN ('supervised', 'full') OR r.stage IN ('supervised', 'full'))
  AND EXISTS (SELECT 1 FROM rollup_counts c WHERE c.project_id = d.project_id AND c.domain = 'shadow'
              AND c.source_id = d.id AND c.policy_id = d.policy_id AND c.tier = 'month')
  AND NOT EXISTS (SELECT 1 FROM shadow_forecasts f WHERE f.project_id = d.project_id
                  AND f.deployment_id = d.id AND f.policy_id = d.policy_id)
ORDER BY 1, 2 LIMIT 50
""")


class DueForecast(NamedTuple):
    project_id: int
    slug: str
    deployment_id: int
    policy_id: int


def due_forecasts(project_ids: Collection[int], connection: Connection) -> list[DueForecast]:
    return [DueForecast(*row) for row in connection.execute(_DUE, {"projects": sorted(project_ids)})]


def freeze_forecast(connection: Connection, due: DueForecast, body: Mapping[str, Any]) -> None:
    """Keep what was forecast; the first one stands."""
    connection.execute(
        text("""
        INSERT INTO shadow_forecasts (project_id, deployment_id, policy_id, body)
        VALUES (:p, :d, :policy, CAST(:body AS jsonb)) ON CONFLICT DO NOTHING
        """),
        {
            "p": due.project_id,
            "d": due.deployment_id,
            "policy": due.policy_id,
            "body": msgspec.json.encode(body).decode(),
        },
    )
