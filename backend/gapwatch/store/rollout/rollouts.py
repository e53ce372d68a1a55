"""SQL of rollouts and decisions: what may drive where, read in one query; decided in one transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.store.alerting.events import record_event
from gapwatch.store.core.audit import audit

DRIVING_STAGES = ("supervised", "full")
DECISION_VERBS = {
    "promote": "promoted",
    "hold": "held",
    "rollback": "rolled back",
    "stop": "stopped",
    "resume": "resumed",
    "drill": "drilled",
}

_COLUMNS = """
    r.deployment_id, d.slug, r.stage, r.entered_at, r.state, r.policy_name, r.policy_version,
    r.fallback_name, r.fallback_version, r.decided_at, r.decision_id, r.revision, r.plan, r.frozen_at, r.criteria,
    r.gate, r.gate_at, r.waiting_since, r.asked_at, r.drill_at, r.drill_seconds
"""
_FROM = """
    FROM rollouts r JOIN deployments d ON d.project_id = r.project_id AND d.id = r.deployment_id
    WHERE r.project_id = :p
"""


@dataclass(frozen=True)
class PolicyVersion:
    name: str
    version: str


def may_drive(
    state: str, stage: str | None, policy: PolicyVersion, fallback: PolicyVersion | None
) -> PolicyVersion | None:
    """Without any stage said nobody restricts the candidate."""
    if state == "stop":
        return None
    if state == "go" and (stage is None or stage in DRIVING_STAGES):
        return policy
    return fallback


@dataclass(frozen=True)
class Rollout:
    deployment_id: int
    slug: str
    stage: str
    entered_at: datetime
    state: str
    policy: PolicyVersion
    fallback: PolicyVersion | None
    decided_at: datetime
    decision_id: int | None
    revision: int
    plan: dict[str, Any] | None
    frozen_at: datetime | None
    criteria: dict[str, Any]
    gate: dict[str, Any] | None
    gate_at: datetime | None
    waiting_since: datetime | None
    asked_at: datetime | None
    drill_at: datetime | None
    drill_seconds: float | None

    @property
    def driver(self) -> PolicyVersion | None:
        """What may drive now: the candidate where its stage lets it, else the fallback; nothing after a stop."""
        return may_drive(self.state, self.stage, self.policy, self.fallback)


@dataclass(frozen=True)
class Decision:
    """What is to be written: the packet names everything but the hashes of the chain."""

    kind: str
    to_stage: str
    state: str
    who: str
    reason: str
    packet: Mapping[str, Any]
    is_override: bool = False
    # Of the stage that begins: frozen with its own reference.
    plan: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class DecisionRow:
    id: int
    deployment_id: int
    deployment: str
    kind: str
    from_stage: str
    to_stage: str
    state: str
    revision: int
    who: str
    reason: str
    is_override: bool
    at: datetime
    packet_hash: str
    previous_hash: str | None


def find_rollout(connection: Connection, project_id: int, slug: str) -> Rollout | None:
    """The rollout of a deployment as it stands, in one query; None where nobody began one."""
    row = connection.execute(
        text(f"SELECT {_COLUMNS} {_FROM} AND d.slug = :slug"),
        {"p": project_id, "slug": slug},
    ).one_or_none()
    return None if row is None else _rollout(row)


def plan_of(connection: Connection, project_id: int, deployment_id: int) -> tuple[str, dict[str, Any]] | None:
    """The stage and the frozen plan of a deployment; None where it has none."""
    row = connection.execute(
        text("SELECT stage, plan FROM rollouts WHERE project_id = :p AND deployment_id = :d AND plan IS NOT NULL"),
        {"p": project_id, "d": deployment_id},
    ).one_or_none()
    return None if row is None else (row.stage, row.plan)


def lock_rollout(connection: Connection, project_id: int, slug: str) -> Rollout | None:
    """The same, and nobody else decides until the end of the transaction."""
    row = connection.execute(
        text(f"SELECT {_COLUMNS} {_FROM} AND d.slug = :slug FOR UPDATE OF r"),
        {"p": project_id, "slug": slug},
    ).one_or_none()
    return None if row is None else _rollout(row)


def rollouts(connection: Connection, project_id: int) -> list[Rollout]:
    """Every rollout of a project, by the deployment's slug."""
    rows = connection.execute(text(f"SELECT {_COLUMNS} {_FROM} ORDER BY d.slug"), {"p": project_id})
    return [_rollout(row) for row in rows]


@dataclass(frozen=True)
class ListedDeployment:
    """A deployment for the list of all rollouts; `rollout` is None where nobody began one."""

    slug: str
    stage: str | None
    site: str | None
    rollout: Rollout | None


