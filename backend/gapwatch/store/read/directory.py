"""Deployments, policies, simulators and tasks by name, and what a project has decided."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, TextClause, text

from gapwatch.store.core.event_scope import concerns
from gapwatch.store.fold.presents import decode_present, read_present
from gapwatch.tally.presents import StoredPresent


@dataclass(frozen=True)
class Deployment:
    """What the newest episode of a deployment says of it, and the simulator it is pinned to.

    Of a deployment with a rollout, `stage` is the one that people decided on, and `gate` how its gate stands.
    """

    id: int
    slug: str
    policy_id: int
    policy: str
    version: str
    task_id: int
    task: str
    site: str | None
    stage: str | None
    described_at: datetime
    pinned_simulator_id: int | None
    last_episode_at: datetime
    gate: str | None = None


_DEPLOYMENTS = """
SELECT d.id, d.slug, d.policy_id, p.name AS policy, p.version, d.task_id, t.name AS task, s.name AS site,
       coalesce(r.stage, d.stage) AS stage,
       CASE r.state WHEN 'stop' THEN 'stopped' WHEN 'fallback' THEN 'on its fallback' ELSE r.gate ->> 'verdict' END
           AS gate, d.described_at, b.simulator_id AS pinned_simulator_id,
       coalesce((SELECT max(e.started_at) FROM episodes e
                 WHERE e.project_id = d.project_id AND e.deployment_id = d.id), d.described_at) AS last_episode_at
