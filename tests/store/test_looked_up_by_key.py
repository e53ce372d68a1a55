"""Episodes are looked up by their key, whatever the planner knows of the table: by what is sent, and by a fold."""

import pytest

from gapwatch.store.core.copy_exchange import _PROBE
from gapwatch.store.core.driver import driver_cursor
from gapwatch.store.core.pool import PLANNING
from gapwatch.store.fold.episode_rows import _CLAIMED

FILL = """
INSERT INTO episodes (project_id, id, started_at, policy_id, task_id, deployment_id, domain, outcome, content_hash)
SELECT {project}, 'e' || n, now() - n * interval '1 s', 1, 1, 1, 'real', 'success', ''
FROM generate_series(1, 5000) n
"""


@pytest.fixture(params=["none", "of an empty table", "of another project"])
def stored(database, request):
    """A transaction in which project 2 has episodes, and Postgres statistics from before they came."""
    with database.transaction() as connection:
        connection.exec_driver_sql("INSERT INTO projects (slug, name) VALUES ('p', 'p'), ('q', 'q')")
        if request.param == "of another project":
            connection.exec_driver_sql(FILL.format(project=1))
        if request.param != "none":
            connection.exec_driver_sql("ANALYZE episodes")
        connection.exec_driver_sql(FILL.format(project=2))
        yield connection


def assert_by_key(plan):
    [scan] = [row[0] for row in plan if " on episodes " in row[0]]
    assert "Index Scan using episodes_pkey" in scan, scan


@pytest.mark.parametrize("ids", [1, 500])
def test_known_ids(stored, ids):
    for setting in PLANNING.replace("-c", "").split():
        stored.exec_driver_sql("SET LOCAL {} = {}".format(*setting.split("=")))
    stored.exec_driver_sql(f"PREPARE probe (int, text[]) AS {_PROBE.decode()}")
    asked = ",".join(f"e{n}" for n in range(ids))
    assert_by_key(stored.exec_driver_sql(f"EXPLAIN EXECUTE probe (2, '{{{asked}}}')"))
    stored.exec_driver_sql("DEALLOCATE probe")


@pytest.mark.parametrize("ids", [1, 2000])
def test_claimed_rows(stored, ids):
    asked = {"ids": [f"e{n}" for n in range(ids)], "revisions": [1] * ids, "signs": [1] * ids, "project_id": 2}
    with driver_cursor(stored) as cursor:
        assert_by_key(cursor.execute(f"EXPLAIN {_CLAIMED}", asked).fetchall())
