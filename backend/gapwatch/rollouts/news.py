"""What people are told of rollouts: decisions, and stages that wait for one."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from gapwatch.rollouts.plan import STAGES
from gapwatch.store.alerting import alert_settings, outbox, watch_queue
from gapwatch.store.core.database import Connection
from gapwatch.store.rollout.rollouts import DECISION_VERBS, DecisionRow, Rollout, project_slug
from gapwatch.watching.routing import told_of_rollouts

SEVERITY = {"rollback": "warning", "stop": "critical"}


def tell_decision(
    connection: Connection, project_id: int, rollout: Rollout, decision: DecisionRow, gate: str, link_base: str
) -> int:
    """Put a delivery for every channel that wants it into the outbox; return how many."""
    moved = (
        "" if decision.to_stage == decision.from_stage else f" from {decision.from_stage} to {decision.to_stage}"
    )
    policy = rollout.policy
    content = {
        "headline": f"{rollout.slug}: {policy.name} {policy.version} {DECISION_VERBS[decision.kind]}{moved}",
        "lines": [
            f"{decision.who}: “{decision.reason}”",
            f"The gate stood at: {gate}." + (" An admin overrode it." if decision.is_override else ""),
            _what_drives(rollout, decision),
        ],
        "decision": {
            "id": decision.id,
            "kind": decision.kind,
            "from": decision.from_stage,
            "to": decision.to_stage,
            "state": decision.state,
            "who": decision.who,
            "reason": decision.reason,
            "override": decision.is_override,
            "packet_hash": decision.packet_hash,
        },
    }
    severity = SEVERITY.get(decision.kind, "info")
    return _tell(connection, project_id, rollout, content, severity, link_base, f"rollout-{decision.id}")


def ask_for_decision(
    connection: Connection, project_id: int, rollout: Rollout, why: str, gate: str, link_base: str
) -> int:
    """Ask a person to decide: nothing is promoted by itself."""
    content = {
        "headline": f"{rollout.slug}: {rollout.stage} waits for a decision, {why}",
        "lines": [
            f"The gate stands at: {gate}.",
            "Promote, hold, roll back or stop; nothing is promoted by itself.",
        ],
    }
    key = f"rollout-asked-{rollout.deployment_id}-{rollout.revision}"
    return _tell(connection, project_id, rollout, content, "warning", link_base, key)


def tell_breach(connection: Connection, project_id: int, rollout: Rollout, what: str, link_base: str) -> int:
    content = {
        "headline": f"{rollout.slug}: a passed criterion is breached, the gate is open again",
        "lines": [what, "Hold, roll back or stop; until then the candidate keeps driving."],
    }
    key = f"rollout-breach-{rollout.deployment_id}-{rollout.revision}"
    return _tell(connection, project_id, rollout, content, "critical", link_base, key)


def _tell(
    connection: Connection,
    project_id: int,
    rollout: Rollout,
    content: dict[str, Any],
    severity: str,
    link_base: str,
    key: str,
) -> int:
    words = watch_queue.deployment_words(connection, project_id, rollout.deployment_id)
    whole = {
        "severity": severity,
        "reasons": [],
        "deployment": rollout.slug,
        "policy": vars(rollout.policy),
        "task": words["task"],
        "site": words["site"],
        "stage": rollout.stage,
        "link": f"{link_base}/deployments/{quote(rollout.slug, safe='')}#rollout",
    } | content
    matched = {name: words[name] for name in ("policy", "task", "site")} | {
        "deployment": rollout.slug,
        "stage": rollout.stage,
    }
    key = f"gapwatch/{project_slug(connection, project_id)}/{key}"
    channels = told_of_rollouts(alert_settings.targets(connection, project_id), matched, severity)
    for channel_id in channels:
        outbox.enqueue(connection, project_id, channel_id, "rollout", whole, reason="rollout", key=key)
    return len(channels)


def _what_drives(rollout: Rollout, decision: DecisionRow) -> str:
    if decision.state == "stop":
        return "Nothing may drive there now."
    is_candidate = decision.state == "go" and decision.to_stage in STAGES[2:]
    driver = rollout.policy if is_candidate else rollout.fallback
    return "No fallback is named." if driver is None else f"{driver.name} {driver.version} may drive there."
