"""History: noted when it comes, and taken in the order of its own time when no more of it comes.

A deployment's stored episodes go through its rules from the beginning. Detectors, alerts and incidents are then
what they would have been, whatever the order of arrival; what people were told of or touched stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from gapwatch.alerts.deployment_labels import DeploymentLabels, labels_of
from gapwatch.alerts.incident_updates import settle
from gapwatch.alerts.planned_rules import rules_with_plan
from gapwatch.answers.category_costs import category_costs
from gapwatch.errors import ServiceUnavailable
from gapwatch.incidents import alert_moves
from gapwatch.step_sizes import Turn
from gapwatch.store.alerting import (
    alert_settings,
    alert_transitions,
    detectors,
    history_rows,
    notified_reasons,
    rewatches,
    watch_queue,
)
from gapwatch.store.alerting.history_rows import KnownIncident
from gapwatch.store.alerting.rewatches import Rewatch
from gapwatch.store.core.database import Connection, Database
from gapwatch.store.fold import presents
from gapwatch.store.read.sides import Window
from gapwatch.watching import history
from gapwatch.watching.alert_changes import OpenAlert, changed_at
from gapwatch.watching.categories import CategoryCost
from gapwatch.watching.history import AlertSpan, IncidentSpan, Reason, Replayed
from gapwatch.watching.notify_policy import worst
from gapwatch.watching.reason_kinds import ReasonKind, reason_kind
from gapwatch.watching.rules import Rule
from gapwatch.watching.series import SeenEpisode
from gapwatch.watching.silence import RobotArrival

log = structlog.get_logger()

# Kinds that do not go by the episode: what history holds neither confirms nor denies their alerts.
BY_THE_CLOCK = ("no_data", "range")
NOT_CONFIRMED = "the whole of history does not show it"


def split_history(
    connection: Connection, project_id: int, deployment_id: int, episodes: Sequence[SeenEpisode], *, is_new: bool
) -> list[SeenEpisode]:
    """Note what came as history, and return what is judged at once.

    During an import the fresh episodes of a robot that nobody heard before belong to it: without the past of the
    robot they would look like a change.
    """
    old = [episode for episode in episodes if history.is_history(episode)]
    rewatch = rewatches.rewatch_of(connection, project_id, deployment_id)
    was_import = rewatch.due_at is not None and rewatch.is_import
    if not old and not was_import:
        return list(episodes)
    if old:
        oldest = max(old, key=lambda episode: episode.received_at - episode.started_at)
        is_import = was_import or history.is_import(
            oldest, is_new=is_new and rewatch.done_at is None, last_import_at=rewatch.last_import_at
        )
        if is_import and not was_import:
            rewatch.live_robots = rewatches.robots_heard(connection, project_id, deployment_id)
        rewatch.is_import = is_import
    waiting = set()
    if rewatch.is_import:
        heard = set(rewatch.live_robots)
        waiting = {episode.id for episode in episodes if _sender(episode, deployment_id) not in heard}
    waiting |= {episode.id for episode in old}
    if waiting:
        _note(connection, project_id, deployment_id, rewatch, len(waiting), is_more=bool(old))
    return [episode for episode in episodes if episode.id not in waiting]


def _sender(episode: SeenEpisode, deployment_id: int) -> str:
    return RobotArrival(episode.robot, deployment_id, episode.started_at, episode.received_at).sender


def note_simulation(connection: Connection, project_id: int, episode_ids: list[str]) -> None:
    """Simulation that comes during an import may be what its history is compared with."""
    if not rewatches.has_imports(connection, project_id):
        return
    for deployment_id in rewatches.deployments_simulated_by(connection, project_id, episode_ids):
        rewatch = rewatches.rewatch_of(connection, project_id, deployment_id)
        rewatch.is_import = True
        _note(connection, project_id, deployment_id, rewatch, 0, is_more=True)


def _note(
    connection: Connection, project_id: int, deployment_id: int, rewatch: Rewatch, count: int, *, is_more: bool
) -> None:
    """Note episodes that wait; `is_more`: history is still coming."""
    now = watch_queue.now(connection)
    if rewatch.last_at is None or now - rewatch.last_at > history.CALM:
        rewatch.times = 0
    if rewatch.due_at is None:
        rewatch.due_at = now
        if rewatch.done_at is not None and rewatch.times:
            pause_s = history.pause_s(rewatch.took_s, rewatch.times, is_import=rewatch.is_import)
            rewatch.due_at = max(now, rewatch.done_at + timedelta(seconds=pause_s))
    rewatch.episodes += count
    if is_more:
        rewatch.last_at = now
    if is_more and rewatch.is_import:
        rewatch.last_import_at = now
        rewatches.note_import(connection, project_id, count)
    rewatches.save_rewatch(connection, project_id, deployment_id, rewatch)


def rewatch_due(database: Database, link_base: str, turn: Turn) -> int:
    """Take the history in order that is due until the turn is over, one deployment at least; return how many."""
    done = 0
    for place in database.run(rewatches.due_rewatches):
        done += _try(database, *place, link_base)
        if turn.is_over():
            # What came in the meantime is judged first; the rest is still due.
            break
    return done


def _try(database: Database, project_id: int, deployment_id: int, link_base: str) -> int:
    try:
        return database.run(_step(project_id, deployment_id, link_base))
    except ServiceUnavailable:
        raise
    except Exception:
        log.exception("rewatch failed", project_id=project_id, deployment_id=deployment_id)
        return 0


def _step(project_id: int, deployment_id: int, link_base: str) -> Callable[[Connection], int]:
    def step(connection: Connection) -> int:
        if not watch_queue.try_lock_project(connection, project_id):
            return 0
        watch_queue.lock_deployment(connection, project_id, deployment_id)
        rewatch = rewatches.due_rewatch(connection, project_id, deployment_id)
        if rewatch is None:
            return 0
        began = time.monotonic()
        _rewatch(connection, project_id, deployment_id, rewatch, link_base)
        presents.refresh_where_facts_changed(connection, project_id, deployment_id)
        done = replace(
            rewatch,
            due_at=None,
            episodes=0,
            done_at=watch_queue.now(connection),
            took_s=time.monotonic() - began,
            times=rewatch.times + 1,
        )
        rewatches.save_rewatch(connection, project_id, deployment_id, done)
        return 1

    return step


def _rewatch(
    connection: Connection, project_id: int, deployment_id: int, rewatch: Rewatch, link_base: str
) -> None:
    labels = labels_of(connection, project_id, deployment_id)
    rules = [rule for rule in alert_settings.rules(connection, project_id) if rule.enabled]
    mine = rules_with_plan(
        connection, labels, [rule for rule in rules if rule.match.fits({**labels.words, "rule": None})]
    )
    episodes = rewatches.episodes_in_order(connection, project_id, deployment_id)
    if not episodes:
        return
    now, progress = watch_queue.now(connection), watch_queue.progress(connection, project_id, deployment_id)
    total = max(progress.episodes + rewatch.episodes, len(episodes))
    replayed = _replay(connection, labels, mine, episodes, total - len(episodes))
    spans = replayed.spans
    if rewatch.is_import:
        spans = history.cut_off(spans, episodes[-1].started_at, now)
    for span in spans:
        if span.is_cut and (key := (span.rule.name, span.series)) in replayed.states:
            # If it goes on after all, it has to be found again.
            replayed.states[key] = replace(replayed.states[key], restart=True)
    rewatches.forget_detectors(connection, project_id, deployment_id)
    detectors.save(connection, project_id, deployment_id, replayed.states)
    for (rule, series), stored in replayed.states.items():
        if stored.restart:
            detectors.restart(connection, project_id, deployment_id, rule, series)
    progress.episodes = total
    progress.newest_started_at = episodes[-1].started_at
    progress.newest_received_at = max(episode.received_at for episode in episodes)
    watch_queue.save_progress(connection, project_id, deployment_id, progress)
    written = _write_alerts(connection, labels, mine, spans, episodes[0].started_at)
    _write_incidents(connection, labels, written)
    alert_moves.note_standing(connection, project_id, deployment_id, replayed.states)
    if rewatch.is_import:
        _cover(connection, labels, written, _early_until(replayed) if total == len(episodes) else None)
    settle(connection, labels, rules, link_base)


def _replay(
    connection: Connection,
    labels: DeploymentLabels,
    rules: Sequence[Rule],
    episodes: list[SeenEpisode],
    count: int,
) -> Replayed:
    project_id, deployment_id = labels.project_id, labels.deployment_id
    known: dict[int, tuple[int, int]] = {}

    def sim_counts(policy_id: int) -> tuple[int, int]:
        if policy_id not in known:
            known[policy_id] = watch_queue.sim_counts(connection, project_id, deployment_id, policy_id)
        return known[policy_id]

    def costs(policy_id: int, since: datetime, until: datetime) -> Sequence[CategoryCost]:
        return category_costs(connection, project_id, labels.slug, Window(since, until), until, policy_id)

    return history.replay(
        rules,
        episodes,
        count=count,
        sim_counts=sim_counts,
        sim_cells=lambda policy_id: watch_queue.sim_cells(connection, project_id, deployment_id, policy_id),
        costs=costs,
        seed=deployment_id,
        restarts=rewatches.restarts_of(connection, project_id, deployment_id),
    )


def _write_alerts(
    connection: Connection,
    labels: DeploymentLabels,
    rules: Sequence[Rule],
    spans: Sequence[AlertSpan],
    since: datetime,
) -> dict[int, AlertSpan]:
    """Bring the stored alerts in line; return those that are history's own, by id."""
    project_id, deployment_id = labels.project_id, labels.deployment_id
    names = [rule.name for rule in rules if rule.kind not in BY_THE_CLOCK]
    plan = history.plan_alerts(
        spans, history_rows.known_alerts(connection, project_id, deployment_id, names, since)
    )
    open_alerts = {
        alert.id: alert for alert in alert_transitions.open_alerts(connection, project_id, deployment_id)
    }
    for alert_id, at in plan.over:
        comment = NOT_CONFIRMED if at is None else None
        alert_moves.move_alert(
            connection, project_id, open_alerts[alert_id], "recovery", alert_moves.SERVICE, comment
        )
    if plan.gone:
        history_rows.delete_alerts(connection, project_id, plan.gone)
    written: dict[int, AlertSpan] = {}
    # What is over first: at most one alert of a series is open at any moment.
    for alert_id, span in sorted(plan.rewritten, key=lambda pair: pair[1].resolved_at is None):
        history_rows.rewrite_alert(connection, project_id, alert_id, span)
        written[alert_id] = span
    for alert_id, span in plan.confirmed:
        history_rows.set_changed_at(connection, project_id, alert_id, span.changed_at)
    for span in plan.new:
        written[history_rows.add_alert_span(connection, project_id, deployment_id, span)] = span
    return written


