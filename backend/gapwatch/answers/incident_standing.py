"""How a deployment with an incident stands now against before, from a fixed number of episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from gapwatch.answers.answer import Interval
from gapwatch.statistics.causes.slices import newcombe
from gapwatch.statistics.estimates.rates import wilson
from gapwatch.store.alerting import incident_counts
from gapwatch.store.alerting.incident_counts import BeforeAndNow
from gapwatch.store.core.database import Connection

# With fewer episodes of its own past a deployment is held against sim, where its alerts know it.
FEWEST_BEFORE = 20


@dataclass(frozen=True)
class SuccessShare:
    value: float
    n: int
    interval: Interval


@dataclass(frozen=True)
class IncidentStanding:
    """`loss`: points of success lost, positive when it is worse now."""

    now: SuccessShare | None
    before: SuccessShare | None
    before_is: Literal["before", "sim"] | None
    loss: float | None
    loss_interval: Interval | None
    newest: datetime | None


def incident_standings(
    connection: Connection, project_id: int, incidents: Sequence[Mapping[str, Any]]
) -> dict[int, IncidentStanding]:
    """By incident; one query for all of them."""
    counted = incident_counts.before_and_now(connection, project_id, incidents)
    return {one["id"]: incident_standing(counted.get(one["id"]), one["alerts"]) for one in incidents}


def incident_standing(counts: BeforeAndNow | None, alerts: Sequence[Mapping[str, Any]]) -> IncidentStanding:
    """Now against its own past; against sim where an alert is about that and the past shows no loss.

    A deployment that was never as good as sim has lost nothing since, and its incident is about sim.
    """
    if counts is None:
        return IncidentStanding(None, None, None, None, None, None)
    now = _share(counts.successes, counts.n)
    k, n = counts.before_successes, counts.before_n
    before_is: Literal["before", "sim"] = "before"
    has_lost = n >= FEWEST_BEFORE and counts.n and newcombe(k, n, counts.successes, counts.n)[1][0] > 0
    if not has_lost and (sim := _sim_of(alerts)) is not None:
        (k, n), before_is = sim, "sim"
    before = _share(k, n)
    if now is None or before is None:
        return IncidentStanding(now, before, before_is if before else None, None, None, counts.newest)
    loss, interval = newcombe(k, n, counts.successes, counts.n)
    return IncidentStanding(now, before, before_is, loss, interval, counts.newest)


def _share(successes: int, n: int) -> SuccessShare | None:
    return SuccessShare(successes / n, n, wilson(successes, n)) if n else None


def _sim_of(alerts: Sequence[Mapping[str, Any]]) -> tuple[int, int] | None:
    """Successes and n of sim, as the alert that found success below it says."""
    for alert in alerts:
        reference = alert["evidence"].get("reference")
        if not isinstance(reference, Mapping) or reference.get("side") != "sim":
            continue
        value, n = reference.get("value"), reference.get("n")
        if isinstance(value, int | float) and isinstance(n, int) and n > 0 and 0 <= value <= 1:
            return round(value * n), n
    return None