def listed_deployments(connection: Connection, project_id: int, most: int) -> list[ListedDeployment]:
    """Every deployment with its rollout, in one query."""
    rows = connection.execute(
        text(f"""
        SELECT d.slug AS listed_slug, d.stage AS newest_stage, s.name AS site, {_COLUMNS}
        FROM deployments d
        LEFT JOIN sites s ON s.project_id = d.project_id AND s.id = d.site_id
        LEFT JOIN rollouts r ON r.project_id = d.project_id AND r.deployment_id = d.id
        WHERE d.project_id = :p ORDER BY d.slug LIMIT :most
        """),  # noqa: S608
        {"p": project_id, "most": most},
    )
    found = []
    for row in rows:
        named = dict(row._mapping)
        slug, stage, site = named.pop("listed_slug"), named.pop("newest_stage"), named.pop("site")
        rollout = None if named["deployment_id"] is None else _named_rollout(named)
        found.append(ListedDeployment(slug, stage, site, rollout))
    return found


_TIMES = ("entered_at", "decided_at", "frozen_at", "gate_at", "waiting_since", "asked_at", "drill_at")


def read_rollout(stored: Mapping[str, Any], slug: str) -> tuple[Rollout, list[DecisionRow]]:
    """A rollout and its newest decisions from the JSON that the deployment's other surroundings come with."""
    named = {name: value for name, value in stored["row"].items() if name != "project_id"}
    times = {name: named[name] and datetime.fromisoformat(named[name]) for name in _TIMES}
    rollout = _named_rollout(named | times | {"slug": slug})
    decisions = [
        DecisionRow(
            deployment_id=rollout.deployment_id,
            deployment=slug,
            **decision | {"at": datetime.fromisoformat(decision["at"])},
        )
        for decision in stored["decisions"]
    ]
    return rollout, decisions


def project_slug(connection: Connection, project_id: int) -> str:
    return str(connection.execute(text("SELECT slug FROM projects WHERE id = :p"), {"p": project_id}).scalar_one())


def put_rollout(
    connection: Connection,
    project_id: int,
    deployment_id: int,
    *,
    stage: str,
    policy: PolicyVersion,
    fallback: PolicyVersion | None,
    plan: Mapping[str, Any] | None,
) -> None:
    """Begin a rollout, or give it another plan, which starts it anew: its evidence counts from now."""
    connection.execute(
        text("""
        INSERT INTO rollouts (project_id, deployment_id, stage, policy_name, policy_version, fallback_name,
                              fallback_version, plan, frozen_at, waiting_since)
        VALUES (:p, :d, :stage, :policy_name, :policy_version, :fallback_name, :fallback_version,
                CAST(:plan AS jsonb), CASE WHEN CAST(:plan AS jsonb) IS NOT NULL THEN now() END, now())
        ON CONFLICT (project_id, deployment_id) DO UPDATE SET
            -- Only another candidate begins at another stage by a plan.
            stage = CASE WHEN (rollouts.policy_name, rollouts.policy_version)
                IS DISTINCT FROM (excluded.policy_name, excluded.policy_version)
                THEN excluded.stage ELSE rollouts.stage END,
            entered_at = CASE WHEN (rollouts.policy_name, rollouts.policy_version)
                IS DISTINCT FROM (excluded.policy_name, excluded.policy_version)
                THEN now() ELSE rollouts.entered_at END,
            -- A stop stays; another candidate is not on its fallback.
            state = CASE WHEN rollouts.state = 'fallback' AND (rollouts.policy_name, rollouts.policy_version)
                IS DISTINCT FROM (excluded.policy_name, excluded.policy_version) THEN 'go' ELSE rollouts.state END,
            policy_name = excluded.policy_name, policy_version = excluded.policy_version,
            fallback_name = excluded.fallback_name, fallback_version = excluded.fallback_version,
            plan = excluded.plan, frozen_at = excluded.frozen_at, waiting_since = now(), asked_at = NULL,
            criteria = '{}', gate = NULL, gate_at = NULL, revision = rollouts.revision + 1
        """),
        {
            "p": project_id,
            "d": deployment_id,
            "stage": stage,
            "policy_name": policy.name,
            "policy_version": policy.version,
            "fallback_name": None if fallback is None else fallback.name,
            "fallback_version": None if fallback is None else fallback.version,
            "plan": None if plan is None else json.dumps(plan),
        },
    )


