"""The ledger's word on an incident: which gap category leads, and which cost more than a rule allows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog

from gapwatch.alerts.places import Place
from gapwatch.answers.comparison import compare_deployment
from gapwatch.answers.ledger import CategoryPart, answer_ledger
from gapwatch.answers.question import Question
from gapwatch.store import alert_moves
from gapwatch.store.database import Connection
from gapwatch.store.sides import Window
from gapwatch.watching.rules import CategoryParams, Rule

log = structlog.get_logger()

# The ledger is asked again after so many episodes of a deployment, and only while there is a drop to explain.
ASKED_EVERY = 50


def categories_since(connection: Connection, place: Place, since: datetime, now: datetime) -> list[CategoryPart]:
    """What each gap category costs from a time on; nothing where the ledger cannot say.

    An explanation that fails must not keep back the page it explains.
    """
    try:
        with connection.begin_nested():
            question = Question(now, Window(since, None))
            comparison = compare_deployment(connection, place.project_id, place.slug, question)
            return list(answer_ledger(comparison).categories)
    except Exception as error:
        log.warning("the ledger gave no answer", error=type(error).__name__, deployment_id=place.deployment_id)
        return []


def leading_category(
    connection: Connection, place: Place, since: datetime, now: datetime
) -> dict[str, Any] | None:
    found = [part for part in categories_since(connection, place, since, now) if part.contribution > 0]
    if not found:
        return None
    return _told(max(found, key=lambda part: part.contribution))


def judge_categories(
    connection: Connection, place: Place, rules: Sequence[Rule], before: int, after: int, newest: datetime
) -> None:
    """Category rules, at every fiftieth episode while real is established to be below sim.

    The ledger's intervals hold for one look. That a drop exists is decided by a statistic that may be looked at
    for ever; the category only says where it lies.
    """
    mine = [(rule, rule.params) for rule in rules if isinstance(rule.params, CategoryParams)]
    open_ = alert_moves.open_alerts(connection, place.project_id, place.deployment_id)
    has_drop = any(one.kind == "drop" and one.state != "pending" for one in open_)
    is_time = before // ASKED_EVERY != after // ASKED_EVERY
    for rule, params in mine:
        told = {one.series for one in open_ if one.rule == rule.name}
        # Without a drop there is nothing left to explain, and it need not be asked.
        if (has_drop and not is_time) or not (has_drop or told):
            continue
        parts = []
        if has_drop and after >= params.min_episodes:
            # By the episodes' own clock: what is being told may have happened some time ago.
            since = newest - timedelta(days=params.window_days)
            parts = categories_since(connection, place, since, newest + timedelta(seconds=1))
        costly = {part.category: part for part in parts if _is_costly(part, params)}
        for category in sorted(costly.keys() - told):
            _apply(connection, place, rule, category, "breach", _told(costly[category]))
        kept = {part.category for part in parts if part.contribution > params.above / 2}
        for category in sorted(told - kept):
            _apply(connection, place, rule, category, "recovery", {})


def _apply(
    connection: Connection, place: Place, rule: Rule, category: str, given: Any, evidence: dict[str, Any]
) -> None:
    alert_moves.apply_input(connection, place.project_id, place.deployment_id, rule, category, given, evidence)


def _is_costly(part: CategoryPart, params: CategoryParams) -> bool:
    wanted = not params.category or part.category in params.category
    return bool(wanted and part.contribution > params.above and part.interval is not None and part.interval[0] > 0)


def _told(part: CategoryPart) -> dict[str, Any]:
    interval = None if part.interval is None else list(part.interval)
    return {"category": part.category, "contribution": part.contribution, "interval": interval}