def _write_incidents(connection: Connection, labels: DeploymentLabels, written: dict[int, AlertSpan]) -> None:
    """Alerts of history into incidents: those that people know of where they fit, or incidents of their own."""
    project_id, deployment_id = labels.project_id, labels.deployment_id
    known = history_rows.known_incidents(connection, project_id, deployment_id)
    kept = [incident for incident in known if incident.is_kept]
    left = [incident for incident in known if not incident.is_kept]
    own: list[Reason] = []
    for alert_id, span in sorted(written.items()):
        incident_id = None
        if span.fired_at is not None and not span.rule.dry_run:
            home = next((i for i in kept if _belongs(span, i)), None)
            if home is None:
                own.append(Reason(alert_id, span.rule.severity, span.fired_at, span.changed_at, span.resolved_at))
                continue
            incident_id = home.id
        history_rows.assign_history(connection, project_id, incident_id, [alert_id])
    matches: list[tuple[KnownIncident | None, IncidentSpan]] = []
    for incident in history.incidents_of(own):
        same = [known for known in left if _overlap(incident, known)]
        match = max(same, key=lambda i: (i.is_open and incident.resolved_at is None, -i.id), default=None)
        if match is not None:
            left.remove(match)
        matches.append((match, incident))
    notified_reasons.forget(connection, project_id, [incident.id for incident in left])
    history_rows.delete_incidents(connection, project_id, [incident.id for incident in left])
    for match, incident in sorted(matches, key=lambda pair: pair[1].resolved_at is None):
        incident_id = history_rows.write_incident(
            connection, project_id, deployment_id, None if match is None else match.id, incident
        )
        history_rows.assign_history(connection, project_id, incident_id, incident.alerts)


