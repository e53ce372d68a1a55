"""Listening: who was heard, whose silence is over, and by the clock who should be sending and is not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from gapwatch.alerts.deployment_labels import DeploymentLabels, labels_of
from gapwatch.alerts.incident_updates import settle
from gapwatch.incidents import alert_moves
from gapwatch.store.alerting import (
    alert_settings,
    alert_transitions,
    calendars,
    presence,
    robot_statuses,
    silence_windows,
    watch_queue,
)
from gapwatch.store.core import uptime
from gapwatch.store.core.database import Connection, Database
from gapwatch.watching.alert_changes import OpenAlert
from gapwatch.watching.kinds.no_data import NoDataParams
from gapwatch.watching.notify_policy import rank
from gapwatch.watching.rhythm import ExcusedSpan
from gapwatch.watching.rules import Rule
from gapwatch.watching.series import SeenEpisode
from gapwatch.watching.silence import (
    ALL_ROBOTS,
    GONE_AFTER,
    RobotArrival,
    SenderPresence,
    Silence,
    SilenceContext,
    SilentDeployment,
    WorkHours,
    evidence_of,
    followers,
    hear,
    is_missed,
    judge,
)

# Alerts of each sort that one step opens or ends, each with its deployment locked; the rest is for the next step.
MOST_AT_ONCE = 500


def hear_robots(
    connection: Connection, labels: DeploymentLabels, rules: Sequence[Rule], episodes: Sequence[SeenEpisode]
) -> None:
    """Learn from live arrivals, and recover the alerts of senders that had been silent."""
    project_id, deployment_id = labels.project_id, labels.deployment_id
    arrivals: dict[str, list[tuple[datetime, datetime]]] = {}
    for episode in episodes:
        arrival = RobotArrival(episode.robot, deployment_id, episode.started_at, episode.received_at)
        if arrival.is_live:
            arrivals.setdefault(arrival.sender, []).append((arrival.received_at, arrival.started_at))
    if not arrivals:
        return
    excused = presence.outages(connection, watch_queue.now(connection))
    robots = presence.robots_named(connection, project_id, arrivals)
    deployment = presence.deployment(connection, project_id, deployment_id)
    was_silent = [sender for sender in (*robots.values(), deployment) if sender is not None and sender.silence]
    recovered = [sender.series for sender in was_silent]
    everything = [time for times in arrivals.values() for time in times]
    excused += _maintenance(connection, labels, deployment)
    rests = _rests(connection, project_id, robots)
    heard = [
        hear(robots.get(robot), robot, deployment_id, times, [*excused, *rests.get(robot, ())])
        for robot, times in sorted(arrivals.items())
    ]
    heard.append(hear(deployment, None, deployment_id, everything, excused))
    presence.save(connection, project_id, heard)
    for rule in rules:
        if rule.kind == "no_data":
            for series in recovered:
                alert_moves.apply_input(
                    connection, project_id, deployment_id, rule, series, "recovery", {"note": "heard again"}
                )


def _rests(
    connection: Connection, project_id: int, robots: Mapping[str, SenderPresence]
) -> dict[str, list[ExcusedSpan]]:
    """Since each robot was last heard, the time in which it was parked, in repair or elsewhere: not its rhythm."""
    now = watch_queue.now(connection)
    ends = robot_statuses.at_work_since(connection, project_id)
    ends |= dict.fromkeys(robot_statuses.resting_robots(connection, project_id), now)
    return {
        name: [ExcusedSpan(robot.heard_at.timestamp(), ends[name].timestamp())]
        for name, robot in robots.items()
        if name in ends and ends[name] > robot.heard_at
    }


def _maintenance(
    connection: Connection, labels: DeploymentLabels, sender: SenderPresence | None
) -> list[ExcusedSpan]:
    """The maintenance of a deployment since a sender was last heard."""
    if sender is None:
        return []
    words = {**labels.words, "rule": None}
    windows = silence_windows.maintenance_windows(connection, labels.project_id, words, sender.heard_at)
    return [ExcusedSpan(window.start.timestamp(), window.end.timestamp()) for window in windows]


def watch_silence(database: Database, link_base: str) -> int:
    """Open alerts for robots and deployments that should be sending and are not; return how many fell silent."""
    database.run(lambda connection: uptime.mark_alive(connection, "watch"))
    projects = database.run(presence.projects_listened_to)
    return sum(database.run(_step(project_id, link_base)) for project_id in projects)


@dataclass(frozen=True)
class _Project:
    """A project as one sweep finds it."""

    connection: Connection
    id: int
    now: datetime
    rules: Sequence[Rule]
    excused: Sequence[ExcusedSpan]
    resting: Collection[str]
    at_work_since: Mapping[str, datetime]
    calendars: Mapping[int, WorkHours]
    robots: Mapping[int, Sequence[SenderPresence]]
    link_base: str
    known_labels: dict[int, DeploymentLabels] = field(default_factory=dict)

    def members(self, deployment_id: int) -> list[SenderPresence]:
        """The robots that work in a deployment."""
        return [robot for robot in self.robots.get(deployment_id, ()) if robot.robot not in self.resting]

    def context(
        self, sender: SenderPresence, labels: DeploymentLabels, members: Sequence[SenderPresence] = ()
    ) -> SilenceContext:
        """A silence does not count while robots rest, nor in maintenance, nor while the service was away."""
        at_work = min(self.at_work_since.get(robot.robot or "", sender.heard_at) for robot in members or (sender,))
        excused = [*self.excused, *_maintenance(self.connection, labels, sender)]
        if at_work > sender.heard_at:
            excused.append(ExcusedSpan(sender.heard_at.timestamp(), at_work.timestamp()))
        return SilenceContext(self.calendars.get(sender.deployment_id), members, excused)

    def rules_for(self, labels: DeploymentLabels) -> list[tuple[Rule, NoDataParams]]:
        return [
            (rule, rule.params)
            for rule in self.rules
            if isinstance(rule.params, NoDataParams) and rule.match.fits({**labels.words, "rule": None})
        ]

    def labels(self, deployment_id: int) -> DeploymentLabels:
        if deployment_id not in self.known_labels:
            self.known_labels[deployment_id] = labels_of(self.connection, self.id, deployment_id)
        return self.known_labels[deployment_id]

    def settle(self, labels: DeploymentLabels) -> None:
        settle(self.connection, labels, self.rules, self.link_base)


def _step(project_id: int, link_base: str) -> Callable[[Connection], int]:
    def step(connection: Connection) -> int:
        rules = [rule for rule in alert_settings.rules(connection, project_id) if rule.enabled]
        params = [rule.params for rule in rules if isinstance(rule.params, NoDataParams)]
        if not params or not watch_queue.try_lock_project(connection, project_id):
            return 0
        quiet_for = timedelta(minutes=min(one.after_minutes for one in params))
        if not presence.has_quiet_senders(connection, project_id, quiet_for):
            return 0
        # Who seems quiet may be in what was accepted and not watched yet.
        if presence.is_behind(connection, project_id):
            return 0
        now = watch_queue.now(connection)
        wanted = presence.Wanted(quiet_for, min(one.min_episodes for one in params))
        alerts = alert_transitions.open_alerts_of_kind(connection, project_id, "no_data")
        deployments = presence.quiet_deployments(connection, project_id, wanted)
        places = {alert.deployment_id for alert in alerts} | {one.deployment_id for one in deployments}
        project = _Project(
            connection,
            project_id,
            now,
            rules,
            presence.outages(connection, now),
            robot_statuses.resting_robots(connection, project_id),
            robot_statuses.at_work_since(connection, project_id),
            calendars.calendars_of(connection, project_id),
            presence.robots_of(connection, project_id, places, now - GONE_AFTER),
            link_base,
        )
        needless = _needless_alerts(project, alerts)
        silent = _news(_silent_deployments(project, deployments), alerts)
        missed = _missed_robots(project, presence.missed_robots(connection, project_id, now - GONE_AFTER, wanted))
        # In the order in which everybody locks them: two orders would be a deadlock.
        found = {alert.deployment_id for alert, _ in needless} | {
            finding.sender.deployment_id for finding in (*silent, *missed)
        }
        for deployment_id in sorted(found):
            watch_queue.lock_deployment(connection, project_id, deployment_id)
        for alert, note in needless:
            alert_moves.move_alert(
                connection, project_id, alert, "recovery", alert_moves.SERVICE, note, alert.evidence
            )
            project.settle(project.labels(alert.deployment_id))
        fell_silent = sum(_apply(project, finding) for finding in silent)
        for finding in missed:
            _miss(project, finding)
        return fell_silent + len(missed)

    return step


def _needless_alerts(project: _Project, alerts: Sequence[OpenAlert]) -> list[tuple[OpenAlert, str]]:
    """A robot that moved or rests is not silent, nor is a deployment whose robots all do."""
    names = [alert.series.removeprefix("robot:") for alert in alerts if alert.series != ALL_ROBOTS]
    robots = presence.robots_named(project.connection, project.id, names)
    found = []
    for alert in alerts:
        name = alert.series.removeprefix("robot:")
        if alert.series == ALL_ROBOTS:
            note = None if project.members(alert.deployment_id) else "no robot works here any more"
        elif name in project.resting:
            note = "not at work: parked, in repair or retired"
        else:
            moved = name in robots and robots[name].deployment_id != alert.deployment_id
            note = "heard in another deployment" if moved else None
        if note is not None:
            found.append((alert, note))
    return found[:MOST_AT_ONCE]


@dataclass(frozen=True)
class _Finding:
    """A sender whose silence is news by a rule."""

    sender: SenderPresence
    labels: DeploymentLabels
    rule: Rule
    silence: Silence
    members: Sequence[SenderPresence] = ()
    # The slug of the deployment that pages for it.
    follows: str | None = None

    def is_news(self, alert: OpenAlert | None) -> bool:
        """Whether there is an alert to open, or to raise that was information so far."""
        if alert is None:
            return self.sender.silence is None
        return rank(self.rule.severity) > rank(alert.severity)


def _silent_deployments(project: _Project, deployments: Sequence[SenderPresence]) -> list[_Finding]:
    findings = []
    for deployment in deployments:
        if deployment.silence in ("normal", "fault") or not (members := project.members(deployment.deployment_id)):
            continue
        labels = project.labels(deployment.deployment_id)
        around = project.context(deployment, labels, members)
        for rule, params in project.rules_for(labels):
            silence = judge(deployment, params, project.now, around)
            if silence is not None:
                findings.append(_Finding(deployment, labels, rule, silence, members))
    return findings


def _news(findings: Sequence[_Finding], alerts: Sequence[OpenAlert]) -> list[_Finding]:
    """Silent deployments of which something is to be written down."""
    known = {(alert.deployment_id, alert.rule): alert for alert in alerts if alert.series == ALL_ROBOTS}
    told = {alert.deployment_id for alert in known.values() if alert.severity != "info"}
    found = [
        finding
        for finding in _with_leaders(findings, told)
        if finding.is_news(known.get((finding.sender.deployment_id, finding.rule.name)))
    ]
    return found[:MOST_AT_ONCE]


def _with_leaders(findings: Sequence[_Finding], told: Collection[int]) -> list[_Finding]:
    """Each finding with the deployment it follows: of those that lost one uplink together only one pages."""
    silent = {
        finding.sender.deployment_id: SilentDeployment(
            finding.sender.deployment_id,
            finding.labels.site,
            finding.sender.heard_at,
            finding.sender.deployment_id in told,
        )
        for finding in findings
        if finding.silence.pages
    }
    leader_of = followers(list(silent.values()))
    slugs = {finding.sender.deployment_id: finding.labels.slug for finding in findings}
    led = []
    for finding in findings:
        leader = leader_of.get(finding.sender.deployment_id)
        pages = finding.silence.pages and leader is None
        rule = finding.rule if pages else replace(finding.rule, severity="info")
        led.append(replace(finding, rule=rule, follows=None if leader is None else slugs[leader]))
    return led


def _apply(project: _Project, finding: _Finding) -> bool:
    """Open the alert of a silent deployment, or raise one that was information so far; whether it is new."""
    connection, deployment_id, rule = project.connection, finding.sender.deployment_id, finding.rule
    evidence = evidence_of(finding.sender, finding.silence, finding.members)
    if finding.follows is not None:
        evidence["together_with"] = finding.follows
    alert = alert_transitions.open_alert(connection, project.id, deployment_id, rule.name, ALL_ROBOTS)
    if not finding.is_news(alert):
        return False
    if alert is None:
        alert_moves.apply_input(connection, project.id, deployment_id, rule, ALL_ROBOTS, "breach", evidence)
        _stop_data(connection, project.id, deployment_id)
    else:
        alert_moves.raise_severity(connection, project.id, alert, rule.severity, evidence)
    presence.save(connection, project.id, [replace(finding.sender, silence=finding.silence.word)])
    project.settle(finding.labels)
    return finding.sender.silence is None


def _missed_robots(project: _Project, robots: Sequence[tuple[SenderPresence, datetime]]) -> list[_Finding]:
    """Robots that are quiet while their deployment is heard: information, whatever the rule's severity."""
    findings = []
    for robot, others_at in robots:
        if robot.robot in project.resting:
            continue
        labels = project.labels(robot.deployment_id)
        rules = [one for one in project.rules_for(labels) if is_missed(robot, others_at, one[1], project.now)]
        if not rules:
            continue
        around = project.context(robot, labels)
        for rule, params in rules:
            silence = judge(robot, params, project.now, around)
            if silence is not None:
                findings.append(_Finding(robot, labels, replace(rule, severity="info"), silence))
        if len(findings) >= MOST_AT_ONCE:
            break
    return findings


def _miss(project: _Project, finding: _Finding) -> None:
    robot, evidence = finding.sender, evidence_of(finding.sender, finding.silence)
    alert_moves.apply_input(
        project.connection, project.id, robot.deployment_id, finding.rule, robot.series, "breach", evidence
    )
    presence.save(project.connection, project.id, [replace(robot, silence=finding.silence.word)])
    project.settle(finding.labels)


def _stop_data(connection: Connection, project_id: int, deployment_id: int) -> None:
    """Other alerts of a silent deployment wait for data; a rest at night is no silence and stops nothing."""
    progress = watch_queue.progress(connection, project_id, deployment_id)
    progress.silent = True
    watch_queue.save_progress(connection, project_id, deployment_id, progress)
    alert_moves.note_data(connection, project_id, deployment_id, "data_stopped")
