"""Sampling a ledger's episodes stays cheap under row security: the times of a stretch are bounds of an index."""

from datetime import UTC, datetime, timedelta

import psycopg

from gapwatch.store.core.driver import driver_connection
from gapwatch.store.read import sampled_episodes
from gapwatch.store.read.selection import CellFilter, Scope, Window

NOW = datetime(2026, 11, 1, tzinfo=UTC)
FILL = """
INSERT INTO episodes (project_id, id, started_at, policy_id, task_id, deployment_id, domain, outcome, content_hash)
SELECT 1, 'e' || n, CAST('{now}' AS timestamptz) - n * interval '1 hour', 1, 1, 1, 'real', 'success', ''
FROM generate_series(1, 4000) n
"""


def test_a_stretch_is_found_by_its_times(database, monkeypatch):
    with database.transaction() as connection:
        connection.exec_driver_sql("INSERT INTO projects (slug, name) VALUES ('p', 'p')")
        connection.exec_driver_sql(FILL.format(now=NOW.isoformat()))
        connection.exec_driver_sql("ANALYZE episodes")
    asked = []
    execute = psycopg.Cursor.execute

    def listen(cursor, query, parameters=None, **more):
        asked.append((query, parameters))
        return execute(cursor, query, parameters, **more)

    by_day = {NOW - timedelta(days=day): 24 for day in range(1, 160)}
    scope = Scope("real", (1,), (1,), (1,))
    selection = sampled_episodes.EpisodeSelection(
        scope, Window(None, None), CellFilter(), 40, 3816, by_day, "success"
    )
    with database.transaction(1) as connection:
        monkeypatch.setattr(psycopg.Cursor, "execute", listen)
        [rows] = sampled_episodes.each_sampled_episodes(connection, 1, [selection])
        monkeypatch.undo()
        query, parameters = next((q, p) for q, p in asked if "LATERAL" in str(q))
        explain = psycopg.sql.SQL("EXPLAIN ") + query
        with driver_connection(connection).cursor(row_factory=psycopg.rows.tuple_row) as cursor:
            plan = [line for (line,) in cursor.execute(explain, parameters)]
    assert len(rows) == 40
    [condition] = [line for line in plan if "Index Cond" in line]
    assert "started_at >= w.since" in condition and "started_at < w.until" in condition
