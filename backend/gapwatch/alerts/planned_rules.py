"""The rules of a deployment with what its rollout demands: those of kind `stage_gate` read the frozen plan."""

from __future__ import annotations

from collections.abc import Sequence

from gapwatch.alerts.deployment_labels import DeploymentLabels
from gapwatch.store.core.database import Connection
from gapwatch.store.rollout.rollouts import plan_of
from gapwatch.watching.kinds.stage_gate import with_plan
from gapwatch.watching.rules import Rule


def rules_with_plan(connection: Connection, labels: DeploymentLabels, rules: Sequence[Rule]) -> list[Rule]:
    if not any(rule.kind == "stage_gate" for rule in rules):
        return list(rules)
    planned = plan_of(connection, labels.project_id, labels.deployment_id)
    return list(rules) if planned is None else [with_plan(rule, *planned) for rule in rules]