def decide(connection: Connection, project_id: int, rollout: Rollout, decision: Decision) -> DecisionRow:
    """Write a decision with the state it leads to, its event on the trend and its audit entry.

    The rollout must be locked. Another stage freezes the plan anew, so its evidence counts from now.
    """
    previous = connection.execute(
        text("""
        SELECT packet_hash FROM decisions WHERE project_id = :p AND deployment_id = :d ORDER BY id DESC LIMIT 1
        """),
        {"p": project_id, "d": rollout.deployment_id},
    ).scalar()
    packet = dict(decision.packet) | {"previous_hash": previous}
    packet_hash = hash_of_packet(packet)
    written = {
        "p": project_id,
        "d": rollout.deployment_id,
        "kind": decision.kind,
        "from": rollout.stage,
        "to": decision.to_stage,
        "state": decision.state,
        "revision": rollout.revision + 1,
        "who": decision.who,
        "reason": decision.reason,
        "is_override": decision.is_override,
        "packet": json.dumps(packet),
        "packet_hash": packet_hash,
        "previous": previous,
        "plan": None if decision.plan is None else json.dumps(decision.plan),
    }
    row = connection.execute(
        text("""
        INSERT INTO decisions (project_id, deployment_id, kind, from_stage, to_stage, state, revision, who, reason,
                               is_override, packet, packet_hash, previous_hash)
        VALUES (:p, :d, :kind, :from, :to, :state, :revision, :who, :reason, :is_override,
                CAST(:packet AS json), :packet_hash, :previous) RETURNING id, at
        """),
        written,
    ).one()
    connection.execute(
        text("""
        UPDATE rollouts SET stage = :to, state = :state, revision = :revision, decided_at = now(),
               decision_id = :id, waiting_since = CASE WHEN :kind = 'drill' THEN waiting_since ELSE now() END,
               asked_at = CASE WHEN :kind = 'drill' THEN asked_at END,
               entered_at = CASE WHEN :to <> :from THEN now() ELSE entered_at END,
               frozen_at = CASE WHEN :to <> :from AND plan IS NOT NULL THEN now() ELSE frozen_at END,
               plan = coalesce(CAST(:plan AS jsonb), plan),
               criteria = CASE WHEN :to <> :from THEN '{}'::jsonb ELSE criteria END,
               gate = CASE WHEN :to <> :from THEN NULL ELSE gate END,
               gate_at = CASE WHEN :to <> :from THEN NULL ELSE gate_at END
        WHERE project_id = :p AND deployment_id = :d
        """),
        written | {"id": row.id},
    )
    _tell_of(connection, project_id, rollout, decision, row.id, row.at)
    return DecisionRow(
        row.id,
        rollout.deployment_id,
        rollout.slug,
        decision.kind,
        rollout.stage,
        decision.to_stage,
        decision.state,
        rollout.revision + 1,
        decision.who,
        decision.reason,
        decision.is_override,
        row.at,
        packet_hash,
        previous,
    )


def _tell_of(
    connection: Connection, project_id: int, rollout: Rollout, decision: Decision, number: int, at: datetime
) -> None:
    moved = "" if decision.to_stage == rollout.stage else f" from {rollout.stage} to {decision.to_stage}"
    record_event(
        connection,
        project_id,
        kind="rollout",
        at=at,
        title=f"{rollout.policy.name} {rollout.policy.version} {DECISION_VERBS[decision.kind]}{moved}",
        deployment_id=rollout.deployment_id,
        actor=decision.who,
        details={"decision": number, "reason": decision.reason},
    )
    audit(
        connection,
        project_id,
        decision.who,
        f"rollout.{decision.kind}",
        f"deployment/{rollout.slug}",
        decision=number,
        **{"from": rollout.stage, "to": decision.to_stage},
        state=decision.state,
        reason=decision.reason,
        override=decision.is_override,
    )


def date_plan(connection: Connection, project_id: int, slug: str, at: datetime) -> None:
    """Let a stage have begun earlier: for stories whose past is loaded at once."""
    connection.execute(
        text("""
        UPDATE rollouts r SET entered_at = :at, frozen_at = :at, waiting_since = :at, gate = NULL, gate_at = NULL
        FROM deployments d
        WHERE r.project_id = :p AND d.project_id = :p AND d.id = r.deployment_id AND d.slug = :slug
        """),
        {"p": project_id, "slug": slug, "at": at},
    )


def store_gate(connection: Connection, project_id: int, deployment_id: int, gate: Mapping[str, Any]) -> None:
    """The gate as the watch found it, for lists; whoever decides has it judged anew."""
    connection.execute(
        text("""
        UPDATE rollouts SET gate = CAST(:gate AS jsonb), gate_at = now()
        WHERE project_id = :p AND deployment_id = :d
        """),
        {"p": project_id, "d": deployment_id, "gate": json.dumps(gate)},
    )


