"""`/settings/rules`: when somebody must know; made, changed, switched off, and tried on what is stored."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast, get_args

from pydantic import TypeAdapter, ValidationError
from starlette.responses import RedirectResponse, Response

from gapwatch.answers.rule_preview import try_rule
from gapwatch.errors import NotFound
from gapwatch.pages.forms import Form
from gapwatch.pages.frame import View, Visit
from gapwatch.store.alerting import alert_settings, detectors
from gapwatch.watching.kinds import DEFAULT_RULES, RULE_KINDS, read_params
from gapwatch.watching.matchers import Match
from gapwatch.watching.rules import Rule, Severity, WebAddress

LONGEST_NAME = 128
PREVIEW_DAYS = 90
DEFAULT_NAMES = {rule.name for rule in DEFAULT_RULES}
_WEB_ADDRESS: TypeAdapter[str] = TypeAdapter(WebAddress)
MATCHED = ("deployment", "policy", "task", "site", "stage")


@dataclass(frozen=True)
class RuleEntry:
    name: str
    kind: str
    about: str
    limits: list[str]
    params: dict[str, Any]
    match: dict[str, list[str]]
    severity: str
    channels: list[str]
    dry_run: bool
    enabled: bool
    runbook_url: str | None
    is_default: bool
    # Whether the project has its own, in the place of a default one or beside them.
    is_own: bool


@dataclass(frozen=True)
class RuleDraft:
    """What stands in the form."""

    name: str
    kind: str
    severity: str
    params: str
    match: dict[str, str]
    channels: list[int]
    dry_run: bool
    enabled: bool
    runbook_url: str


@dataclass(frozen=True)
class RulesPage:
    rules: list[RuleEntry]
    kinds: dict[str, str]
    defaults: dict[str, str]
    severities: tuple[str, ...]
    channels: list[tuple[int, str]]
    draft: RuleDraft
    preview: dict[str, Any] | None
    problem: str


def show_rules(visit: Visit) -> View:
    edited = visit.request.query_params.get("edit", "")
    rules = alert_settings.rules(visit.transaction, visit.project_id)
    edited_rule = next((rule for rule in rules if rule.name == edited), None)
    return _view(visit, _draft_of(edited_rule) if edited_rule else _empty_draft())


def change_rules(visit: Visit) -> View | Response:
    """Save or try what is in the form; or switch a rule, or take the project's own away."""
    what, name = visit.form.one("act"), visit.form.line("name", LONGEST_NAME)
    if what in ("switch", "remove"):
        return _switch(visit, name, what)
    draft = _draft(visit.form)
    rule, problem = _read(visit, draft)
    if rule is None:
        return _view(visit, draft, problem=problem)
    if what == "preview":
        now = datetime.now(UTC)
        return _view(visit, draft, try_rule(visit.transaction, visit.project_id, rule, PREVIEW_DAYS, now))
    alert_settings.put_rule(visit.transaction, visit.project_id, rule, visit.actor)
    return RedirectResponse(visit.frame.links.to("settings", "rules"), 303)


def _switch(visit: Visit, name: str, what: str) -> Response:
    rules = alert_settings.rules(visit.transaction, visit.project_id)
    current = next((rule for rule in rules if rule.name == name), None)
    if current is None:
        raise NotFound("There is no rule with this name.")
    if what == "switch":
        changed = replace(current, enabled=not current.enabled)
        alert_settings.put_rule(visit.transaction, visit.project_id, changed, visit.actor)
    else:
        if not alert_settings.delete_rule(visit.transaction, visit.project_id, name, visit.actor):
            raise NotFound("This project has no rule of its own with this name.")
        detectors.drop(visit.transaction, visit.project_id, name)
    return RedirectResponse(visit.frame.links.to("settings", "rules"), 303)


