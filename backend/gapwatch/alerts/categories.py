"""The ledger's word on an incident: which gap category leads, and which cost more than a rule allows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from gapwatch.alerts.deployment_labels import DeploymentLabels
from gapwatch.answers.category_costs import category_costs, leading_cost
from gapwatch.answers.ledger import CategoryPart
from gapwatch.incidents import alert_moves
from gapwatch.store.alerting import alert_transitions
from gapwatch.store.core.database import Connection
from gapwatch.store.read.sides import Window
from gapwatch.watching.categories import cost_evidence, is_time_to_ask, judge_costs
from gapwatch.watching.kinds.category import CategoryParams
from gapwatch.watching.rules import Rule


def leading_category(
    connection: Connection, labels: DeploymentLabels, since: datetime, now: datetime
) -> tuple[dict[str, Any] | None, str | None]:
    """The category that costs most since then, and the sentence of a contract that differs."""
    lead, contract = leading_cost(connection, labels.project_id, labels.slug, Window(since, None), now)
    return None if lead is None else cost_evidence(lead), contract


def judge_categories(
    connection: Connection,
    labels: DeploymentLabels,
    rules: Sequence[Rule],
    before: int,
    after: int,
    newest: datetime,
) -> None:
    """Category rules, at every fiftieth episode while real is established to be below sim.

    The ledger's intervals hold for one look. That a drop exists is decided by a statistic that may be looked at
    for ever; the category only says where it lies.
    """
    category_rules = [(rule, rule.params) for rule in rules if isinstance(rule.params, CategoryParams)]
    open_alerts = alert_transitions.open_alerts(connection, labels.project_id, labels.deployment_id)
    has_drop = any(alert.kind == "drop" and alert.state != "pending" for alert in open_alerts)
    for rule, params in category_rules:
        alarmed = {alert.series for alert in open_alerts if alert.rule == rule.name}
        # Without a drop there is nothing left to explain, and it need not be asked.
        if (has_drop and not is_time_to_ask(before, after)) or not (has_drop or alarmed):
            continue
        costs: list[CategoryPart] = []
        if has_drop and after >= params.min_episodes:
            # By the episodes' own clock: what is being told may have happened some time ago.
            since = newest - timedelta(days=params.window_days)
            costs = _costs_since(connection, labels, since, newest + timedelta(seconds=1))
        verdict = judge_costs(params, costs, alarmed)
        for category, evidence in verdict.breaches.items():
            _apply(connection, labels, rule, category, "breach", evidence)
        for category in verdict.recoveries:
            _apply(connection, labels, rule, category, "recovery", {})


def _costs_since(
    connection: Connection, labels: DeploymentLabels, since: datetime, now: datetime
) -> list[CategoryPart]:
    return category_costs(connection, labels.project_id, labels.slug, Window(since, None), now)


def _apply(
    connection: Connection,
    labels: DeploymentLabels,
    rule: Rule,
    category: str,
    alert_input: Any,
    evidence: dict[str, Any],
) -> None:
    alert_moves.apply_input(
        connection, labels.project_id, labels.deployment_id, rule, category, alert_input, evidence
    )
