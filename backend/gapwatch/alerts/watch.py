"""Watching: folded episodes through the rules of their project, alerts moved and people told, in one
transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from gapwatch.alerts.categories import judge_categories
from gapwatch.alerts.deployment_labels import labels_of
from gapwatch.alerts.incident_updates import settle
from gapwatch.alerts.planned_rules import rules_with_plan
from gapwatch.alerts.rewatch import note_simulation, rewatch_due, split_history
from gapwatch.alerts.silence_watch import hear_robots
from gapwatch.errors import ServiceUnavailable
from gapwatch.incidents import alert_moves, robot_actions
from gapwatch.step_sizes import Turn, growing_steps
from gapwatch.store.alerting import (
    alert_settings,
    detectors,
    watch_queue,
)
from gapwatch.store.core.database import Connection, Database
from gapwatch.store.fold import presents
from gapwatch.watching.engine import watch_episodes
from gapwatch.watching.rules import Rule
from gapwatch.watching.series import SeenEpisode

log = structlog.get_logger()

EPISODES_AT_MOST = 20_000
# What a deployment costs beside its episodes: some ten queries, and a lock that is held to the end of the step.
EPISODES_A_DEPLOYMENT = 50


def watch_due_episodes(database: Database, link_base: str, turn: Turn | None = None) -> int:
    """Watch until nothing is due or the turn is over; return the number of steps.

    One step a project in turn: a busy one does not keep the others waiting, nor does one that fails.
    """
    turn = turn or Turn()
    done = 0
    for episodes in growing_steps(EPISODES_AT_MOST):
        projects = database.run(watch_queue.projects_due)
        count = sum(_try_step(database, project_id, episodes, link_base) for project_id in projects)
        done += count
        if not count or turn.is_over():
            break
    return done + rewatch_due(database, link_base, turn)


def _try_step(database: Database, project_id: int, episodes: int, link_base: str) -> bool:
    try:
        return database.run(_step(project_id, episodes, link_base))
    except ServiceUnavailable:
        # The server is away, not a project to blame: the next sweep comes back.
        raise
    except Exception:
        # Nothing of the step is stored; `/readyz` shows how long its batches have been waiting.
        log.exception("watch failed", project_id=project_id)
        return False


def _step(project_id: int, most: int, link_base: str) -> Callable[[Connection], bool]:
    def step(connection: Connection) -> bool:
        if not watch_queue.try_lock_project(connection, project_id):
            return False
        due = watch_queue.due_rows(connection, project_id, most)
        if not due:
            return False
        places = watch_queue.places_of(connection, project_id, due)
        # Those that wait longest, of each all its episodes of these rows; locked in the order of their numbers.
        chosen = sorted(list(dict.fromkeys(places.values()))[: max(1, most // EPISODES_A_DEPLOYMENT)])
        rules = [rule for rule in alert_settings.rules(connection, project_id) if rule.enabled]
        episodes = watch_queue.episodes_of(connection, project_id, due, chosen)
        for deployment_id in sorted(episodes):
            watch_queue.lock_deployment(connection, project_id, deployment_id)
            _watch_deployment(connection, project_id, deployment_id, rules, episodes[deployment_id], link_base)
            presents.refresh_where_facts_changed(connection, project_id, deployment_id)
        later = {episode_id for episode_id, deployment_id in places.items() if deployment_id not in chosen}
        done = [episode_id for row in due for episode_id in row.episode_ids if episode_id not in later]
        note_simulation(connection, project_id, done)
        watch_queue.finish_rows(connection, project_id, due, later)
        return True

    return step


def _watch_deployment(
    connection: Connection,
    project_id: int,
    deployment_id: int,
    rules: Sequence[Rule],
    episodes: list[SeenEpisode],
    link_base: str,
) -> None:
    labels = labels_of(connection, project_id, deployment_id)
    mine = rules_with_plan(
        connection, labels, [rule for rule in rules if rule.match.fits({**labels.words, "rule": None})]
    )
    progress = watch_queue.progress(connection, project_id, deployment_id)
    in_time = split_history(connection, project_id, deployment_id, episodes, is_new=progress.episodes == 0)
    for episode in in_time:
        progress.newest_started_at = max(progress.newest_started_at or episode.started_at, episode.started_at)
        progress.newest_received_at = episode.received_at
    stored = detectors.load(connection, project_id, deployment_id)
    findings, states = watch_episodes(
        mine,
        stored,
        in_time,
        count=progress.episodes,
        sim_counts=_remembered(connection, project_id, deployment_id),
        sim_cells=lambda policy_id: watch_queue.sim_cells(connection, project_id, deployment_id, policy_id),
        seed=deployment_id,
    )
    detectors.save(connection, project_id, deployment_id, states)
    hear_robots(connection, labels, mine, episodes)
    robot_actions.note_at_work(connection, project_id, deployment_id, episodes)
    if progress.silent and in_time:
        progress.silent = False
        alert_moves.note_data(connection, project_id, deployment_id, "data_again")
    alert_moves.end_alerts_of_missing_rules(connection, project_id, deployment_id, {rule.name for rule in mine})
    for finding in findings:
        alert_moves.apply_input(
            connection,
            project_id,
            deployment_id,
            finding.rule,
            finding.series,
            finding.input,
            finding.evidence,
        )
    before = progress.episodes
    progress.episodes += len(in_time)
    progress.late += len(episodes) - len(in_time)
    watch_queue.save_progress(connection, project_id, deployment_id, progress)
    if in_time:
        newest = progress.newest_started_at or in_time[-1].started_at
        judge_categories(connection, labels, mine, before, progress.episodes, newest)
    alert_moves.note_standing(connection, project_id, deployment_id, stored | states)
    settle(connection, labels, rules, link_base)


def _remembered(connection: Connection, project_id: int, deployment_id: int) -> Callable[[int], tuple[int, int]]:
    """Cache sim counts by policy version for one step."""
    known: dict[int, tuple[int, int]] = {}

    def counts(policy_id: int) -> tuple[int, int]:
        if policy_id not in known:
            known[policy_id] = watch_queue.sim_counts(connection, project_id, deployment_id, policy_id)
        return known[policy_id]

    return counts