def _read(visit: Visit, draft: RuleDraft) -> tuple[Rule | None, str]:
    if not draft.name or "/" in draft.name:
        return None, "Give the rule a name without a slash."
    if draft.kind not in RULE_KINDS or draft.severity not in get_args(Severity):
        return None, "Choose a kind and a severity."
    default = next((rule for rule in DEFAULT_RULES if rule.name == draft.name), None)
    if default is not None and default.kind != draft.kind:
        return None, f"The default rule of this name is of kind {default.kind}."
    try:
        values = json.loads(draft.params or "{}")
        params = read_params(draft.kind, values)
        match = Match.model_validate({name: text.split() for name, text in draft.match.items() if text})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return None, f"{where}: {first['msg']}." if where else f"{first['msg']}."
    except (ValueError, RecursionError, OverflowError):
        # No JSON, or no number that anybody has: 5,000 digits, or as many brackets.
        return None, "The parameters are not valid JSON."
    try:
        runbook = _WEB_ADDRESS.validate_python(draft.runbook_url) if draft.runbook_url else None
    except ValidationError:
        return None, "Give the runbook as an address that begins with http:// or https://."
    known = {channel.id for channel in alert_settings.channels(visit.transaction, visit.project_id)}
    chosen = tuple(number for number in draft.channels if number in known)
    severity = cast(Severity, draft.severity)
    words = (draft.name, draft.kind, params, severity, match, chosen)
    return Rule(*words, draft.dry_run, draft.enabled, runbook), ""


def _draft(form: Form) -> RuleDraft:
    numbers = form.numbers("channel")
    return RuleDraft(
        name=form.line("name", LONGEST_NAME),
        kind=form.one("kind"),
        severity=form.one("severity"),
        params=form.one("params").strip(),
        match={name: form.line(f"match_{name}") for name in MATCHED},
        channels=numbers,
        dry_run=form.one("dry_run") == "yes",
        enabled=True,
        runbook_url=form.line("runbook_url", 500),
    )


def _draft_of(rule: Rule) -> RuleDraft:
    match = rule.match.model_dump()
    return RuleDraft(
        rule.name,
        rule.kind,
        rule.severity,
        json.dumps(rule.params.model_dump(mode="json", exclude_none=True), indent=1),
        {name: " ".join(match.get(name) or []) for name in MATCHED},
        list(rule.channels),
        rule.dry_run,
        rule.enabled,
        rule.runbook_url or "",
    )


def _empty_draft() -> RuleDraft:
    return RuleDraft("", "drop", "warning", "", dict.fromkeys(MATCHED, ""), [], False, True, "")


def _view(visit: Visit, draft: RuleDraft, preview: dict[str, Any] | None = None, problem: str = "") -> View:
    channels = [
        channel for channel in alert_settings.channels(visit.transaction, visit.project_id) if channel.enabled
    ]
    names = {channel.id: channel.name for channel in channels}
    own = {rule.name for rule in alert_settings.own_rules(visit.transaction, visit.project_id)}
    page = RulesPage(
        rules=[
            RuleEntry(
                rule.name,
                rule.kind,
                RULE_KINDS[rule.kind].label,
                RULE_KINDS[rule.kind].limits(rule.params),
                rule.params.model_dump(mode="json", exclude_none=True),
                {name: words for name, words in rule.match.model_dump().items() if words},
                rule.severity,
                [names[number] for number in rule.channels if number in names],
                rule.dry_run,
                rule.enabled,
                rule.runbook_url,
                rule.name in DEFAULT_NAMES,
                rule.name in own,
            )
            for rule in alert_settings.rules(visit.transaction, visit.project_id)
        ],
        kinds={name: kind.label for name, kind in RULE_KINDS.items()},
        defaults={
            name: json.dumps(kind.params().model_dump(mode="json", exclude_none=True))
            for name, kind in RULE_KINDS.items()
        },
        severities=("info", "warning", "critical"),
        channels=[(channel.id, channel.name) for channel in channels],
        draft=draft,
        preview=preview,
        problem=problem,
    )
    return View("settings_rules.html", page, 422 if problem else 200)