FROM deployments d
JOIN policies p ON p.project_id = d.project_id AND p.id = d.policy_id
JOIN tasks t ON t.project_id = d.project_id AND t.id = d.task_id
LEFT JOIN sites s ON s.project_id = d.project_id AND s.id = d.site_id
LEFT JOIN baselines b ON b.project_id = d.project_id AND b.deployment_id = d.id
LEFT JOIN rollouts r ON r.project_id = d.project_id AND r.deployment_id = d.id
WHERE d.project_id = :p
"""


def find_deployment(connection: Connection, project_id: int, slug: str) -> Deployment | None:
    statement = text(f"{_DEPLOYMENTS} AND d.slug = :slug")
    row = connection.execute(statement, {"p": project_id, "slug": slug}).mappings().first()
    return None if row is None else Deployment(**row)


@dataclass(frozen=True)
class DatedEvent:
    """A dated fact that may explain a change: a release, a calibration, a mitigation.

    `robots` and `site` are those that it names as its own, if it does.
    """

    kind: str
    at: datetime
    title: str
    robots: tuple[str, ...] = ()
    site: str | None = None
    id: int = 0


@dataclass(frozen=True)
class Surroundings:
    """What a comparison needs to know beside its sides, so that one query brings all of it."""

    options: Mapping[str, Any]
    simulators: Mapping[int, tuple[str, str]]
    pooled: Mapping[str, int]
    versions: Mapping[int, str]
    metrics: tuple[str, ...] = ()
    events: tuple[DatedEvent, ...] = ()
    # How the watch found successes to come in runs: between what, and the design effect. None where it did not.
    clusters: tuple[str, float] | None = None
    # Of a deployment, its present and when that was made.
    present: StoredPresent | None = None
    computed_at: datetime | None = None
    # By policy version, of each deployment that runs it now: when its regime began, and its version.
    began: Mapping[int, tuple[tuple[datetime | None, datetime | None], ...]] = field(default_factory=dict)
    # Stored episodes that say what others say under other ids; of more than 10,000, that many and one.
    repeated: int = 0
    # Whether a deployment ever had an episode in shadow.
    has_shadow: bool = False
    # Whether any mitigation of the project was ever told of.
    has_mitigations: bool = False
    # Its rollout and the newest decisions about it, as `store.rollout.rollouts.read_rollout` takes them.
    rollout: Mapping[str, Any] | None = None
    # Whether the project declared a randomisation range or identified anything.
    has_ranges: bool = False


_SURROUNDINGS = """
SELECT p.options,
       (SELECT jsonb_object_agg(s.id, jsonb_build_array(s.name, s.version)) FROM simulators s
        WHERE s.project_id = p.id) AS simulators,
       (SELECT jsonb_object_agg(c.name, c.levels ORDER BY c.levels) FROM pooled_conditions c JOIN policies v
        ON v.project_id = c.project_id AND v.id = c.policy_id AND v.name = {policy}
        WHERE c.project_id = p.id) AS pooled,
       (SELECT jsonb_object_agg(v.id, v.version) FROM policies v
        WHERE v.project_id = p.id AND v.name = {policy}) AS versions,
       ARRAY(SELECT DISTINCT unnest(n.names) AS name FROM name_sets n
             WHERE n.project_id = p.id AND n.kind = 'metric' ORDER BY name LIMIT 300) AS metrics,
       (SELECT jsonb_agg(jsonb_build_array(e.kind, e.at, e.title, e.details, e.id)) FROM
           (SELECT kind, at, title, details, id FROM events e WHERE project_id = :p
              AND at BETWEEN '2000-01-01' AND now() + interval '1 day'
              AND {concerns} ORDER BY at DESC, id DESC LIMIT 100) e
       ) AS events,
       (SELECT x.state -> 'clusters' FROM detectors x WHERE x.project_id = :p AND x.deployment_id = {deployment}
          AND x.series = 'success' AND x.state ? 'clusters' ORDER BY x.rule LIMIT 1) AS clusters,
       (SELECT jsonb_build_array(n.body, n.computed_at) FROM presents n
        WHERE n.project_id = :p AND n.deployment_id = {deployment}) AS present,
       (SELECT count(*) FROM (SELECT 1 FROM repeated_episodes r WHERE r.project_id = :p AND r.policy_id IN
            (SELECT v.id FROM policies v WHERE v.project_id = p.id AND v.name = {policy})
            AND ({deployment} IS NULL OR r.deployment_id IS NULL OR r.deployment_id = {deployment})
            LIMIT 10001) x) AS repeated,
       (SELECT jsonb_build_object('row', to_jsonb(o), 'decisions', ARRAY(
            SELECT jsonb_build_object(
                'id', c.id, 'kind', c.kind, 'from_stage', c.from_stage, 'to_stage', c.to_stage, 'state', c.state,
                'revision', c.revision, 'who', c.who, 'reason', c.reason, 'is_override', c.is_override, 'at', c.at,
                'packet_hash', c.packet_hash, 'previous_hash', c.previous_hash)
            FROM decisions c
            WHERE c.project_id = o.project_id AND c.deployment_id = o.deployment_id ORDER BY c.id DESC LIMIT 20))
        FROM rollouts o WHERE o.project_id = :p AND o.deployment_id = {deployment}) AS rollout,
       (SELECT jsonb_agg(jsonb_build_array(n.policy_id, n.since, n.version_since)) FROM presents n
        WHERE {deployment} IS NULL AND n.project_id = :p AND n.policy_id IN
            (SELECT v.id FROM policies v WHERE v.project_id = p.id AND v.name = {policy})) AS began,
       EXISTS (SELECT 1 FROM episodes x WHERE x.project_id = :p AND x.deployment_id = {deployment}
               AND x.domain = 'shadow') AS has_shadow,
       EXISTS (SELECT 1 FROM simulator_ranges g WHERE g.project_id = p.id)
           OR EXISTS (SELECT 1 FROM events g WHERE g.project_id = p.id AND g.details ? 'values') AS has_ranges,
       EXISTS (SELECT 1 FROM events m WHERE m.project_id = :p AND m.kind = 'mitigation') AS has_mitigations
