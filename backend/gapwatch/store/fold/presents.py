"""The present of every deployment: one row each, made anew from its newest episodes whenever those change.

Whoever makes a row holds its lock from before reading until the end of the transaction, so that nobody writes an
older one over it: the fold, the watch when it establishes a change, and a person who pins a baseline.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

import msgspec
from sqlalchemy import Connection, text

from gapwatch.tally.presents import ATTEMPTS, PresentFacts, RecentAttempt, StoredPresent, make_present

# Deployments whose attempts are in memory together.
AT_ONCE = 50

_LOCK = text("""
SELECT pg_advisory_xact_lock(hashtextextended(concat('present/', CAST(:p AS int), '/', id), 0))
FROM unnest(CAST(:ids AS int[])) AS id ORDER BY id
""")
# What the watch finds episodes worth changes with each of them; in tenths it seldom does.
# The first hour of a version comes from the counts; within it, and where that hour was emptied since, from the
# episodes.
_FACTS = text("""
SELECT d.id, d.policy_id, d.task_id, first.started_at AS version_since, b.pinned_at,
       NOT EXISTS (SELECT 1 FROM rollup_counts c WHERE c.project_id = d.project_id AND c.domain = 'real'
           AND c.source_id = d.id AND c.tier = 'month' AND (c.policy_id, c.task_id) <> (d.policy_id, d.task_id)
           AND c.successes + c.failures > 0) AS is_first_version,
       (SELECT max(a.changed_at) FROM alerts a WHERE a.project_id = d.project_id AND a.deployment_id = d.id
           AND a.changed_at IS NOT NULL AND a.series = 'success' AND a.kind IN ('drift', 'drop')
           AND a.state <> 'pending' AND NOT a.dry_run) AS changed_at,
       coalesce((SELECT ceil((x.state -> 'clusters' ->> 1)::float8 * 10) / 10 FROM detectors x
           WHERE x.project_id = d.project_id AND x.deployment_id = d.id AND x.series = 'success'
             AND x.state ? 'clusters' ORDER BY x.rule LIMIT 1), 1) AS design_effect
FROM deployments d
LEFT JOIN baselines b ON b.project_id = d.project_id AND b.deployment_id = d.id
LEFT JOIN LATERAL (
    SELECT e.started_at FROM episodes e
    WHERE e.project_id = d.project_id AND e.deployment_id = d.id AND e.domain = 'real'
      AND e.policy_id = d.policy_id AND e.task_id = d.task_id AND e.outcome IN ('success', 'failure')
      AND e.started_at >= (
        SELECT min(c.bucket_at) FROM rollup_counts c WHERE c.project_id = d.project_id AND c.domain = 'real'
          AND c.source_id = d.id AND c.policy_id = d.policy_id AND c.task_id = d.task_id AND c.tier = 'hour'
          AND c.successes + c.failures > 0)
    ORDER BY e.started_at LIMIT 1
) AS first ON true
WHERE d.project_id = :p AND d.id = ANY(:ids) ORDER BY d.id
""")
_ATTEMPTS = text("""
SELECT d.id AS deployment_id, e.started_at, e.outcome, e.policy_id, e.task_id, r.name AS robot, e.session
FROM unnest(CAST(:ids AS int[])) AS d (id) CROSS JOIN LATERAL (
    SELECT x.started_at, x.id, x.outcome, x.policy_id, x.task_id, x.robot_id, x.session FROM episodes x
    WHERE x.project_id = :p AND x.deployment_id = d.id AND x.domain = 'real'
    ORDER BY x.started_at DESC, x.id DESC LIMIT :most
) AS e LEFT JOIN robots r ON r.project_id = :p AND r.id = e.robot_id
ORDER BY d.id, e.started_at DESC, e.id DESC
""")
_PUT = text("""
INSERT INTO presents AS p (project_id, deployment_id, policy_id, since, version_since, body)
SELECT :p, * FROM unnest(CAST(:deployments AS int[]), CAST(:policies AS int[]), CAST(:since AS timestamptz[]),
    CAST(:version_since AS timestamptz[]), CAST(:bodies AS jsonb[]))
ON CONFLICT (project_id, deployment_id) DO UPDATE SET policy_id = excluded.policy_id, since = excluded.since,
    version_since = excluded.version_since, body = excluded.body, computed_at = now()
""")
_MISSING = """
FROM deployments d WHERE NOT EXISTS (
    SELECT 1 FROM presents p WHERE p.project_id = d.project_id AND p.deployment_id = d.id)
