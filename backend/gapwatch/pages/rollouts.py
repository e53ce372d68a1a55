"""`/rollouts`: every deployment by stage, how its gate stands, what is missing, and what is overdue."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from gapwatch.errors import Invalid, NotFound
from gapwatch.filters import parse_happened
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.sentences.rollout import gate_sentence, list_headline, missing_words
from gapwatch.rollouts import deciding
from gapwatch.rollouts.deciding import Decider
from gapwatch.rollouts.overview import due_at, next_decision, overdue_words
from gapwatch.rollouts.packet_html import packet_html
from gapwatch.rollouts.plan import STAGES, PlanBody, next_stage
from gapwatch.store.alerting.watch_queue import now
from gapwatch.store.rollout.rollouts import (
    ListedDeployment,
    PolicyVersion,
    Rollout,
    find_packet,
    find_rollout,
    listed_deployments,
)

MOST = 5000
LONGEST_REASON = 2000
ACTS = ("promote", "hold", "rollback", "stop", "resume")


@dataclass(frozen=True)
class RolloutEntry:
    slug: str
    site: str | None
    stage: str
    state: str | None
    policy: str | None
    verdict: str | None
    gate: str
    missing: list[str]
    next_decision: str
    due_at: datetime | None
    overdue: str | None
    href: str


@dataclass(frozen=True)
class RolloutsPage:
    entries: list[RolloutEntry]
    stages: dict[str, int]
    headline: str
    asked_at: datetime

    def of_stage(self, stage: str) -> list[RolloutEntry]:
        return [entry for entry in self.entries if entry.stage == stage]


class RolloutHandlers:
    def __init__(self, link_base: str, nudge: Callable[[str], None]) -> None:
        self._link_base = link_base
        self._nudge = nudge

    def show(self, visit: Visit) -> View:
        at = now(visit.transaction)
        listed = listed_deployments(visit.transaction, visit.project_id, MOST)
        entries = sorted((_entry(visit, one, at) for one in listed), key=_most_urgent_first)
        with_plan = [entry for entry in entries if entry.state is not None]
        waiting = sum(entry.verdict == "pass" and entry.next_decision.startswith("promote") for entry in with_plan)
        overdue = sum(entry.overdue is not None for entry in entries)
        stages = {stage: sum(entry.stage == stage for entry in entries) for stage in (*STAGES, "not said")}
        page = RolloutsPage(
            entries=entries,
            stages={stage: count for stage, count in stages.items() if count or stage in STAGES},
            headline=list_headline(waiting, overdue, len(entries)),
            asked_at=at,
        )
        return View("rollouts.html", page)

    def act(self, visit: Visit) -> Response:
        """Begin a rollout, change its plan, or decide."""
        slug, act = visit.form.line("deployment", 200), visit.form.one("act")
        decider = Decider(visit.actor, visit.project.role, self._link_base)
        if act == "plan":
            _put_plan(visit, slug, decider)
        elif act in ACTS:
            _decide(visit, slug, act, decider)
            self._nudge("send")
        else:
            raise Invalid("Choose what to decide.")
        return RedirectResponse(f"{visit.frame.links.to('deployments', slug)}#rollout", 303)

    def show_packet(self, visit: Visit) -> Response:
        text = visit.path("decision_id")
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0  # noqa: PLR2004
        found = find_packet(visit.transaction, visit.project_id, number)
        if found is None:
            raise NotFound("There is no decision with this id.")
        packet, packet_hash = found
        headers = {"Gapwatch-Packet-Hash": packet_hash}
        if visit.request.query_params.get("format") == "json":
            return JSONResponse(packet, headers=headers)
        headers["Content-Disposition"] = f'attachment; filename="gapwatch-decision-{number}.html"'
        return HTMLResponse(packet_html(packet, packet_hash), headers=headers)


def is_plan(request: Request, form: Any) -> bool:
    """A plan's power card is simulated."""
    return bool(form.one("act") == "plan")


