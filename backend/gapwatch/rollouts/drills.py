"""A drill: how long it takes until every robot that asks for the permit of a deployment knows of a decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gapwatch.rollouts.deciding import Decider, decide
from gapwatch.store.core.database import Database
from gapwatch.store.rollout import permits, rollouts
from gapwatch.store.rollout.permits import Drill

WAIT_AT_MOST_S = 10.0
LOOK_EVERY_S = 0.2


def drill_rollout(
    database: Database,
    project_id: int,
    slug: str,
    *,
    reason: str,
    decider: Decider,
    sleep: Callable[[float], None],
) -> dict[str, Any]:
    """Decide nothing, wait until everybody who asks knows of it, and keep how long that took.

    Three kinds of transactions, so that nothing is held while robots are waited for.
    """
    with database.transaction(project_id) as connection:
        row = decide(connection, project_id, slug, "drill", reason=reason, decider=decider)
    deployment_id = row.deployment_id
    drill, waited = None, 0.0
    while drill is None or (drill.knew < drill.clients and waited < WAIT_AT_MOST_S):
        sleep(LOOK_EVERY_S)
        waited += LOOK_EVERY_S
        with database.transaction(project_id) as connection:
            drill = permits.measure_drill(connection, project_id, deployment_id, row.revision, row.at)
    with database.transaction(project_id) as connection:
        permits.keep_drill(connection, project_id, deployment_id, row.revision, drill)
        if drill.seconds is not None and drill.knew == drill.clients:
            rollouts.store_drill(connection, project_id, deployment_id, drill.seconds)
    return {
        "id": row.id,
        "kind": row.kind,
        "from": row.from_stage,
        "to": row.to_stage,
        "who": row.who,
        "reason": row.reason,
        "at": row.at.isoformat().replace("+00:00", "Z"),
        "packet": f"/api/v1/decisions/{row.id}/packet",
        **drill_facts(drill),
    }


def drill_facts(drill: Drill) -> dict[str, Any]:
    return {
        "clients": drill.clients,
        "knew": drill.knew,
        "seconds": None if drill.seconds is None else round(drill.seconds, 3),
        "p95_seconds": None if drill.p95_seconds is None else round(drill.p95_seconds, 3),
        "missing": list(drill.missing),
        "reason_of_none": None if drill.clients else "No client asked for the permit in the last 45 seconds.",
    }
