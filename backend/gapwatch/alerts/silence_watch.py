"""Listening: who was heard, whose silence is over, and by the clock who should be sending and is not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
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
    robots: Sequence[SenderPresence]
    link_base: str

    def members(self, deployment_id: int) -> list[SenderPresence]:
        """The robots that work in a deployment."""
        return [
            robot
            for robot in self.robots
            if robot.deployment_id == deployment_id and robot.robot not in self.resting
        ]

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
        return labels_of(self.connection, self.id, deployment_id)

    def settle(self, labels: DeploymentLabels) -> None:
        settle(self.connection, labels, self.rules, self.link_base)


def _step(project_id: int, link_base: str) -> Callable[[Connection], int]:
    def step(connection: Connection) -> int:
        rules = [rule for rule in alert_settings.rules(connection, project_id) if rule.enabled]
        after = [rule.params.after_minutes for rule in rules if isinstance(rule.params, NoDataParams)]
        if not after or not watch_queue.try_lock_project(connection, project_id):
            return 0
        quiet_for = timedelta(minutes=min(after))
        if not presence.has_quiet_senders(connection, project_id, quiet_for):
            return 0
        # Who seems quiet may be in what was accepted and not watched yet.
        if presence.is_behind(connection, project_id):
            return 0
        now = watch_queue.now(connection)
        project = _Project(
            connection,
            project_id,
            now,
            rules,
            presence.outages(connection, now),
            robot_statuses.resting_robots(connection, project_id),
            robot_statuses.at_work_since(connection, project_id),
            calendars.calendars_of(connection, project_id),
            presence.robots_heard_since(connection, project_id, now - GONE_AFTER),
            link_base,
        )
        _end_needless_alerts(project)
        deployments = presence.deployments(connection, project_id)
        return _find_silent_deployments(project, deployments) + _find_missed_robots(project, deployments)

    return step


def _end_needless_alerts(project: _Project) -> None:
    """A robot that moved or rests is not silent, nor is a deployment whose robots all do."""
    where = {robot.series: robot.deployment_id for robot in project.robots}
    for alert in alert_transitions.open_alerts_of_kind(project.connection, project.id, "no_data"):
        name = alert.series.removeprefix("robot:")
        if alert.series == ALL_ROBOTS:
            note = None if project.members(alert.deployment_id) else "no robot works here any more"
        elif name in project.resting:
            note = "not at work: parked, in repair or retired"
        else:
            moved = where.get(alert.series, alert.deployment_id) != alert.deployment_id
            note = "heard in another deployment" if moved else None
        if note is not None:
            watch_queue.lock_deployment(project.connection, project.id, alert.deployment_id)
            alert_moves.move_alert(
                project.connection, project.id, alert, "recovery", alert_moves.SERVICE, note, alert.evidence
            )
            project.settle(project.labels(alert.deployment_id))


@dataclass(frozen=True)
class _Finding:
    """A deployment whose silence is news by a rule."""

    deployment: SenderPresence
    labels: DeploymentLabels
    rule: Rule
    silence: Silence
    members: Sequence[SenderPresence]


def _find_silent_deployments(project: _Project, deployments: Sequence[SenderPresence]) -> int:
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
    return sum(_apply(project, finding, follows) for finding, follows in _with_leaders(project, findings))


def _with_leaders(project: _Project, findings: Sequence[_Finding]) -> list[tuple[_Finding, str | None]]:
    """Each finding with the deployment it follows: of those that lost one uplink together only one pages."""
    told = {
        alert.deployment_id
        for alert in alert_transitions.open_alerts_of_kind(project.connection, project.id, "no_data")
        if alert.series == ALL_ROBOTS and alert.severity != "info"
    }
    silent = {
        finding.deployment.deployment_id: SilentDeployment(
            finding.deployment.deployment_id,
            finding.labels.site,
            finding.deployment.heard_at,
            finding.deployment.deployment_id in told,
        )
        for finding in findings
        if finding.silence.pages
    }
    leader_of = followers(list(silent.values()))
    slugs = {finding.deployment.deployment_id: finding.labels.slug for finding in findings}
    pairs = []
    for finding in findings:
        leader = leader_of.get(finding.deployment.deployment_id)
        pairs.append((finding, None if leader is None else slugs[leader]))
    return pairs


def _apply(project: _Project, finding: _Finding, follows: str | None) -> bool:
    """Open the alert of a silent deployment, or raise one that was information so far; whether it is new."""
    connection, deployment_id = project.connection, finding.deployment.deployment_id
    pages = finding.silence.pages and follows is None
    rule = finding.rule if pages else replace(finding.rule, severity="info")
    evidence = evidence_of(finding.deployment, finding.silence, finding.members)
    if follows is not None:
        evidence["together_with"] = follows
    watch_queue.lock_deployment(connection, project.id, deployment_id)
    alert = alert_transitions.open_alert(connection, project.id, deployment_id, rule.name, ALL_ROBOTS)
    if alert is None and finding.deployment.silence is None:
        alert_moves.apply_input(connection, project.id, deployment_id, rule, ALL_ROBOTS, "breach", evidence)
        _stop_data(connection, project.id, deployment_id)
    elif alert is not None and rank(rule.severity) > rank(alert.severity):
        alert_moves.raise_severity(connection, project.id, alert, rule.severity, evidence)
    else:
        return False
    is_new = finding.deployment.silence is None
    presence.save(connection, project.id, [replace(finding.deployment, silence=finding.silence.word)])
    project.settle(finding.labels)
    return is_new


def _find_missed_robots(project: _Project, deployments: Sequence[SenderPresence]) -> int:
    """Robots that are quiet while their deployment is heard: information, whatever the rule's severity."""
    heard_at = {deployment.deployment_id: deployment.heard_at for deployment in deployments}
    missed = 0
    for robot in project.robots:
        others_at = heard_at.get(robot.deployment_id)
        if robot.silence is not None or robot.robot in project.resting or others_at is None:
            continue
        if project.now - robot.heard_at < timedelta(minutes=1) or others_at <= robot.heard_at:
            continue
        labels = project.labels(robot.deployment_id)
        around = project.context(robot, labels)
        for rule, params in project.rules_for(labels):
            if not is_missed(robot, others_at, params, project.now):
                continue
            silence = judge(robot, params, project.now, around)
            if silence is None:
                continue
            watch_queue.lock_deployment(project.connection, project.id, robot.deployment_id)
            alert_moves.apply_input(
                project.connection,
                project.id,
                robot.deployment_id,
                replace(rule, severity="info"),
                robot.series,
                "breach",
                evidence_of(robot, silence),
            )
            presence.save(project.connection, project.id, [replace(robot, silence=silence.word)])
            project.settle(labels)
            missed += 1
    return missed


def _stop_data(connection: Connection, project_id: int, deployment_id: int) -> None:
    """Other alerts of a silent deployment wait for data; a rest at night is no silence and stops nothing."""
    progress = watch_queue.progress(connection, project_id, deployment_id)
    progress.silent = True
    watch_queue.save_progress(connection, project_id, deployment_id, progress)
    alert_moves.note_data(connection, project_id, deployment_id, "data_stopped")
