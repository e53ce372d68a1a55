"""`/settings/baselines`: the simulator each deployment is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import RedirectResponse, Response

from gapwatch.errors import NotFound
from gapwatch.pages.frame import View, Visit
from gapwatch.store.people import baselines
from gapwatch.store.people.baselines import BaselineRow

DEPLOYMENTS_A_PAGE = 200


@dataclass(frozen=True)
class BaselinesPage:
    deployments: list[BaselineRow]
    next: str | None


def show_baselines(visit: Visit) -> View:
    after = visit.request.query_params.get("after", "").replace("\0", "")
    rows = baselines.baselines(visit.transaction, visit.project_id, after, DEPLOYMENTS_A_PAGE + 1)
    shown = rows[:DEPLOYMENTS_A_PAGE]
    more = shown[-1].deployment if len(rows) > len(shown) else None
    return View("settings_baselines.html", BaselinesPage(shown, more))


def pin_baseline(visit: Visit) -> Response:
    deployment_id, simulator_id = visit.form.number("deployment"), visit.form.number("simulator")
    if not baselines.pin_baseline(
        visit.transaction, visit.project_id, deployment_id, simulator_id or None, visit.actor
    ):
        raise NotFound("There is no such deployment or simulator.")
    return RedirectResponse(visit.frame.links.to("settings", "baselines"), 303)
