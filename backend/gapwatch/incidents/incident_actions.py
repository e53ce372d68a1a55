"""What people do to an incident: acknowledge, assign, silence, resolve, comment.

Each is one step of the caller's transaction, False if there is no such incident, and leaves a line of its history.
Doing the same twice changes nothing the second time. What is over can only be commented on.
"""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from gapwatch.errors import Conflict, Fault, Invalid
from gapwatch.incidents.alert_moves import move_alert
from gapwatch.incidents.incident_lifecycle import close_if_over, tell_informed
from gapwatch.notation import clock_words
from gapwatch.store.alerting import alert_transitions, detectors, incidents
from gapwatch.store.alerting.alert_settings import add_silence
from gapwatch.store.alerting.incidents import LockedIncident
from gapwatch.store.alerting.watch_queue import deployment_words, now
from gapwatch.store.core.database import Connection
from gapwatch.store.people.members import members
from gapwatch.watching.alert_changes import OpenAlert
from gapwatch.watching.matchers import Match

CAN_CARRY = ("engineer", "admin")


def acknowledge(
    connection: Connection, project_id: int, incident_id: int, actor: str, comment: str | None
) -> bool:
    """Take on an incident with every alert of it, and tell every channel that knows of it."""
    incident = incidents.lock_incident(connection, project_id, incident_id)
    if incident is None:
        return False
    _refuse_if_over(incident)
    untaken = [alert for alert in _alerts_of(connection, project_id, incident) if alert.state != "acknowledged"]
    is_told = [move_alert(connection, project_id, alert, "acknowledge", actor, None) for alert in untaken]
    is_new = incident.state != "acknowledged"
    if is_new or any(is_told):
        incidents.mark_acknowledged(connection, project_id, incident_id, actor)
        facts = {"acknowledged_by": actor, "comment": comment}
        tell_informed(connection, project_id, incident_id, "acknowledge", facts)
    if is_new or any(is_told) or comment:
        _note(connection, project_id, incident, actor, "acknowledge", comment)
    return True


def assign(
    connection: Connection, project_id: int, incident_id: int, actor: str, owner: str | None, comment: str | None
) -> bool:
    """Pass an incident on to a member who can act on it, or with None to nobody."""
    incident = incidents.lock_incident(connection, project_id, incident_id)
    if incident is None:
        return False
    _refuse_if_over(incident)
    email = None if owner is None else _member(connection, project_id, owner)
    if email != incident.owner:
        incidents.set_owner(connection, project_id, incident_id, email)
    if email != incident.owner or comment:
        words = f"to {email or 'nobody'}" + (f": {comment}" if comment else "")
        _note(connection, project_id, incident, actor, "assign", words)
    return True


def silence(
    connection: Connection, project_id: int, incident_id: int, actor: str, reason: str, ends_at: datetime
) -> bool:
    """Tell nobody of this deployment until then; everything is still recorded."""
    incident = incidents.lock_incident(connection, project_id, incident_id)
    if incident is None:
        return False
    _refuse_if_over(incident)
    slug = str(deployment_words(connection, project_id, incident.deployment_id)["slug"])
    at = now(connection)
    add_silence(
        connection,
        project_id,
        match=Match(deployment=[slug]),
        owner=actor,
        reason=reason,
        starts_at=at,
        ends_at=ends_at,
    )
    words = f"until {_clock(ends_at)}: {reason}"
    _note(connection, project_id, incident, actor, "silence", words)
    return True


def resolve(connection: Connection, project_id: int, incident_id: int, actor: str, comment: str | None) -> bool:
    """Call an incident over with every alert of it. Their detectors begin anew, and tell if it is not."""
    incident = incidents.lock_incident(connection, project_id, incident_id)
    if incident is None:
        return False
    if incident.state == "resolved":
        if comment:
            _note(connection, project_id, incident, actor, "comment", comment)
        return True
    for alert in _alerts_of(connection, project_id, incident):
        move_alert(connection, project_id, alert, "resolve", actor, None)
        detectors.restart(connection, project_id, alert.deployment_id, alert.rule, alert.series)
    facts = {"resolved_by": actor, "comment": comment}
    close_if_over(connection, project_id, incident.deployment_id, facts)
    _note(connection, project_id, incident, actor, "resolve", comment)
    return True


def comment_on(connection: Connection, project_id: int, incident_id: int, actor: str, comment: str) -> bool:
    incident = incidents.lock_incident(connection, project_id, incident_id)
    if incident is None:
        return False
    _note(connection, project_id, incident, actor, "comment", comment)
    return True


def _alerts_of(connection: Connection, project_id: int, incident: LockedIncident) -> list[OpenAlert]:
    open_alerts = alert_transitions.open_alerts(connection, project_id, incident.deployment_id)
    return [alert for alert in open_alerts if alert.incident_id == incident.id]


def _member(connection: Connection, project_id: int, name: str) -> str:
    """The address of the member that is meant: written out, or the part before the @ where only one has it."""
    asked = name.strip().casefold()
    known = [member for member in members(connection, project_id) if member.role in CAN_CARRY]
    fitting = [member.email for member in known if member.email.casefold() == asked] or [
        member.email for member in known if member.email.partition("@")[0].casefold() == asked
    ]
    if len(fitting) == 1:
        return fitting[0]
    code, words = (
        ("ambiguous-member", "Several members are called so; give the whole e-mail address.")
        if fitting
        else ("unknown-member", "Give the e-mail address of an engineer or admin of this project.")
    )
    raise Invalid(words, errors=[Fault(pointer="/body/owner", code=code, message=words)])


def _refuse_if_over(incident: LockedIncident) -> None:
    if incident.state == "resolved":
        raise Conflict(
            "The incident is resolved: it can be commented on, and what happens anew opens another one."
        )


def _note(
    connection: Connection,
    project_id: int,
    incident: LockedIncident,
    actor: str,
    action: str,
    comment: str | None,
) -> None:
    incidents.write_history(connection, project_id, incident.id, actor=actor, action=action, comment=comment)


def _clock(at: datetime) -> str:
    """On the clock of its own time zone, where it has one by name."""
    zone = at.tzinfo.key if isinstance(at.tzinfo, ZoneInfo) else "UTC"
    return f"{clock_words(at.astimezone(ZoneInfo(zone)))} {zone}"
