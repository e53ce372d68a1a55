"""Who changes incidents of several deployments does not stand across a watch that goes through them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from gapwatch.store.alerting import incidents

MANY = {
    "a channel was changed": lambda connection: incidents.reconsider_untold(connection, 1),
    "a silence was ended": lambda connection: incidents.reconsider_postponed(connection, 1),
    "an import was told of": lambda connection: incidents.mark_told_by_line(connection, 1, [1, 2]),
}


@pytest.mark.parametrize("change", MANY.values(), ids=MANY)
def test_rows_are_locked_in_the_order_of_deployments(stage, change):
    # Stored the other way round.
    stage.run(
        "INSERT INTO incidents (project_id, deployment_id, state, severity, page_at)"
        " SELECT 1, d, 'firing', 'warning', now() + interval '1 hour' FROM unnest(ARRAY[2, 1]) d"
    )

    def change_many():
        with stage.database.transaction() as connection:
            # As a plan may be that reads the table as it is stored.
            for way in ("indexscan", "bitmapscan"):
                connection.execute(text(f"SET LOCAL enable_{way} = off"))
            change(connection)

    with stage.database.transaction() as watch, ThreadPoolExecutor(1) as other:
        ids = dict(watch.execute(text("SELECT deployment_id, id FROM incidents")).all())
        incidents.postpone_notification(watch, 1, ids[1], None)
        changed = other.submit(change_many)
        while not stage.rows("SELECT 1 FROM pg_locks WHERE NOT granted"):
            assert not changed.done(), "it did not wait"
            time.sleep(0.01)
        incidents.postpone_notification(watch, 1, ids[2], None)
        watch.commit()
        changed.result()
