"""`/settings/baselines`: the simulator each deployment is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import RedirectResponse, Response

from gapwatch.errors import NotFound
from gapwatch.pages.frame import View, Visit
from gapwatch.store.people import baselines
from gapwatch.store.people.baselines import BaselineRow


@dataclass(frozen=True)
class BaselinesPage:
    deployments: list[BaselineRow]


def show_baselines(visit: Visit) -> View:
    return View("settings_baselines.html", BaselinesPage(baselines.baselines(visit.transaction, visit.project_id)))


def pin_baseline(visit: Visit) -> Response:
    deployment_id, simulator_id = visit.form.number("deployment"), visit.form.number("simulator")
    if not baselines.pin_baseline(
        visit.transaction, visit.project_id, deployment_id, simulator_id or None, visit.actor
    ):
        raise NotFound("There is no such deployment or simulator.")
    return RedirectResponse(visit.frame.links.to("settings", "baselines"), 303)
