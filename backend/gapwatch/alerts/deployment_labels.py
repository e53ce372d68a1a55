"""The names that rules and channels match a deployment by."""

from __future__ import annotations

from dataclasses import dataclass

from gapwatch.store.alerting import watch_queue
from gapwatch.store.core.database import Connection


@dataclass(frozen=True)
class DeploymentLabels:
    """A deployment and the names it is matched by."""

    project_id: int
    deployment_id: int
    slug: str
    policy: str
    version: str
    task: str
    site: str | None
    stage: str | None

    @property
    def words(self) -> dict[str, str | None]:
        return {
            "deployment": self.slug,
            "policy": self.policy,
            "task": self.task,
            "site": self.site,
            "stage": self.stage,
        }


def labels_of(connection: Connection, project_id: int, deployment_id: int) -> DeploymentLabels:
    words = watch_queue.deployment_words(connection, project_id, deployment_id)
    return DeploymentLabels(project_id, deployment_id, **words)  # type: ignore[arg-type]
