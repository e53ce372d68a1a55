"""Deciding: plans begun and changed; promoted, held, rolled back, stopped and resumed.

Each is one step of the caller's transaction and ends in a row, an event on the trend, an audit entry, deliveries
and a packet. Promotion needs a passed gate, or an admin who says why; the way back needs neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from gapwatch.errors import Conflict, Fault, Forbidden, Invalid, NotFound
from gapwatch.rollouts import freezing, gate, news
from gapwatch.rollouts.packets import build_packet
from gapwatch.rollouts.plan import STAGES, PlanBody, Stage, freeze, is_expired, next_stage
from gapwatch.rollouts.stage_record import read_record
from gapwatch.store.alerting.watch_queue import now
from gapwatch.store.core.audit import audit
from gapwatch.store.core.database import Connection
from gapwatch.store.read.directory import find_deployment
from gapwatch.store.rollout import rollouts
from gapwatch.store.rollout.evidence import MOST_EPISODES, MOST_IN_HASTE
from gapwatch.store.rollout.rollouts import Decision, DecisionRow, PolicyVersion, Rollout

# An override is read by others later: a word is no reason.
SHORTEST_OVERRIDE = 10
FARTHEST_EXPIRY = timedelta(days=732)


@dataclass(frozen=True)
class Decider:
    """Who decides, what they may do, and where links in messages lead."""

    who: str
    role: str
    link_base: str


@dataclass(frozen=True)
class PlanPut:
    """What came of sending a plan. `restarted`: there was another one, and its evidence counts no more."""

    rollout: Rollout
    restarted: bool
    unchanged: bool = False


def find(connection: Connection, project_id: int, slug: str) -> Rollout:
    """NotFound where there is no deployment, or nobody began a rollout."""
    rollout = None if "\0" in slug else rollouts.find_rollout(connection, project_id, slug)
    if rollout is not None:
        return rollout
    if "\0" in slug or find_deployment(connection, project_id, slug) is None:
        raise NotFound("There is no deployment with this name.")
    raise NotFound('This deployment has no rollout yet; begin one with PUT, a plan of presets is `{"plan": {}}`.')


def put_plan(
    connection: Connection,
    project_id: int,
    slug: str,
    body: PlanBody,
    *,
    stage: Stage | None,
    policy: PolicyVersion | None,
    expires_at: Any,
    decider: Decider,
) -> PlanPut:
    """Begin a rollout, or change its plan, which starts the stage anew."""
    described = None if "\0" in slug else find_deployment(connection, project_id, slug)
    if described is None:
        raise NotFound("There is no deployment with this name.")
    known = rollouts.lock_rollout(connection, project_id, slug)
    candidate = policy or (
        known.policy if known is not None else PolicyVersion(described.policy, described.version)
    )
    fallback = None if body.fallback is None else PolicyVersion(body.fallback.name, body.fallback.version)
    current = _begins_at(known, candidate, fallback, stage, cast(Stage, described.stage or "offline"), decider)
    if fallback == candidate:
        message = "The fallback is what drives when the candidate may not; name another version."
        raise Invalid(message, errors=[Fault(pointer="/body/plan/fallback", code="same-policy", message=message)])
    try:
        written = freeze(body, current, expires_at)
    except ValueError as error:
        message = str(error)
        raise Invalid(
            message, errors=[Fault(pointer="/body/plan/criteria", code="same-id", message=message)]
        ) from None
    if (
        known is not None
        and known.plan is not None
        and _is_same(known.plan, written)
        and known.policy == candidate
    ):
        return PlanPut(known, restarted=False, unchanged=True)
    plan = freezing.complete(connection, project_id, described.id, written, current, candidate)
    freezing.refuse_undecidable(plan, current)
    rollouts.put_rollout(
        connection, project_id, described.id, stage=current, policy=candidate, fallback=fallback, plan=plan
    )
    restarted = known is not None and known.plan is not None
    audit(
        connection,
        project_id,
        decider.who,
        "rollout.plan",
        f"deployment/{slug}",
        stage=current,
        plan=written,
        restarted=restarted,
    )
    return PlanPut(find(connection, project_id, slug), restarted=restarted)


def _begins_at(
    known: Rollout | None,
    candidate: PolicyVersion,
    fallback: PolicyVersion | None,
    asked: Stage | None,
    newest: Stage,
    decider: Decider,
) -> Stage:
    """The stage that a plan begins. Nothing comes to drive by a plan: that takes a decision, or an admin."""
    if known is None:
        begins = asked or newest
        if STAGES.index(begins) > STAGES.index(newest) and decider.role != "admin":
            raise Forbidden(f"Its episodes are of stage {newest}; only an admin may begin it at {begins}.")
        return begins
    stage = cast(Stage, known.stage)
    if candidate == known.policy:
        if asked is not None and asked != stage:
            message = f"The rollout is at {stage}; stages change by promote and rollback, not by a plan."
            raise Conflict(
                message, errors=[Fault(pointer="/body/stage", code="stage-by-decision", message=message)]
            )
        return stage
    begins = asked or "offline"
    if begins in rollouts.DRIVING_STAGES:
        message = f"{candidate.name} {candidate.version} is another candidate: it begins at offline or shadow."
        raise Conflict(message, errors=[Fault(pointer="/body/stage", code="another-candidate", message=message)])
    if fallback is None:
        message = "Name the fallback: it drives until the new candidate is promoted to supervised."
        raise Invalid(message, errors=[Fault(pointer="/body/plan/fallback", code="missing", message=message)])
    return begins


def _is_same(stored: Mapping[str, Any], written: Mapping[str, Any]) -> bool:
    return all(stored.get(name) == value for name, value in written.items())


def decide(
    connection: Connection,
    project_id: int,
    slug: str,
    kind: str,
    *,
    reason: str,
    decider: Decider,
    to: Stage | None = None,
    override: bool = False,
    seen: Stage | None = None,
) -> DecisionRow:
    """`seen`: the stage that whoever decides sees. Two who press at once promote, or roll back, one stage."""
    rollout = None if "\0" in slug else rollouts.lock_rollout(connection, project_id, slug)
    if rollout is None:
        find(connection, project_id, slug)
        raise AssertionError("unreachable")
    if seen is not None and seen != rollout.stage and kind in ("promote", "rollback"):
        raise Conflict(f"Somebody decided meanwhile: it is at {rollout.stage} now, not at {seen}. Look again.")
    to_stage, state = _target(rollout, kind, to)
    most = MOST_EPISODES if kind in ("promote", "hold") else MOST_IN_HASTE
    record = None if rollout.plan is None else read_record(connection, project_id, rollout, most)
    judged = None if record is None else gate.judge(record)
    is_passed = judged is not None and judged.verdict == "pass" and not is_expired(rollout.plan, now(connection))
    is_override = kind == "promote" and not is_passed
    if is_override:
        _refuse_override(judged, reason, decider, asked=override)
    plan = None
    if to_stage != rollout.stage and rollout.plan is not None:
        plan = freezing.complete(
            connection, project_id, rollout.deployment_id, rollout.plan, to_stage, rollout.policy
        )
        if kind == "promote" and not override:
            freezing.refuse_undecidable(plan, to_stage)
    packet = build_packet(
        record,
        rollout,
        project=rollouts.project_slug(connection, project_id),
        kind=kind,
        to_stage=to_stage,
        state=state,
        who=decider.who,
        role=decider.role,
        reason=reason,
        at=now(connection),
        is_override=is_override,
        gate=judged,
    )
    written = Decision(kind, to_stage, state, decider.who, reason, packet, is_override, plan)
    row = rollouts.decide(connection, project_id, rollout, written)
    words = "no plan" if judged is None else judged.verdict
    news.tell_decision(connection, project_id, rollout, row, words, decider.link_base)
    return row


def _target(rollout: Rollout, kind: str, to: Stage | None) -> tuple[Stage, str]:
    """The stage and state that a decision leads to; Conflict where it makes no sense."""
    stage = cast(Stage, rollout.stage)
    if kind == "promote":
        return _promoted(rollout, to)
    if kind == "rollback":
        below = STAGES[: STAGES.index(stage)]
        if to is not None and to not in below and to != stage:
            raise _bad_target(f"A rollback from {stage} leads to {' or '.join((*below, stage))}.")
        return to or (below[-1] if below else stage), "fallback"
    if to is not None and to != stage:
        raise _bad_target(f"A {kind} leaves the stage as it is.")
    if kind == "resume" and rollout.state == "go":
        raise Conflict("There is nothing to resume: it is neither stopped nor on its fallback.")
    return stage, {"stop": "stop", "resume": "go"}.get(kind, rollout.state)


def _promoted(rollout: Rollout, to: Stage | None) -> tuple[Stage, str]:
    above = next_stage(rollout.stage)
    if above is None:
        raise Conflict("It is at full already; there is no stage above it.")
    if to is not None and to != above:
        raise _bad_target(f"From {rollout.stage} the next stage is {above}; stages are not skipped.")
    if rollout.state == "stop":
        raise Conflict("It is stopped; resume it first, then promote.")
    return above, "go"


def _refuse_override(judged: gate.GateAnswer | None, reason: str, decider: Decider, *, asked: bool) -> None:
    if not asked:
        words = "there is no plan" if judged is None else f"{judged.verdict}; {judged.missing}"
        if judged is not None and judged.verdict == "pass":
            words = "its plan has expired; send it anew, which starts the stage anew"
        raise Conflict(
            f"The gate is not passed ({words}). Wait for it, or have an admin override it with a written reason "
            "(`override`: true)."
        )
    if decider.role != "admin":
        raise Forbidden("Only an admin may promote past a gate that is not passed.")
    if len(reason.strip()) < SHORTEST_OVERRIDE:
        message = f"An override needs a written reason of at least {SHORTEST_OVERRIDE} characters."
        raise Invalid(message, errors=[Fault(pointer="/body/reason", code="reason-too-short", message=message)])


def _bad_target(message: str) -> Invalid:
    return Invalid(message, errors=[Fault(pointer="/body/to", code="bad-stage", message=message)])
