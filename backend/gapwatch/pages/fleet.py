"""`/`: every deployment of the project, sim beside real."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gapwatch.pages.frame import View, Visit
from gapwatch.statistics.rates import wilson
from gapwatch.store import fleet
from gapwatch.store.fleet import DeploymentRow


@dataclass(frozen=True)
class Rate:
    """A success rate as a page shows it: value, interval, n."""

    successes: int
    n: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class FleetEntry:
    slug: str
    about: str
    stage: str | None
    real: Rate | None
    sim: Rate | None
    newest: datetime | None


@dataclass(frozen=True)
class FleetPage:
    public_url: str
    entries: list[FleetEntry]


class Fleet:
    def __init__(self, public_url: str) -> None:
        self._public_url = public_url

    def show(self, visit: Visit) -> View:
        rows = fleet.deployments(visit.transaction, visit.project_id)
        return View("fleet.html", FleetPage(self._public_url, [fleet_entry(row) for row in rows]))


def fleet_entry(row: DeploymentRow) -> FleetEntry:
    about = " · ".join(part for part in (f"{row.policy} {row.version}", row.task, row.site) if part)
    return FleetEntry(
        slug=row.slug,
        about=about,
        stage=row.stage,
        real=_rate(row.real_successes, row.real_n),
        sim=_rate(row.sim_successes, row.sim_n),
        newest=row.newest,
    )


def _rate(successes: int, n: int) -> Rate | None:
    if n == 0:
        return None
    low, high = wilson(successes, n)
    return Rate(successes, n, successes / n, low, high)