def _entry(visit: Visit, one: ListedDeployment, at: datetime) -> RolloutEntry:
    rollout = one.rollout
    href = f"{visit.frame.links.to('deployments', one.slug)}#rollout"
    if rollout is None:
        return RolloutEntry(
            one.slug,
            one.site,
            one.stage or "not said",
            None,
            None,
            None,
            "No rollout was begun.",
            [],
            "give it a plan",
            None,
            None,
            href,
        )
    gate = rollout.gate
    verdict = None if gate is None else str(gate["verdict"])
    return RolloutEntry(
        slug=one.slug,
        site=one.site,
        stage=rollout.stage,
        state=rollout.state,
        policy=f"{rollout.policy.name} {rollout.policy.version}",
        verdict=verdict,
        gate=gate_sentence(rollout.stage, next_stage(rollout.stage), gate),
        missing=[] if gate is None else missing_words(gate),
        next_decision=next_decision(rollout, verdict),
        due_at=due_at(rollout),
        overdue=overdue_words(rollout, at),
        href=href,
    )


def _most_urgent_first(entry: RolloutEntry) -> tuple[bool, bool, bool, bool, str]:
    return (
        entry.overdue is None,
        entry.state != "stop",
        entry.verdict != "fail",
        entry.verdict != "pass",
        entry.slug,
    )


def _decide(visit: Visit, slug: str, act: str, decider: Decider) -> None:
    reason = visit.form.one("reason").strip()[:LONGEST_REASON]
    if not reason:
        raise Invalid("Say why: others will read it later.")
    to = visit.form.one("to")
    deciding.decide(
        visit.transaction,
        visit.project_id,
        slug,
        act,
        reason=reason,
        decider=decider,
        to=to if to in STAGES else None,
        override=visit.form.one("override") == "yes",
        seen=seen if (seen := visit.form.one("from")) in STAGES else None,
    )


def _put_plan(visit: Visit, slug: str, decider: Decider) -> None:
    form = visit.form
    criteria = form.one("criteria").strip()
    known = find_rollout(visit.transaction, visit.project_id, slug)
    try:
        body: dict[str, Any] = {
            "margin": _number(form.line("margin") or "10", "the margin") / 100,
            "alpha": _number(form.line("alpha") or "5", "α") / 100,
            "budget": {name: _budget(visit, name, known) for name in ("days", "episodes")},
            "retention": "standard" if known is None or known.plan is None else known.plan["retention"],
            "criteria": json.loads(criteria) if criteria else [],
        }
        if form.line("fallback_version"):
            name = form.line("fallback_name", 128) or form.line("policy_name", 128)
            body["fallback"] = {"name": name, "version": form.line("fallback_version", 128)}
        plan = PlanBody.model_validate(body)
    except json.JSONDecodeError:
        raise Invalid("The criteria are not JSON; leave the field empty for the presets.") from None
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        place = " › ".join(str(part) for part in fault["loc"])
        raise Invalid(f"The plan is not valid: {place}: {fault['msg']}.") from None
    stage, policy = form.one("stage"), form.line("policy_version", 128)
    deciding.put_plan(
        visit.transaction,
        visit.project_id,
        slug,
        plan,
        stage=stage if stage in STAGES else None,
        policy=PolicyVersion(form.line("policy_name", 128), policy) if policy else None,
        expires_at=_moment(form.moment("expires_at")),
        decider=decider,
    )


def _budget(visit: Visit, name: str, known: Rollout | None) -> dict[str, int] | int | None:
    """What the form says of the stage; of the others what the plan in force says."""
    given = visit.form.line(name)
    value = int(_number(given, f"the {name}")) if given else None
    if known is None or known.plan is None:
        return value
    others = {stage: kept for stage, kept in known.plan["budget"][name].items() if stage != known.stage}
    return others | ({} if value is None else {known.stage: value})


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return parse_happened(text, datetime.now(UTC), deciding.FARTHEST_EXPIRY)
    except ValueError as error:
        raise Invalid(f"{str(error).capitalize()}.") from None


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Invalid(f"Give {what} as a number.") from None
