"""Evidence packets: everything that a decision rested on, written so that each figure can be computed again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from gapwatch.notation import count
from gapwatch.rollouts.gate import GateAnswer
from gapwatch.rollouts.kinds import e_path
from gapwatch.rollouts.mix import compared
from gapwatch.rollouts.plan import DRILL_DAYS, TESTED, is_expired, of_stage
from gapwatch.rollouts.stage_record import StageRecord, cells_of, meant_by, successes
from gapwatch.statistics.gates.limits import relative_change
from gapwatch.store.rollout.evidence import QUERY, EvidenceRow
from gapwatch.store.rollout.rollouts import Rollout

VERSION = 1
MOST_CELLS = 200


def build_packet(
    record: StageRecord | None,
    rollout: Rollout,
    *,
    project: str,
    kind: str,
    to_stage: str,
    state: str,
    who: str,
    role: str,
    reason: str,
    at: datetime,
    is_override: bool,
    gate: GateAnswer | None,
) -> dict[str, Any]:
    """The packet of a decision. Without a plan there is nothing to judge."""
    packet: dict[str, Any] = {
        "version": VERSION,
        "project": project,
        "deployment": rollout.slug,
        "decision": {
            "kind": kind,
            "from": rollout.stage,
            "to": to_stage,
            "state": state,
            "reason": reason,
            "at": utc(at),
            "revision": rollout.revision + 1,
        },
        "approved_by": {"who": who, "role": role, "override": is_override},
        "policy": vars(rollout.policy),
        "fallback": None if rollout.fallback is None else vars(rollout.fallback),
        "drill": _drill(rollout, at),
        "plan": rollout.plan,
        "frozen_at": None if rollout.frozen_at is None else utc(rollout.frozen_at),
        "entered_at": utc(rollout.entered_at),
        "retention": "standard" if rollout.plan is None else rollout.plan["retention"],
    }
    if record is None or gate is None:
        return packet | {"claims": [], "gate": None, "deviations": ["There was no plan."]}
    return packet | rests_on(record, gate, at, is_override=is_override)


def rests_on(record: StageRecord, gate: GateAnswer, at: datetime, *, is_override: bool) -> dict[str, Any]:
    """Every figure of a packet, from the record alone: proving it computes them again."""
    criteria = of_stage(record.plan, record.rollout.stage)
    return {
        "claims": [
            {"id": found.id, "claim": found.claim, "verdict": found.verdict, "wanted": found.wanted}
            for found in gate.criteria
        ],
        "gate": gate.as_json(),
        "paths": {
            criterion["id"]: path
            for criterion in criteria
            if criterion["kind"] in TESTED and (path := e_path(record, criterion))
        },
        "relative_drop": _relative(record),
        "evidence": {
            "query": " ".join(QUERY.split()),
            "parameters": {
                "stage": record.rollout.stage,
                "policy": record.rollout.policy.name,
                "version": record.rollout.policy.version,
                "since": utc(meant_by(record.rollout).since),
                "until": utc(at),
                "last_seq": max((row.seq for row in record.rows), default=0),
                "limit": record.most,
            },
            "rows": len(record.rows),
            "row_set_hash": row_set_hash(record.rows),
            "around": _around(record),
        },
        "versions": {
            "policy": vars(record.rollout.policy),
            "simulator": record.contracts.simulator,
            "contract": {"sim": record.contracts.sim, "real": record.contracts.real},
            "calibration": record.contracts.calibrations,
        },
        "coverage": [
            _coverage(record, criterion) for criterion in criteria if criterion["kind"] == "cells_covered"
        ],
        "interventions": _interventions(record.rows),
        "deviations": _deviations(record, gate, is_override=is_override),
    }


def row_set_hash(rows: Sequence[EvidenceRow]) -> str:
    """Over id, revision and content of every episode, in the order of arrival."""
    listed = "\n".join(f"{row.id} {row.revision} {row.content_hash}" for row in rows)
    return hashlib.sha256(listed.encode()).hexdigest()


def _around(record: StageRecord) -> dict[str, Any]:
    around = record.around
    return {
        "now": utc(around.now),
        "offline_episodes": around.offline_episodes,
        "open_alerts": around.open_alerts,
        "changed_at": None if around.changed_at is None else utc(around.changed_at),
        "lately": around.lately,
        "episodes_a_day": around.episodes_a_day,
        "other_versions": around.other_versions,
        "other_stages": around.other_stages,
    }


def _drill(rollout: Rollout, at: datetime) -> dict[str, Any] | None:
    if rollout.drill_at is None:
        return None
    is_old = at - rollout.drill_at > timedelta(days=DRILL_DAYS)
    return {"at": utc(rollout.drill_at), "seconds": rollout.drill_seconds, "older_than_90_days": is_old}


def _relative(record: StageRecord) -> dict[str, Any] | None:
    """The share of the reference's success that is lost, with an interval that holds at every look."""
    against, n = compared(record), len(record.rows)
    if against is None or not against.reference.successes or not n or record.rollout.stage == "shadow":
        return None
    reference = (against.reference.successes, against.reference.n)
    value, low, high = relative_change(reference, (float(successes(record.rows).sum()), n))
    return {"value": -value, "interval": [-high, -low], "method": "asymptotic confidence sequence, delta method"}


def _coverage(record: StageRecord, criterion: dict[str, Any]) -> dict[str, Any]:
    cells, needed = cells_of(record, criterion), int(criterion.get("episodes", 1))
    uncovered = [cell | {"episodes": count} for cell, count in cells if count < needed]
    return {
        "id": criterion["id"],
        "planned": len(cells),
        "covered": len(cells) - len(uncovered),
        "episodes_wanted": needed,
        "uncovered": uncovered[:MOST_CELLS],
    }


def _interventions(rows: Sequence[EvidenceRow]) -> dict[str, Any]:
    return {
        name: {
            "episodes": sum((getattr(row, name) or 0) > 0 for row in rows),
            "total": sum(getattr(row, name) or 0 for row in rows),
            "not_said": sum(getattr(row, name) is None for row in rows),
        }
        for name in ("interventions", "overrides", "violations")
    } | {"undecided": sum(row.outcome in ("aborted", "abandoned") for row in rows)}


def _deviations(record: StageRecord, gate: GateAnswer, *, is_override: bool) -> list[str]:
    """What did not go as planned, each in a sentence."""
    found = []
    frozen = record.rollout.frozen_at
    if is_override:
        found.append("The gate was not passed; an admin decided nevertheless.")
    if is_expired(record.plan, record.around.now):
        found.append("The plan had expired.")
    before = sum(frozen is not None and row.started_at < frozen for row in record.rows)
    if before:
        found.append(f"{before} of the episodes that count began before the plan was frozen and arrived after it.")
    if record.around.other_versions:
        found.append(
            f"{record.around.other_versions} episodes of other policy versions were run meanwhile; none counts."
        )
    if record.around.other_stages:
        found.append(
            f"{record.around.other_stages} episodes of this version were sent with another stage; none counts."
        )
    if len(record.rows) >= record.most:
        found.append(f"Of more episodes than {count(record.most)} only so many were judged.")
    unknown = [f"{criterion.id} ({criterion.unknown})" for criterion in gate.criteria if criterion.unknown]
    if unknown:
        found.append(f"Some episodes do not say what is asked: {', '.join(unknown)}; they count as bad.")
    return found


def utc(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
