"""What a fold reads follows the episodes that are new, whatever the planner knows of those that are stored."""

import pytest

from gapwatch.store.folding import _CLAIMED, driver_cursor

FILL = """
INSERT INTO episodes (project_id, id, started_at, policy_id, task_id, deployment_id, domain, outcome, content_hash)
SELECT {project}, 'e' || n, now() - n * interval '1 s', 1, 1, 1, 'real', 'success', ''
FROM generate_series(1, 5000) n
"""


@pytest.mark.parametrize("ids", [1, 2000])
@pytest.mark.parametrize("statistics", ["none", "of an empty table", "of another project"])
def test_claimed_episodes_are_looked_up_by_the_key(database, statistics, ids):
    with database.transaction() as connection:
        connection.exec_driver_sql("INSERT INTO projects (slug, name) VALUES ('p', 'p'), ('q', 'q')")
        if statistics == "of another project":
            connection.exec_driver_sql(FILL.format(project=1))
        if statistics != "none":
            connection.exec_driver_sql("ANALYZE episodes")
        connection.exec_driver_sql(FILL.format(project=2))
        asked = {"ids": [f"e{n}" for n in range(ids)], "revisions": [1] * ids, "signs": [1] * ids, "project_id": 2}
        with driver_cursor(connection) as cursor:
            plan = [row[0].strip() for row in cursor.execute(f"EXPLAIN {_CLAIMED}", asked)]
    [scan] = [line for line in plan if " on episodes" in line]
    assert "Index Scan using episodes_pkey" in scan, plan
