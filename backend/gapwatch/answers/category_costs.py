"""What each gap category cost in a stretch of time: the ledger's word for alerts, live and replayed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import structlog

from gapwatch.answers.comparison import Comparison, compare_deployment
from gapwatch.answers.ledger import CategoryPart, answer_ledger
from gapwatch.answers.question import Question
from gapwatch.store.core.database import Connection
from gapwatch.store.read import directory
from gapwatch.store.read.sides import Window

log = structlog.get_logger()


def category_costs(
    connection: Connection,
    project_id: int,
    slug: str,
    window: Window,
    now: datetime,
    policy_id: int | None = None,
) -> list[CategoryPart]:
    """What each gap category costs in a window; nothing where the ledger cannot say.

    Of the deployment's policy version today, or of the one that it had then. An explanation that fails must not
    keep back the page it explains.
    """
    try:
        with connection.begin_nested():
            comparison = compare_deployment(connection, project_id, slug, Question(now, window))
            if policy_id not in {None, comparison.subject.policy_id}:
                comparison = _of_version(comparison, policy_id or 0)
            return list(answer_ledger(comparison).categories)
    except Exception as error:
        log.warning("the ledger gave no answer", error=type(error).__name__, project_id=project_id)
        return []


def _of_version(comparison: Comparison, policy_id: int) -> Comparison:
    connection, project_id = comparison.connection, comparison.project_id
    policy, version = directory.policy_versions(connection, project_id)[policy_id]
    subject = replace(comparison.subject, policy_id=policy_id, policy=policy, version=version)
    return Comparison(connection, project_id, subject, comparison.question)
