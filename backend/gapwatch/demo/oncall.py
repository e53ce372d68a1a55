"""What the people of the demo do when they are told: two of the stories are being taken care of."""

from __future__ import annotations

import time
from datetime import timedelta

from gapwatch.incidents import alert_actions
from gapwatch.store.alerting import alert_list, alert_transitions, history_rows, incidents
from gapwatch.store.core.database import Connection, Database
from gapwatch.store.people import access

TAKEN_ON = {
    "austin-pack-2": "2.0.3 goes back onto all three robots tonight",
    "berlin-line-3": "rubber finger pads of the next batch come on Friday",
}
# The history is in order and told of well within this time.
GIVE_UP_S, PAUSE_S = 300.0, 2.0
# How long after an incident opened somebody takes it on.
ANSWERED_AFTER = timedelta(minutes=40)


def take_on_stories(database_url: str, project: str, person: str) -> None:
    """Acknowledge the incidents of those stories, each when people have been told of it."""
    database = Database(database_url)
    waiting, until = dict(TAKEN_ON), time.monotonic() + GIVE_UP_S
    while waiting and time.monotonic() < until:
        with database.transaction() as connection:
            for slug in _told(connection, access.ensure_project(connection, project), waiting, person):
                del waiting[slug]
        time.sleep(PAUSE_S)
    database.close()


def _told(connection: Connection, project_id: int, waiting: dict[str, str], person: str) -> list[str]:
    taken = []
    for deployment_id, slug in alert_list.deployment_ids(connection, project_id).items():
        if slug not in waiting:
            continue
        incident = incidents.open_incident(connection, project_id, deployment_id)
        if incident is None or incident.notified_at is None:
            continue
        alerts = alert_transitions.open_alerts(connection, project_id, deployment_id)
        first = next((alert.id for alert in alerts if alert.incident_id == incident.id), None)
        if first is not None and alert_actions.acknowledge(connection, project_id, first, person, waiting[slug]):
            taken.append(slug)
            # In the time of the story, not of this run.
            history_rows.date_acknowledgement(connection, project_id, incident.id, ANSWERED_AFTER)
    return taken
