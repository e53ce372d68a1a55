"""The button that measures how fast a decision reaches every robot."""

from __future__ import annotations

import time

from starlette.responses import RedirectResponse, Response

from gapwatch.pages.frame import Visit
from gapwatch.rollouts.deciding import Decider
from gapwatch.rollouts.drills import drill_rollout
from gapwatch.store.core.database import Database

LONGEST_REASON = 200


class DrillHandlers:
    """With transactions of its own: robots learn of a decision only when it is committed."""

    def __init__(self, database: Database, link_base: str) -> None:
        self._database, self._link_base = database, link_base

    def press(self, visit: Visit) -> Response:
        slug = visit.path("slug")
        reason = visit.form.line("reason", LONGEST_REASON) or "drill"
        drill_rollout(
            self._database,
            visit.project_id,
            slug,
            reason=reason,
            decider=Decider(visit.actor, visit.project.role, self._link_base),
            sleep=time.sleep,
        )
        return RedirectResponse(visit.frame.links.to("deployments", slug), 303)
