"""The stored episodes of a project, for a rule that is tried on the past."""

from __future__ import annotations

from datetime import datetime

from gapwatch.store import alert_reading, watching
from gapwatch.store.access import Transaction
from gapwatch.watching.series import Seen


class StoredEpisodes:
    def __init__(self, transaction: Transaction, project_id: int) -> None:
        self._transaction, self._project_id = transaction, project_id

    def deployments(self) -> list[tuple[int, dict[str, str | None]]]:
        found = []
        for deployment_id, slug in alert_reading.deployment_ids(self._transaction, self._project_id).items():
            words = watching.deployment_words(self._transaction, self._project_id, deployment_id)
            found.append((deployment_id, {**words, "deployment": slug}))
        return found

    def episodes(self, deployment_id: int, since: datetime, most: int) -> list[Seen]:
        return watching.episodes_since(self._transaction, self._project_id, deployment_id, since, most)

    def sim_counts(self, deployment_id: int, policy_id: int) -> tuple[int, int]:
        return watching.sim_counts(self._transaction, self._project_id, deployment_id, policy_id)