FROM projects p WHERE p.id = :p
"""


def find_subject(connection: Connection, project_id: int, slug: str) -> tuple[Deployment, Surroundings] | None:
    """A deployment and what surrounds it."""
    around = _SURROUNDINGS.format(policy="d.policy", deployment="d.id", concerns=concerns("d.id", "d.slug"))
    statement = text(
        f"SELECT d.*, a.* FROM ({_DEPLOYMENTS} AND d.slug = :slug) d CROSS JOIN LATERAL ({around}) a"  # noqa: S608
    )
    row = connection.execute(statement, {"p": project_id, "slug": slug}).mappings().first()
    if row is None:
        return None
    return Deployment(**{field.name: row[field.name] for field in fields(Deployment)}), _surroundings(row)


def surroundings(connection: Connection, project_id: int, policy: str) -> Surroundings:
    # Of all its deployments: what concerns one of them only is shown there.
    whole = "deployment_id IS NULL AND awaited IS NULL"
    statement = text(_SURROUNDINGS.format(policy=":policy", deployment="NULL", concerns=whole))
    return _surroundings(connection.execute(statement, {"p": project_id, "policy": policy}).mappings().one())


def _surroundings(row: Any) -> Surroundings:
    versions = {int(number): version for number, version in (row["versions"] or {}).items()}
    return Surroundings(
        row["options"],
        {int(number): (name, version) for number, (name, version) in (row["simulators"] or {}).items()},
        row["pooled"] or {},
        dict(sorted(versions.items())),
        tuple(row["metrics"]),
        tuple(
            DatedEvent(kind, datetime.fromisoformat(at), title, *_named(details or {}), number)
            for kind, at, title, details, number in reversed(row["events"] or [])
        ),
        tuple(row["clusters"]) if row["clusters"] else None,
        read_present(row["present"][0]) if row["present"] else None,
        _time(row["present"][1]) if row["present"] else None,
        _began(row["began"] or []),
        row["repeated"],
        row["has_shadow"],
        row["has_mitigations"],
        row["rollout"],
        row["has_ranges"],
    )


def _named(details: Mapping[str, Any]) -> tuple[tuple[str, ...], str | None]:
    """The robots and the site of an event's details, which may hold anything."""
    robots, site = details.get("robots"), details.get("site")
    names = tuple(name for name in robots if isinstance(name, str)) if isinstance(robots, list) else ()
    return names, site if isinstance(site, str) else None


def _began(rows: list[Any]) -> dict[int, tuple[tuple[datetime | None, datetime | None], ...]]:
    began: dict[int, tuple[tuple[datetime | None, datetime | None], ...]] = {}
    for policy_id, since, version_since in rows:
        began[policy_id] = (*began.get(policy_id, ()), (_time(since), _time(version_since)))
    return began


def _time(text_: str | None) -> datetime | None:
    return None if text_ is None else datetime.fromisoformat(text_)


def deployments(
    connection: Connection, project_id: int, after: str | None = None, limit: int = 1000
) -> list[Deployment]:
    """In order of their slugs, those behind `after`."""
    statement = text(f"{_DEPLOYMENTS} AND d.slug > coalesce(:after, '') ORDER BY d.slug LIMIT :limit")
    return _listed(connection, statement, {"p": project_id, "after": after, "limit": limit})


def busiest_deployments(connection: Connection, project_id: int, limit: int) -> list[Deployment]:
    """In order of their slugs, those with the most episodes: names that somebody made up stand in nobody's way."""
    statement = text(f"""
    {_DEPLOYMENTS} AND d.id = ANY(ARRAY(
        SELECT o.id FROM deployments o
        LEFT JOIN watches w ON w.project_id = o.project_id AND w.deployment_id = o.id
        WHERE o.project_id = :p ORDER BY coalesce(w.episodes, 0) DESC, o.slug LIMIT :limit))
    ORDER BY d.slug
    """)  # noqa: S608 - text of ours
    return _listed(connection, statement, {"p": project_id, "limit": limit})


