"""`/fixes`: every fix with its expectation and outcome, and the team's table of what its fixes brought."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from gapwatch.closing.closures import FixAnswer, answer_fixes
from gapwatch.closing.fix import FIX_KINDS, FixBody
from gapwatch.closing.fix_table import FixTableRow, fix_table
from gapwatch.errors import Invalid
from gapwatch.filters import parse_happened
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.sentences.fix import (
    control_words,
    cost_words,
    fixes_headline,
    outcome_sentence,
    periods_words,
    where_words,
)
from gapwatch.store.alerting.events import record_event
from gapwatch.store.alerting.watch_queue import now
from gapwatch.store.read.directory import find_deployment
from gapwatch.taxonomy import BY_ID, CATEGORIES

LONGEST_TITLE = 200


@dataclass(frozen=True)
class FixEntry:
    """A fix, and what is said of it."""

    fix: FixAnswer
    outcome: str
    where: str
    cost: str
    control: str
    periods: str


@dataclass(frozen=True)
class FixesPage:
    headline: str
    entries: list[FixEntry]
    table: list[FixTableRow]
    kinds: dict[str, str]
    categories: dict[str, str]
    asked_at: datetime


def entry_of(fix: FixAnswer) -> FixEntry:
    return FixEntry(
        fix, outcome_sentence(fix), where_words(fix), cost_words(fix), control_words(fix), periods_words(fix)
    )


def show_fixes(visit: Visit) -> View:
    at = now(visit.transaction)
    fixes = answer_fixes(visit.transaction, visit.project_id, at)
    page = FixesPage(
        fixes_headline(fixes),
        [entry_of(fix) for fix in fixes],
        fix_table(fixes),
        FIX_KINDS,
        {name: BY_ID[name].name for name in CATEGORIES},
        at,
    )
    return View("fixes.html", page)


def record_fix(visit: Visit) -> Response:
    """Write a fix down, with what it is expected to bring."""
    form = visit.form
    title, slug = form.line("title", LONGEST_TITLE), form.line("deployment", 500)
    if not title:
        raise Invalid("Say what the fix is.")
    try:
        at = parse_happened(form.moment("at") or "0h", datetime.now(UTC))
    except ValueError as error:
        raise Invalid(f"{str(error).capitalize()}.") from None
    given: dict[str, Any] = {"kind": form.one("kind"), "category": form.one("category")}
    for name in ("from_version", "robot_hours", "demonstrations", "expected_points"):
        if form.line(name):
            given[name] = form.line(name)
    robots = form.line("robots", 2000)
    if robots:
        given["robots"] = [name.strip() for name in robots.split(",") if name.strip()]
    try:
        fix = FixBody.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise Invalid(f"{' › '.join(str(part) for part in first['loc'])}: {first['msg']}.") from None
    deployment = find_deployment(visit.transaction, visit.project_id, slug) if slug else None
    record_event(
        visit.transaction,
        visit.project_id,
        kind="mitigation",
        at=at,
        title=title,
        deployment_id=None if deployment is None else deployment.id,
        actor=visit.actor,
        details={"robots": fix.robots} if fix.robots else {},
        awaited=slug if slug and deployment is None else None,
        fix=fix.stored(),
    )
    return RedirectResponse(visit.frame.links.to("fixes"), 303)
