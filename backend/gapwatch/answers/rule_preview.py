"""A rule tried on the stored past of a project, for the API and the settings page."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from gapwatch.answers.category_costs import category_costs
from gapwatch.answers.ledger import CategoryPart
from gapwatch.store.alerting import (
    alert_list,
    alert_settings,
    presence,
    watch_queue,
)
from gapwatch.store.core.database import Connection
from gapwatch.store.read.sides import Window
from gapwatch.watching.replay import replay_all
from gapwatch.watching.rhythm import ExcusedSpan
from gapwatch.watching.rules import Rule
from gapwatch.watching.series import SeenEpisode
from gapwatch.watching.silence import RobotArrival
from gapwatch.watching.sim_mix import SimCell


def try_rule(connection: Connection, project_id: int, rule: Rule, days: int, now: datetime) -> dict[str, Any]:
    """When the rule would have fired and cleared in the last days, deployment by deployment."""
    return replay_all(_StoredPast(connection, project_id), rule, days, now)


class _StoredPast:
    def __init__(self, connection: Connection, project_id: int) -> None:
        self._connection, self._project_id = connection, project_id
        self._slugs = alert_list.deployment_ids(connection, project_id)

    def deployments(self) -> list[tuple[int, dict[str, str | None]]]:
        deployments = []
        for deployment_id, slug in self._slugs.items():
            words = watch_queue.deployment_words(self._connection, self._project_id, deployment_id)
            deployments.append((deployment_id, {**words, "deployment": slug}))
        return deployments

    def episodes(self, deployment_id: int, since: datetime, most: int) -> list[SeenEpisode]:
        return watch_queue.episodes_since(self._connection, self._project_id, deployment_id, since, most)

    def arrivals(self, since: datetime, most: int) -> list[RobotArrival]:
        return watch_queue.arrivals_since(self._connection, self._project_id, since, most)

    def outages(self, now: datetime) -> list[ExcusedSpan]:
        return presence.outages(self._connection, now)

    def sim_counts(self, deployment_id: int, policy_id: int) -> tuple[int, int]:
        return watch_queue.sim_counts(self._connection, self._project_id, deployment_id, policy_id)

    def sim_cells(self, deployment_id: int, policy_id: int) -> list[SimCell]:
        return watch_queue.sim_cells(self._connection, self._project_id, deployment_id, policy_id)

    def drop_rules(self) -> list[Rule]:
        rules = alert_settings.rules(self._connection, self._project_id)
        return [rule for rule in rules if rule.kind == "drop" and rule.enabled]

    def category_costs(
        self, deployment_id: int, policy_id: int, since: datetime, until: datetime
    ) -> list[CategoryPart]:
        slug, window = self._slugs[deployment_id], Window(since, until)
        return category_costs(self._connection, self._project_id, slug, window, until, policy_id)
