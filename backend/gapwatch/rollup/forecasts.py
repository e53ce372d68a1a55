"""What shadow said of a policy version, frozen when its first own episodes are folded or it is promoted."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import structlog

from gapwatch.answers import shadow_forecast
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.question import Question
from gapwatch.answers.shadow import NEEDS
from gapwatch.answers.shadow_forecast import frozen_body
from gapwatch.answers.subjects import deployment_subject
from gapwatch.store.alerting.watch_queue import now
from gapwatch.store.core.database import Connection, Database
from gapwatch.store.read import shadow_episodes
from gapwatch.store.read.shadow_episodes import DueForecast

log = structlog.get_logger()


def freeze_forecasts(database: Database, project_ids: Collection[int]) -> int:
    """Freeze what is due of these projects; return how many. One that fails does not hold up the fold, and is due
    again.
    """
    frozen = 0
    for due in database.run(partial(shadow_episodes.due_forecasts, project_ids)):
        try:
            frozen += database.run(partial(_freeze, due))
        except Exception:
            log.exception("forecast failed", project_id=due.project_id, deployment=due.slug)
    return frozen


def _freeze(due: DueForecast, connection: Connection) -> int:
    subject = deployment_subject(connection, due.project_id, due.slug)
    if subject.policy_id != due.policy_id:
        return 0
    sides = load_sides(connection, due.project_id, subject, Question(now(connection)), NEEDS)
    forecast = shadow_forecast.forecast_now(sides)
    if forecast is None:
        return 0
    shadow_episodes.freeze_forecast(connection, due, frozen_body(forecast))
    return 1