"""


def refresh_presents(connection: Connection, project_id: int, deployment_ids: Collection[int]) -> None:
    """Make the presents of some deployments anew; each costs the same however much is stored of it."""
    ids = sorted(deployment_ids)
    for start in range(0, len(ids), AT_ONCE):
        part = ids[start : start + AT_ONCE]
        connection.execute(_LOCK, {"p": project_id, "ids": part})
        made = dict(make_presents(connection, project_id, part))
        if made:
            connection.execute(
                _PUT,
                {
                    "p": project_id,
                    "deployments": list(made),
                    "policies": [present.facts.policy_id for present in made.values()],
                    "since": [present.since for present in made.values()],
                    "version_since": [present.facts.version_since for present in made.values()],
                    "bodies": [msgspec.json.encode(present).decode() for present in made.values()],
                },
            )


def make_presents(
    connection: Connection, project_id: int, deployment_ids: Collection[int]
) -> Iterator[tuple[int, StoredPresent]]:
    """What the rows of these deployments have to hold."""
    return _from_facts(connection, project_id, facts_of(connection, project_id, deployment_ids))


def _from_facts(
    connection: Connection, project_id: int, facts: Mapping[int, PresentFacts]
) -> Iterator[tuple[int, StoredPresent]]:
    rows = connection.execute(_ATTEMPTS, {"p": project_id, "ids": list(facts), "most": ATTEMPTS}).all()
    attempts = {
        deployment_id: [RecentAttempt(*row[1:]) for row in of_one]
        for deployment_id, of_one in groupby(rows, attrgetter("deployment_id"))
    }
    for deployment_id, known in facts.items():
        yield deployment_id, make_present(attempts.get(deployment_id, []), known)


def differing_presents(
    connection: Connection, project_id: int, due: Collection[int]
) -> tuple[int, list[tuple[int, StoredPresent | None, StoredPresent]]]:
    """How many rows with episodes were compared, and which differ from what these say: stored and computed.

    Deployments with episodes still to be folded are left out. What the watch established is taken as it stood when
    it was last looked at: it goes on between two folds.
    """
    stored = stored_presents(connection, project_id)
    rows = connection.execute(text("SELECT id FROM deployments WHERE project_id = :p"), {"p": project_id})
    ids = sorted({row.id for row in rows} - set(due))
    found = []
    for start in range(0, len(ids), AT_ONCE):
        part = ids[start : start + AT_ONCE]
        facts = facts_of(connection, project_id, part)
        for deployment_id, known in facts.items():
            if deployment_id in stored:
                then = stored[deployment_id].facts
                facts[deployment_id] = replace(known, changed_at=then.changed_at, design_effect=then.design_effect)
        for deployment_id, computed in _from_facts(connection, project_id, facts):
            if stored.get(deployment_id) != computed:
                found.append((deployment_id, stored.get(deployment_id), computed))
    return sum(present.since is not None for present in stored.values()), found


def facts_of(connection: Connection, project_id: int, deployment_ids: Collection[int]) -> dict[int, PresentFacts]:
    rows = connection.execute(_FACTS, {"p": project_id, "ids": list(deployment_ids)})
    return {
        row.id: PresentFacts(
            row.policy_id,
            row.task_id,
            row.version_since,
            row.is_first_version,
            row.changed_at,
            row.pinned_at,
            row.design_effect,
        )
        for row in rows
    }


def stored_presents(connection: Connection, project_id: int) -> dict[int, StoredPresent]:
    rows = connection.execute(
        text("SELECT deployment_id, body FROM presents WHERE project_id = :p ORDER BY deployment_id"),
        {"p": project_id},
    )
    return {row.deployment_id: read_present(row.body) for row in rows}


_DECODER = msgspec.json.Decoder(StoredPresent)


def decode_present(body: str) -> StoredPresent:
    return _DECODER.decode(body)


def read_present(body: object) -> StoredPresent:
    return msgspec.convert(body, StoredPresent)


def are_missing(connection: Connection) -> bool:
    """Whether a deployment has no present yet: one that was stored before presents were kept."""
    return bool(connection.execute(text(f"SELECT EXISTS (SELECT 1 {_MISSING})")).scalar_one())


def fill_missing(connection: Connection) -> int:
    """Make some of those that are missing; returns how many."""
    rows = connection.execute(
        text(f"SELECT d.project_id, d.id {_MISSING} ORDER BY 1, 2 LIMIT :most"),
        {"most": AT_ONCE},
    ).all()
    for project_id, of_one in groupby(rows, attrgetter("project_id")):
        refresh_presents(connection, project_id, [row.id for row in of_one])
    return len(rows)


def refresh_where_facts_changed(connection: Connection, project_id: int, deployment_id: int) -> None:
    """After the watch: what it established may start another regime."""
    known = facts_of(connection, project_id, [deployment_id]).get(deployment_id)
    body = connection.execute(
        text("SELECT body -> 'facts' FROM presents WHERE project_id = :p AND deployment_id = :d"),
        {"p": project_id, "d": deployment_id},
    ).scalar_one_or_none()
    if body is not None and msgspec.convert(body, PresentFacts) != known:
        refresh_presents(connection, project_id, [deployment_id])
