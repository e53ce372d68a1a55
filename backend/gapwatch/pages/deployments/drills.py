"""The button that measures how fast a decision reaches every robot."""

from __future__ import annotations

import time

from starlette.responses import RedirectResponse, Response

from gapwatch.answers.drills import drill_rollout
from gapwatch.pages.frame import Visit
from gapwatch.store.core.database import Database

LONGEST_REASON = 200


class DrillHandlers:
    """With transactions of its own: robots learn of a decision only when it is committed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def press(self, visit: Visit) -> Response:
        slug = visit.path("slug")
        reason = visit.form.line("reason", LONGEST_REASON) or "drill"
        drill_rollout(self._database, visit.project_id, slug, who=visit.actor, reason=reason, sleep=time.sleep)
        return RedirectResponse(visit.frame.links.to("deployments", slug), 303)