def _listed(connection: Connection, statement: TextClause, values: Mapping[str, Any]) -> list[Deployment]:
    rows = connection.execute(statement, values)
    return [
        Deployment(
            row.id,
            row.slug,
            row.policy_id,
            row.policy,
            row.version,
            row.task_id,
            row.task,
            row.site,
            row.stage,
            row.described_at,
            row.pinned_simulator_id,
            row.last_episode_at,
            row.gate,
        )
        for row in rows.all()
    ]


class KeptPresent(NamedTuple):
    """A present, when it was made, and how many episodes of sim and of its regime are worth one."""

    present: StoredPresent
    computed_at: datetime
    sim_effect: float
    real_effect: float


def presents(
    connection: Connection, project_id: int, deployment_ids: Collection[int] | None
) -> dict[int, KeptPresent]:
    """The presents of some deployments, or of all."""
    statement = (
        "SELECT deployment_id, body::text AS body, computed_at, sim_effect, real_effect FROM presents"
        " WHERE project_id = :p"
    )
    parameters: dict[str, Any] = {"p": project_id}
    if deployment_ids is not None:
        statement += " AND deployment_id = ANY(:ids)"
        parameters["ids"] = list(deployment_ids)
    rows = connection.execute(text(statement), parameters).all()
    return {
        row.deployment_id: KeptPresent(
            decode_present(row.body), row.computed_at, row.sim_effect or 1.0, row.real_effect or 1.0
        )
        for row in rows
    }


def all_began(connection: Connection, project_id: int) -> list[tuple[datetime | None, datetime | None]]:
    """When the regime and the version of each deployment began."""
    rows = connection.execute(
        text("SELECT since, version_since FROM presents WHERE project_id = :p"), {"p": project_id}
    )
    return [(row.since, row.version_since) for row in rows]


def simulators(connection: Connection, project_id: int) -> dict[int, tuple[str, str]]:
    rows = connection.execute(
        text("SELECT id, name, version FROM simulators WHERE project_id = :p"), {"p": project_id}
    )
    return {row.id: (row.name, row.version) for row in rows}


def policies(connection: Connection, project_id: int, name: str) -> dict[int, str]:
    """The versions of a policy, oldest first."""
    rows = connection.execute(
        text("SELECT id, version FROM policies WHERE project_id = :p AND name = :name ORDER BY id"),
        {"p": project_id, "name": name},
    )
    return {row.id: row.version for row in rows}


def policy_versions(connection: Connection, project_id: int) -> dict[int, tuple[str, str]]:
    """Every policy of a project: name and version."""
    rows = connection.execute(
        text("SELECT id, name, version FROM policies WHERE project_id = :p"), {"p": project_id}
    )
    return {row.id: (row.name, row.version) for row in rows}


def tasks(connection: Connection, project_id: int) -> dict[int, str]:
    rows = connection.execute(text("SELECT id, name FROM tasks WHERE project_id = :p"), {"p": project_id})
    return {row.id: row.name for row in rows}


def project_options(connection: Connection, project_id: int) -> dict[str, Any]:
    """What a project decides for itself: its taxonomy, the direction of its metrics."""
    options = connection.execute(
        text("SELECT options FROM projects WHERE id = :p"), {"p": project_id}
    ).scalar_one()
    return dict(options)


def repeated_in_simulators(connection: Connection, project_id: int, simulator_ids: Sequence[int]) -> int:
    """How many sim episodes of these, and real ones of any, repeat others under other ids; 10,001 at most."""
    statement = text("""
        SELECT count(*) FROM (SELECT 1 FROM repeated_episodes r WHERE r.project_id = :p
            AND (r.simulator_id IS NULL OR r.simulator_id = ANY(:simulators)) LIMIT 10001) x
    """)
    return int(connection.execute(statement, {"p": project_id, "simulators": list(simulator_ids)}).scalar_one())
