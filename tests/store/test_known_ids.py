"""The look for known ids uses the key, whatever the planner knows of the table."""

import pytest

from gapwatch.store.pool import PLANNING
from gapwatch.store.wire import _PROBE

FILL = """
INSERT INTO episodes (project_id, id, started_at, policy_id, task_id, deployment_id, domain, outcome, content_hash)
SELECT {project}, 'e' || n, now() - n * interval '1 s', 1, 1, 1, 'real', 'success', ''
FROM generate_series(1, 3000) n
"""


@pytest.mark.parametrize("ids", [1, 500])
@pytest.mark.parametrize("statistics", ["none", "of an empty table", "of another project"])
def test_known_ids_are_looked_up_by_the_key(database, statistics, ids):
    with database.transaction() as connection:

        def run(statement):
            return connection.exec_driver_sql(statement)

        run("INSERT INTO projects (slug, name) VALUES ('p', 'p'), ('q', 'q')")
        for setting in PLANNING.replace("-c", "").split():
            run("SET LOCAL {} = {}".format(*setting.split("=")))
        if statistics == "of another project":
            run(FILL.format(project=1))
        if statistics != "none":
            run("ANALYZE episodes")
        run(f"PREPARE probe (int, text[]) AS {_PROBE.decode()}")
        run(FILL.format(project=2))
        asked = ",".join(f"e{n}" for n in range(ids))
        plan = [row[0].strip() for row in run(f"EXPLAIN EXECUTE probe (2, '{{{asked}}}')")]
        [scan] = [line for line in plan if " on episodes " in line]
        assert "Index Scan using episodes_pkey" in scan, plan
        run("DEALLOCATE probe")
