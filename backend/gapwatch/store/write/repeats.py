"""The same content again under new ids: stored and counted, and known to be a repeat.

Looked for among the episodes of the same deployment, or of the same policy and task in sim, that started at the
same moment: an index that is there finds them. Of a large batch some are looked for, and all if one of those is a
repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from psycopg import AsyncConnection

from gapwatch.store.write.new_episodes import NewEpisode

MOST_PROBED = 32
# Simulators may start thousands at once, all different.
MOST_AT_ONCE = 20
# A few at a time: one statement must not hold up others.
AT_ONCE = 2000

_FIND = """
SELECT sent.number, e.id, e.content_hash
FROM unnest(%(deployments)s::int[], %(policies)s::int[], %(tasks)s::int[], %(times)s::timestamptz[])
     WITH ORDINALITY AS sent (deployment_id, policy_id, task_id, started_at, number)
CROSS JOIN LATERAL (
    (SELECT id, content_hash FROM episodes WHERE project_id = (SELECT %(project_id)s::int)
       AND deployment_id = sent.deployment_id AND started_at = sent.started_at LIMIT %(most)s)
    UNION ALL
    (SELECT id, content_hash FROM episodes WHERE project_id = (SELECT %(project_id)s::int)
       AND sent.deployment_id IS NULL AND domain = 'sim' AND policy_id = sent.policy_id
       AND task_id = sent.task_id AND started_at = sent.started_at LIMIT %(most)s)) AS e
"""
_NOTE = """
INSERT INTO repeated_episodes (project_id, episode_id, first_id, policy_id, deployment_id, simulator_id)
SELECT e.project_id, e.id, sent.first_id, e.policy_id, e.deployment_id, e.simulator_id
FROM unnest(%(ids)s::text[], %(firsts)s::text[]) AS sent (id, first_id)
JOIN episodes e ON e.project_id = %(project_id)s AND e.id = sent.id
ON CONFLICT DO NOTHING
"""
_FORGET = "DELETE FROM repeated_episodes WHERE project_id = %s AND episode_id = %s"


async def find_repeats(connection: AsyncConnection, episodes: Sequence[NewEpisode]) -> dict[tuple[int, str], str]:
    """Return project and id of those that repeat a stored or an earlier episode, with the id of that one."""
    repeats = _within(episodes)
    by_project: dict[int, list[NewEpisode]] = {}
    for episode in episodes:
        if episode.context.description is not None:
            by_project.setdefault(episode.context.project_id, []).append(episode)
    for project_id, sent in by_project.items():
        probed = sent[:: -(-len(sent) // MOST_PROBED)]
        found = await _find(connection, project_id, probed)
        if found and len(probed) < len(sent):
            for start in range(0, len(sent), AT_ONCE):
                found |= await _find(connection, project_id, sent[start : start + AT_ONCE])
        repeats |= {(project_id, id_): first for id_, first in found.items()}
    return repeats


async def note_repeats(connection: AsyncConnection, repeats: dict[tuple[int, str], str]) -> None:
    """Keep them, in the transaction that stores them."""
    by_project: dict[int, list[tuple[str, str]]] = {}
    for (project_id, id_), first in sorted(repeats.items()):
        by_project.setdefault(project_id, []).append((id_, first))
    for project_id, pairs in by_project.items():
        parameters = {"project_id": project_id, "ids": [i for i, _ in pairs], "firsts": [f for _, f in pairs]}
        await connection.execute(_NOTE, parameters)


async def forget_repeat(connection: AsyncConnection, project_id: int, episode_id: str) -> None:
    """What is corrected or deleted repeats nothing any more."""
    await connection.execute(_FORGET, (project_id, episode_id))


def _within(episodes: Sequence[NewEpisode]) -> dict[tuple[int, str], str]:
    """Repeats of one another. Nearly always all start at different moments, and there is nothing to compare."""
    if len({episode.started_at for episode in episodes}) == len(episodes):
        return {}
    firsts: dict[tuple[int, datetime, bytes], str] = {}
    repeats = {}
    for episode in episodes:
        if episode.is_measured:
            project_id = episode.context.project_id
            first = firsts.setdefault((project_id, episode.started_at, episode.content_without_id), episode.id)
            if first != episode.id:
                repeats[project_id, episode.id] = first
    return repeats


async def _find(connection: AsyncConnection, project_id: int, episodes: Sequence[NewEpisode]) -> dict[str, str]:
    episodes = [episode for episode in episodes if episode.is_measured]
    if not episodes:
        return {}
    places = [_place(episode) for episode in episodes]
    parameters = {
        "project_id": project_id,
        "most": MOST_AT_ONCE,
        "deployments": [deployment_id for deployment_id, _, _ in places],
        "policies": [policy_id for _, policy_id, _ in places],
        "tasks": [task_id for _, _, task_id in places],
        "times": [episode.started_at for episode in episodes],
    }
    rows = await (await connection.execute(_FIND, parameters)).fetchall()
    found: dict[str, str] = {}
    for number, id_, content_hash in rows:
        episode = episodes[number - 1]
        if episode.id not in found and episode.hash_as(id_) == bytes(content_hash):
            found[episode.id] = id_
    return found


def _place(episode: NewEpisode) -> tuple[int | None, int, int]:
    """Deployment, policy and task of an episode whose names are all registered."""
    context = episode.context
    assert context.description is not None  # noqa: S101 - only such are looked for
    return context.deployment_id, context.description.policy_id, context.description.task_id