def _belongs(span: AlertSpan, incident: KnownIncident) -> bool:
    if span.resolved_at is None:
        return incident.is_open
    if incident.resolved_at is not None and span.opened_at > incident.resolved_at:
        return False
    return incident.opened_at <= span.resolved_at


def _overlap(span: IncidentSpan, incident: KnownIncident) -> bool:
    starts_before = incident.resolved_at is None or span.opened_at <= incident.resolved_at
    return starts_before and (span.resolved_at is None or incident.opened_at <= span.resolved_at)


def _early_until(replayed: Replayed) -> datetime | None:
    if replayed.first_at is None or replayed.early_until is None:
        return None
    return max(replayed.first_at + timedelta(days=1), replayed.early_until)


def _cover(
    connection: Connection,
    labels: DeploymentLabels,
    written: dict[int, AlertSpan],
    early_until: datetime | None,
) -> None:
    """What an import opened, people are told in its one line and not by itself.

    Nor is what it adds to an incident that they know of: it is listed there.
    """
    project_id, deployment_id = labels.project_id, labels.deployment_id
    open_alerts = alert_transitions.open_alerts(connection, project_id, deployment_id)
    for incident in history_rows.known_incidents(connection, project_id, deployment_id):
        if not incident.is_open:
            continue
        alerts = [alert for alert in open_alerts if alert.incident_id == incident.id and alert.id in written]
        by_kind: dict[ReasonKind, list[OpenAlert]] = {}
        for alert in alerts:
            by_kind.setdefault(reason_kind(alert.kind, alert.series), []).append(alert)
        severities = {kind: worst([alert.severity for alert in of_kind]) for kind, of_kind in by_kind.items()}
        notified_reasons.cover(connection, project_id, deployment_id, incident.id, severities, incident.opened_at)
        if incident.is_kept:
            continue
        changes = [changed_at(alert.evidence) for alert in alerts if alert.severity != "info"]
        known_changes = [change for change in changes if change is not None]
        from_start = early_until is not None and all(change <= early_until for change in known_changes)
        backfill_id = rewatches.open_backfill(connection, project_id)
        history_rows.cover_incident(
            connection, project_id, incident.id, backfill_id, list(severities), {"from_start": from_start}
        )
