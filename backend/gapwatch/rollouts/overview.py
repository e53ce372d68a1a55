"""What is shown of a rollout: for the API, the page of its deployment and the list of all."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, cast

from gapwatch.notation import date_words
from gapwatch.rollouts.packets import utc
from gapwatch.rollouts.plan import DRILL_DAYS, WATCH, Stage, budget_days, next_stage, union_words
from gapwatch.store.rollout.rollouts import DecisionRow, Rollout


def rollout_json(rollout: Rollout, gate: dict[str, Any] | None, now: datetime) -> dict[str, Any]:
    plan = rollout.plan
    return {
        "deployment": rollout.slug,
        "stage": rollout.stage,
        "state": rollout.state,
        "entered_at": utc(rollout.entered_at),
        "policy": vars(rollout.policy),
        "driver": None if rollout.driver is None else vars(rollout.driver),
        "plan": None if plan is None else {name: value for name, value in plan.items() if name != "power"},
        "frozen_at": None if rollout.frozen_at is None else utc(rollout.frozen_at),
        "power": [] if plan is None else plan.get("power", []),
        "union": None if plan is None else union_words(plan, rollout.stage),
        "gate": gate,
        "watch": watch_json(rollout, now),
        "overdue": overdue_words(rollout, now),
        "due_at": None if (due := due_at(rollout)) is None else utc(due),
        "drill": drill_json(rollout, now),
        "decided_at": utc(rollout.decided_at),
        "decision": rollout.decision_id,
        "revision": rollout.revision,
    }


def due_at(rollout: Rollout) -> datetime | None:
    """When a person has to decide: the budget of the stage, or the end of the plan if that is earlier."""
    plan = rollout.plan
    if plan is None or rollout.waiting_since is None:
        return None
    due = rollout.waiting_since + timedelta(days=budget_days(plan, cast(Stage, rollout.stage)))
    return due if plan["expires_at"] is None else min(due, datetime.fromisoformat(plan["expires_at"]))


def overdue_words(rollout: Rollout, now: datetime) -> str | None:
    """Why a person is asked; None while there is time, and after a watch that ended well."""
    due, plan = due_at(rollout), rollout.plan
    if due is None or plan is None or now < due:
        return None
    if rollout.stage == "full" and rollout.gate is not None and rollout.gate.get("verdict") == "pass":
        return None
    if plan["expires_at"] is not None and due == datetime.fromisoformat(plan["expires_at"]):
        return f"the plan expired on {date_words(due, 0)}"
    days, over = budget_days(plan, cast(Stage, rollout.stage)), (now - due).days
    if not over:
        return f"its budget of {days} days has ended"
    return f"{over} day{'' if over == 1 else 's'} over its budget of {days}"


def watch_json(rollout: Rollout, now: datetime) -> dict[str, Any] | None:
    """The watch of a full deployment, which relaxes by itself; None in other stages and when it is over."""
    if rollout.stage != "full" or rollout.frozen_at is None:
        return None
    age = (now - rollout.frozen_at).days
    alpha = next((chance for days, chance in WATCH if age < days), None)
    until = rollout.frozen_at + timedelta(days=WATCH[-1][0])
    return {"day": age, "of": WATCH[-1][0], "until": utc(until), "alpha": alpha, "over": alpha is None}


def drill_json(rollout: Rollout, now: datetime) -> dict[str, Any] | None:
    if rollout.drill_at is None:
        return None
    is_old = now - rollout.drill_at > timedelta(days=DRILL_DAYS)
    return {"at": utc(rollout.drill_at), "seconds": rollout.drill_seconds, "older_than_90_days": is_old}


def decision_json(row: DecisionRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "deployment": row.deployment,
        "kind": row.kind,
        "from": row.from_stage,
        "to": row.to_stage,
        "state": row.state,
        "who": row.who,
        "reason": row.reason,
        "override": row.is_override,
        "at": utc(row.at),
        "packet": f"/api/v1/decisions/{row.id}/packet",
        "packet_hash": row.packet_hash,
        "previous_hash": row.previous_hash,
    }


def next_decision(rollout: Rollout, verdict: str | None) -> str:
    """What a person should do next, in words."""
    if rollout.state == "stop":
        return "resume, or roll back"
    if rollout.plan is None:
        return "give it a plan"
    if rollout.state == "fallback":
        return "resume when it is mended, or stop"
    if verdict == "fail":
        return "roll back, or hold and change the plan"
    above = next_stage(rollout.stage)
    if verdict == "pass":
        return f"promote to {above}" if above else "nothing: the watch passed"
    return "wait for the evidence"
