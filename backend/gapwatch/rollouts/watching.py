"""What the clock does for rollouts: gates judged for the lists, people asked when a stage waits too long.

Nothing is promoted, held, rolled back or stopped here: only people decide.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from gapwatch.rollouts import gate, news
from gapwatch.rollouts.overview import overdue_words
from gapwatch.rollouts.stage_record import read_record
from gapwatch.store.alerting.watch_queue import now
from gapwatch.store.core.audit import audit
from gapwatch.store.core.database import Connection
from gapwatch.store.rollout import rollouts
from gapwatch.store.rollout.rollouts import Rollout

ASK_AGAIN = timedelta(days=7)


def judge_rollouts(connection: Connection, project_id: int, link_base: str) -> int:
    """Judge every gate of a project that has something new; return how many messages go out."""
    told = 0
    for rollout in rollouts.rollouts_to_judge(connection, project_id):
        judged = gate.judge(read_record(connection, project_id, rollout)).as_json()
        rollouts.store_gate(connection, project_id, rollout.deployment_id, judged)
        told += _tell_breaches(connection, project_id, rollout, judged, link_base)
    at = now(connection)
    for rollout in rollouts.rollouts(connection, project_id):
        told += _ask(connection, project_id, rollout, at, link_base)
    return told


def _tell_breaches(
    connection: Connection, project_id: int, rollout: Rollout, judged: dict[str, Any], link_base: str
) -> int:
    """Tell once that a full deployment misses what it had passed."""
    known = {found["id"] for found in (rollout.gate or {}).get("criteria", ()) if found["breached"]}
    fresh = [found for found in judged["criteria"] if found["breached"] and found["id"] not in known]
    if not fresh:
        return 0
    names = ", ".join(found["id"] for found in fresh)
    audit(connection, project_id, "watch", "rollout.reopened", f"deployment/{rollout.slug}", breached=names)
    words = "; ".join(
        f"{found['claim']} It does not hold any more: {found['wanted']} was wanted." for found in fresh
    )
    return news.tell_breach(connection, project_id, rollout, words, link_base)


def _ask(connection: Connection, project_id: int, rollout: Rollout, at: datetime, link_base: str) -> int:
    why = overdue_words(rollout, at)
    if why is None or (rollout.asked_at is not None and at - rollout.asked_at < ASK_AGAIN):
        return 0
    rollouts.mark_asked(connection, project_id, rollout.deployment_id)
    audit(connection, project_id, "watch", "rollout.asked", f"deployment/{rollout.slug}", why=why)
    stands = "not judged yet" if rollout.gate is None else str(rollout.gate["verdict"])
    return news.ask_for_decision(connection, project_id, rollout, why, stands, link_base)
