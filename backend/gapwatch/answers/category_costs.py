"""What each gap category cost in a stretch of time: the ledger's word for alerts, live and replayed."""

from __future__ import annotations

from datetime import datetime

import structlog

from gapwatch.answers import ledger
from gapwatch.answers.differing_contracts import differing_words
from gapwatch.answers.ledger import CategoryPart, LedgerAnswer, answer_ledger, leading_part
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.question import Question
from gapwatch.answers.subjects import deployment_subject, with_policy
from gapwatch.store.core.database import Connection
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
    """What each gap category costs in a window; nothing where the ledger cannot say."""
    made = _ledger(connection, project_id, slug, window, now, policy_id)
    return [] if made is None else list(made.categories)


def leading_cost(
    connection: Connection, project_id: int, slug: str, window: Window, now: datetime
) -> tuple[CategoryPart | None, str | None]:
    """The category that the deployment's page would name: it is known to cost, and more than what is unknown.

    And the sentence of a contract that differs, with the robots and the field: nothing else is believed before it.
    """
    made = _ledger(connection, project_id, slug, window, now, None)
    if made is None:
        return None, None
    return leading_part(made), differing_words(made.warnings)


def _ledger(
    connection: Connection, project_id: int, slug: str, window: Window, now: datetime, policy_id: int | None
) -> LedgerAnswer | None:
    """Of the deployment's policy version today, or of the one that it had then. An explanation that fails must not
    keep back the page it explains.
    """
    try:
        with connection.begin_nested():
            subject = deployment_subject(connection, project_id, slug)
            if policy_id is not None and policy_id != subject.policy_id:
                subject = with_policy(connection, project_id, subject, policy_id)
            sides = load_sides(connection, project_id, subject, Question(now, window), ledger.NEEDS)
            return answer_ledger(sides)
    except Exception as error:
        log.warning("the ledger gave no answer", error=type(error).__name__, project_id=project_id)
        return None