def rollouts_to_judge(connection: Connection, project_id: int) -> list[Rollout]:
    """Those whose stored gate is behind: episodes came since, or the clock alone has moved for a while."""
    rows = connection.execute(
        text(f"""
        SELECT {_COLUMNS} {_FROM} AND r.plan IS NOT NULL AND (
            r.gate_at IS NULL OR r.gate_at < now() - interval '10 minutes' OR EXISTS (
                SELECT 1 FROM episodes e WHERE e.project_id = r.project_id AND e.deployment_id = r.deployment_id
                  AND e.started_at > r.gate_at - interval '1 day' AND e.received_at > r.gate_at))
        ORDER BY r.gate_at NULLS FIRST, d.slug FOR UPDATE OF r SKIP LOCKED
        """),  # noqa: S608
        {"p": project_id},
    )
    return [_rollout(row) for row in rows]


def mark_asked(connection: Connection, project_id: int, deployment_id: int) -> None:
    connection.execute(
        text("UPDATE rollouts SET asked_at = now() WHERE project_id = :p AND deployment_id = :d"),
        {"p": project_id, "d": deployment_id},
    )


def projects_with_rollouts(connection: Connection) -> list[int]:
    return list(
        connection.scalars(text("SELECT DISTINCT project_id FROM rollouts WHERE plan IS NOT NULL ORDER BY 1"))
    )


def store_drill(connection: Connection, project_id: int, deployment_id: int, seconds: float) -> None:
    """How long the last drill took until every robot that asks knew."""
    connection.execute(
        text("""
        UPDATE rollouts SET drill_at = now(), drill_seconds = :seconds
        WHERE project_id = :p AND deployment_id = :d
        """),
        {"p": project_id, "d": deployment_id, "seconds": seconds},
    )


def decisions_page(
    connection: Connection, project_id: int, *, deployment: str | None, before_id: int | None, limit: int
) -> list[DecisionRow]:
    """Newest first."""
    rows = connection.execute(
        text("""
        SELECT c.id, c.deployment_id, d.slug, c.kind, c.from_stage, c.to_stage, c.state, c.revision, c.who,
               c.reason, c.is_override, c.at, c.packet_hash, c.previous_hash
        FROM decisions c JOIN deployments d ON d.project_id = c.project_id AND d.id = c.deployment_id
        WHERE c.project_id = :p AND (CAST(:slug AS text) IS NULL OR d.slug = :slug)
          AND (CAST(:before AS int) IS NULL OR c.id < :before)
        ORDER BY c.id DESC LIMIT :limit
        """),
        {"p": project_id, "slug": deployment, "before": before_id, "limit": limit},
    )
    return [DecisionRow(*row) for row in rows]


def find_packet(connection: Connection, project_id: int, decision_id: int) -> tuple[dict[str, Any], str] | None:
    """The packet of a decision and its hash."""
    row = connection.execute(
        text("SELECT packet, packet_hash FROM decisions WHERE project_id = :p AND id = :id"),
        {"p": project_id, "id": decision_id},
    ).one_or_none()
    return None if row is None else (row.packet, row.packet_hash)


def chain_of(connection: Connection, project_id: int) -> list[tuple[DecisionRow, dict[str, Any]]]:
    """Every decision of a project with its packet, oldest first."""
    rows = connection.execute(
        text("""
        SELECT c.id, c.deployment_id, d.slug, c.kind, c.from_stage, c.to_stage, c.state, c.revision, c.who,
               c.reason, c.is_override, c.at, c.packet_hash, c.previous_hash, c.packet
        FROM decisions c JOIN deployments d ON d.project_id = c.project_id AND d.id = c.deployment_id
        WHERE c.project_id = :p ORDER BY c.id
        """),
        {"p": project_id},
    )
    return [(DecisionRow(*row[:-1]), row[-1]) for row in rows]


def hash_of_packet(packet: Mapping[str, Any]) -> str:
    """Over sorted names without spaces, so that whoever has the JSON can compute it."""
    written = json.dumps(packet, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(written.encode()).hexdigest()


def _rollout(row: Any) -> Rollout:
    return _named_rollout(dict(row._mapping))


def _named_rollout(named: dict[str, Any]) -> Rollout:
    candidate = PolicyVersion(named.pop("policy_name"), named.pop("policy_version"))
    name, version = named.pop("fallback_name"), named.pop("fallback_version")
    return Rollout(policy=candidate, fallback=None if name is None else PolicyVersion(name, version), **named)
