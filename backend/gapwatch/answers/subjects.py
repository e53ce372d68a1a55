"""What a comparison is about: a deployment, or a policy version over all its tasks and deployments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from gapwatch.answers.tallies import ALL_TIME
from gapwatch.answers.window_words import (
    NOTHING_KNOWN,
    Before,
    Began,
    before_event,
    before_of,
    began,
    began_together,
)
from gapwatch.errors import NotFound
from gapwatch.store.core.database import Connection
from gapwatch.store.read import directory, sides
from gapwatch.store.read.directory import Deployment, Surroundings
from gapwatch.store.read.sides import Scope


@dataclass(frozen=True)
class Subject:
    """`described`: what the newest episode says of a deployment; None for a policy."""

    surroundings: Surroundings
    policy_id: int
    policy: str
    version: str
    task_ids: tuple[int, ...] | None = None
    task: str | None = None
    deployment_id: int | None = None
    deployment: str | None = None
    pinned_simulator_id: int | None = None
    described: Deployment | None = None

    def began(self, now: datetime) -> Began:
        """When what is called `now` and `version` of it began."""
        around = self.surroundings
        if self.deployment_id is None:
            return began_together(list(around.began.get(self.policy_id, ())), self.version, now)
        present = around.present
        if present is None or present.facts.policy_id != self.policy_id:
            return NOTHING_KNOWN
        return began(present, self.version, now)

    def before(self, now: datetime) -> Before | None:
        """What was before the present of a deployment; None where nothing changed."""
        present = self.surroundings.present
        if self.deployment_id is None or present is None or present.facts.policy_id != self.policy_id:
            return None
        return before_of(present, self.version, now)

    def before_or_event(self, now: datetime) -> Before | None:
        """What the present can be held against: what was before it, else before the newest event."""
        present = self.surroundings.present
        if self.deployment_id is None or present is None or present.facts.policy_id != self.policy_id:
            return None
        return self.before(now) or before_event(present, self.surroundings.events, now)

    @property
    def sim_scope(self) -> Scope:
        """The episodes of every simulator."""
        return Scope("sim", (self.policy_id,), self.task_ids)

    @property
    def real_scope(self) -> Scope:
        sources = None if self.deployment_id is None else (self.deployment_id,)
        return Scope("real", (self.policy_id,), self.task_ids, sources)

    @property
    def all_versions_scope(self) -> Scope:
        """The real episodes of every version of the policy."""
        return replace(self.real_scope, policy_ids=tuple(self.surroundings.versions))


def deployment_subject(connection: Connection, project_id: int, slug: str) -> Subject:
    """Return a deployment with its current policy version and task."""
    known = directory.find_subject(connection, project_id, slug)
    if known is None:
        raise NotFound("There is no deployment with this name.")
    described, surroundings = known
    return Subject(
        surroundings,
        described.policy_id,
        described.policy,
        described.version,
        (described.task_id,),
        described.task,
        described.id,
        described.slug,
        described.pinned_simulator_id,
        described,
    )


def with_policy(connection: Connection, project_id: int, subject: Subject, policy_id: int) -> Subject:
    """Return the same deployment with a policy version that it once ran."""
    policy, version = directory.policy_versions(connection, project_id)[policy_id]
    surroundings = directory.surroundings(connection, project_id, policy)
    return replace(subject, surroundings=surroundings, policy_id=policy_id, policy=policy, version=version)


def policy_subject(connection: Connection, project_id: int, name: str, version: str | None) -> Subject:
    """Return a policy version over every task and deployment.

    Without a version: the newest that has run on a robot, else the newest. Versions are never mixed: zero-shot and
    fine-tuned stay apart.
    """
    surroundings = directory.surroundings(connection, project_id, name)
    candidates = {
        policy_id: known for policy_id, known in surroundings.versions.items() if version in (None, known)
    }
    if not candidates:
        raise NotFound("There is no policy with this name and version.")
    chosen = max(candidates)
    if len(candidates) > 1:
        scope = Scope("real", tuple(candidates))
        counts = sides.bucket_counts(connection, project_id, scope, ALL_TIME, "month")
        chosen = max((count.policy_id for count in counts), default=chosen)
    return Subject(surroundings, chosen, name, candidates[chosen])
