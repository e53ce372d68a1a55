"""SQL of a gate's evidence: the episodes of a stage in the order of arrival, and what else criteria ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.levels import level_of
from gapwatch.store.alerting.watch_queue import MOST_SIM_CELLS
from gapwatch.store.rollout.rollouts import PolicyVersion
from gapwatch.watching.sim_mix import SimCell

# Of one stage; beyond it the first are judged, and of a full deployment the newest.
MOST_EPISODES = 100_000
# Of a decision that robots wait for: the newest, so that it takes no longer after years.
MOST_IN_HASTE = 2_000
# Robots may send what they kept for so long; what is older is history, whenever it comes.
LATEST = "30 days"

# Kept with every packet, so that anybody can ask again.
QUERY = f"""
SELECT e.id, e.seq, e.revision, e.outcome, e.violations, e.interventions, e.overrides, e.session, e.started_at,
       e.condition_set_id, e.shadow, encode(e.content_hash, 'hex') AS content_hash, e.number_names_id, e.numbers
FROM episodes e JOIN policies p ON p.project_id = e.project_id AND p.id = e.policy_id
WHERE e.project_id = :p AND e.deployment_id = :d AND e.domain IN ('real', 'shadow') AND e.stage = :stage
  AND p.name = :policy AND p.version = :version
  AND e.started_at >= CAST(:since AS timestamptz) - interval '{LATEST}' AND e.received_at >= :since
  AND e.received_at <= coalesce(CAST(:until AS timestamptz), 'infinity')
  AND e.seq <= coalesce(CAST(:last_seq AS bigint), 9223372036854775807)
ORDER BY e.seq
"""  # noqa: S608


@dataclass(frozen=True)
class EvidenceRow:
    id: str
    seq: int
    revision: int
    outcome: str
    violations: int | None
    interventions: int | None
    overrides: int | None
    session: str | None
    started_at: datetime
    condition_set_id: int | None
    shadow: dict[str, Any] | None
    content_hash: str
    number_names_id: int | None = None
    numbers: Sequence[float] | None = None


@dataclass(frozen=True)
class Evidenced:
    """Whose episodes are meant, and since when they count."""

    deployment_id: int
    stage: str
    policy: str
    version: str
    since: datetime
    until: datetime | None = None
    last_seq: int | None = None
    most: int = MOST_EPISODES

    @property
    def is_newest(self) -> bool:
        return self.stage == "full" or self.most < MOST_EPISODES

    def bound(self, project_id: int) -> dict[str, Any]:
        return {
            "p": project_id,
            "d": self.deployment_id,
            "stage": self.stage,
            "policy": self.policy,
            "version": self.version,
            "since": self.since,
            "until": self.until,
            "last_seq": self.last_seq,
        }


def stage_episodes(connection: Connection, project_id: int, meant: Evidenced) -> list[EvidenceRow]:
    """Every episode once, in the order of arrival."""
    statement = f"{QUERY} DESC" if meant.is_newest else QUERY
    rows = connection.execute(
        text(f"{statement} LIMIT :most"), meant.bound(project_id) | {"most": meant.most}
    ).all()
    found = [EvidenceRow(*row) for row in rows]
    return found[::-1] if meant.is_newest else found


@dataclass(frozen=True)
class Surrounding:
    """What the criteria ask for beside the episodes of the stage."""

    now: datetime
    offline_episodes: int
    open_alerts: int
    changed_at: datetime | None
    # Of the last 30 days, all stages.
    lately: int
    episodes_a_day: float
    # Of the same time as the evidence, what it leaves out: other versions, and other stages.
    other_versions: int
    other_stages: int


def surrounding(connection: Connection, project_id: int, meant: Evidenced) -> Surrounding:
    row = connection.execute(
        text("""
        SELECT now() AS now,
               (SELECT coalesce(sum(c.successes + c.failures + c.aborted + c.abandoned), 0) FROM rollup_counts c
                JOIN policies p ON p.project_id = c.project_id AND p.id = c.policy_id
                WHERE c.project_id = :p AND c.tier = 'month' AND c.domain = 'sim' AND p.name = :policy
                  AND p.version = :version AND c.task_id = d.task_id) AS sim_episodes,
               (SELECT count(*) FROM episodes e
                JOIN policies p ON p.project_id = e.project_id AND p.id = e.policy_id
                WHERE :stage = 'offline' AND e.project_id = :p AND e.deployment_id = :d AND e.stage = 'offline'
                  AND p.name = :policy AND p.version = :version) AS historical,
               (SELECT count(*) FROM alerts a
                JOIN incidents i ON i.project_id = a.project_id AND i.id = a.incident_id
                WHERE a.project_id = :p AND a.deployment_id = :d AND a.state <> 'resolved' AND NOT a.dry_run
                  AND a.kind NOT IN ('stage_gate', 'rollout') AND i.state <> 'resolved') AS open_alerts,
               (SELECT max(a.changed_at) FROM alerts a WHERE a.project_id = :p AND a.deployment_id = :d
                  AND a.changed_at IS NOT NULL AND NOT a.dry_run AND a.state <> 'pending') AS changed_at,
               (SELECT count(*) FROM episodes e WHERE e.project_id = :p AND e.deployment_id = :d
                  AND e.started_at >= now() - interval '30 days') AS lately,
               (SELECT min(e.started_at) FROM episodes e WHERE e.project_id = :p AND e.deployment_id = :d
                  AND e.started_at >= now() - interval '30 days') AS first_at,
               (SELECT count(*) FROM episodes e
                JOIN policies p ON p.project_id = e.project_id AND p.id = e.policy_id
                WHERE e.project_id = :p AND e.deployment_id = :d AND e.started_at >= :since
                  AND e.received_at >= :since AND NOT (p.name = :policy AND p.version = :version)
               ) AS other_versions,
               (SELECT count(*) FROM episodes e
                JOIN policies p ON p.project_id = e.project_id AND p.id = e.policy_id
                WHERE e.project_id = :p AND e.deployment_id = :d AND e.started_at >= :since
                  AND e.received_at >= :since AND p.name = :policy AND p.version = :version
                  AND e.stage IS DISTINCT FROM :stage) AS other_stages
        FROM deployments d WHERE d.project_id = :p AND d.id = :d
        """),
        meant.bound(project_id),
    ).one()
    days = 30.0 if row.first_at is None else max(1.0, (row.now - row.first_at).total_seconds() / 86400)
    return Surrounding(
        row.now,
        int(row.sim_episodes) + int(row.historical),
        int(row.open_alerts),
        row.changed_at,
        int(row.lately),
        row.lately / days,
        int(row.other_versions),
        int(row.other_stages),
    )


@dataclass(frozen=True)
class StageContracts:
    """The contracts that most episodes of each side ran under."""

    sim: dict[str, Any] | None
    real: dict[str, Any] | None
    simulator: str | None
    calibrations: list[str]


def stage_contracts(connection: Connection, project_id: int, meant: Evidenced) -> StageContracts:
    """Of simulation and of the robots; in `offline`, where nothing drives yet, of whatever was sent from there."""
    row = connection.execute(
        text("""
        SELECT (SELECT c.body FROM (
                    SELECT r.contract_id, sum(r.episodes) AS n FROM rollup_contracts r
                    JOIN policies p ON p.project_id = r.project_id AND p.id = r.policy_id
                    WHERE r.project_id = :p AND r.domain = 'sim' AND r.tier = 'month'
                      AND p.name = :policy AND p.version = :version AND r.task_id = d.task_id AND r.contract_id > 0
                    GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1) s
                JOIN contracts c ON c.project_id = :p AND c.id = s.contract_id) AS sim,
               (SELECT c.body FROM (
                    SELECT e.contract_id, count(*) AS n FROM episodes e
                    JOIN policies p ON p.project_id = e.project_id AND p.id = e.policy_id
                    WHERE e.project_id = :p AND e.deployment_id = :d AND e.contract_id IS NOT NULL
                      AND (:stage = 'offline' OR (e.stage = :stage AND e.received_at >= :since))
                      AND (:stage = 'offline' OR p.version = :version)
                    GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1) r
                JOIN contracts c ON c.project_id = :p AND c.id = r.contract_id) AS real,
               (SELECT s.name || ' ' || s.version FROM rollup_counts c
                JOIN policies p ON p.project_id = c.project_id AND p.id = c.policy_id
                JOIN simulators s ON s.project_id = c.project_id AND s.id = c.source_id
                WHERE c.project_id = :p AND c.domain = 'sim' AND c.tier = 'month' AND p.name = :policy
                  AND p.version = :version AND c.task_id = d.task_id
                GROUP BY s.name, s.version ORDER BY sum(c.successes + c.failures) DESC, 1 LIMIT 1) AS simulator,
               ARRAY(SELECT DISTINCT e.provenance ->> 'calibration_id' FROM episodes e
                     WHERE e.project_id = :p AND e.deployment_id = :d AND e.started_at >= :since
                       AND e.provenance ? 'calibration_id' ORDER BY 1 LIMIT 20) AS calibrations
        FROM deployments d WHERE d.project_id = :p AND d.id = :d
        """),
        meant.bound(project_id),
    ).one()
    return StageContracts(row.sim, row.real, row.simulator, [name for name in row.calibrations if name])


def condition_levels(
    connection: Connection, project_id: int, rows: Sequence[EvidenceRow]
) -> dict[int, dict[str, Any]]:
    """The categories of every set of conditions that these episodes ran under."""
    found = connection.execute(
        text("SELECT id, levels FROM condition_sets WHERE project_id = :p AND id = ANY(:ids)"),
        {"p": project_id, "ids": sorted({row.condition_set_id for row in rows if row.condition_set_id})},
    )
    return {row.id: row.levels for row in found}


def number_names(connection: Connection, project_id: int, rows: Sequence[EvidenceRow]) -> dict[int, list[str]]:
    """The names that the numbers among the conditions of these episodes stand against."""
    found = connection.execute(
        text("SELECT id, names FROM name_sets WHERE project_id = :p AND id = ANY(:ids)"),
        {"p": project_id, "ids": sorted({row.number_names_id for row in rows if row.number_names_id})},
    )
    return {row.id: row.names for row in found}


@dataclass(frozen=True)
class SimReference:
    """The simulation that a candidate is compared with, and how often it succeeded there."""

    simulator: str
    version: str
    successes: int
    n: int
    simulator_id: int


def sim_reference(
    connection: Connection, project_id: int, deployment_id: int, policy: str, version: str
) -> SimReference | None:
    """Decided episodes of the pinned simulator, else of the one with the most; counted anew, to the last one."""
    row = connection.execute(
        text("""
        SELECT s.name, s.version, count(*) FILTER (WHERE e.outcome = 'success') AS successes, count(*) AS n,
               s.id
        FROM deployments d
        JOIN policies p ON p.project_id = d.project_id AND p.name = :policy AND p.version = :version
        JOIN episodes e ON e.project_id = d.project_id AND e.policy_id = p.id AND e.task_id = d.task_id
             AND e.domain = 'sim' AND e.outcome IN ('success', 'failure')
        JOIN simulators s ON s.project_id = e.project_id AND s.id = e.simulator_id
        LEFT JOIN baselines b ON b.project_id = d.project_id AND b.deployment_id = d.id
        WHERE d.project_id = :p AND d.id = :d AND coalesce(b.simulator_id = e.simulator_id, true)
        GROUP BY s.id, s.name, s.version ORDER BY n DESC, 1, 2 LIMIT 1
        """),
        {"p": project_id, "d": deployment_id, "policy": policy, "version": version},
    ).one_or_none()
    return None if row is None else SimReference(*row)


def sim_cells(
    connection: Connection, project_id: int, deployment_id: int, policy: PolicyVersion, simulator_id: int
) -> list[SimCell]:
    """The episodes of a reference by their categories; none where those are too many to be a mix."""
    rows = connection.execute(
        text("""
        SELECT c.levels, count(*) FILTER (WHERE e.outcome = 'success') AS successes, count(*) AS n
        FROM deployments d
        JOIN policies p ON p.project_id = d.project_id AND p.name = :policy AND p.version = :version
        JOIN episodes e ON e.project_id = d.project_id AND e.policy_id = p.id AND e.task_id = d.task_id
             AND e.domain = 'sim' AND e.outcome IN ('success', 'failure') AND e.simulator_id = :simulator
        LEFT JOIN condition_sets c ON c.project_id = e.project_id AND c.id = e.condition_set_id
        WHERE d.project_id = :p AND d.id = :d GROUP BY c.levels LIMIT :most
        """),
        {
            "p": project_id,
            "d": deployment_id,
            "policy": policy.name,
            "version": policy.version,
            "simulator": simulator_id,
            "most": MOST_SIM_CELLS + 1,
        },
    ).all()
    if len(rows) > MOST_SIM_CELLS:
        return []
    return [
        SimCell({name: level_of(value) for name, value in (row.levels or {}).items()}, row.successes, row.n)
        for row in rows
    ]


def changed_since(connection: Connection, project_id: int, meant: Evidenced, at: datetime) -> tuple[int, int]:
    """How many of the episodes were corrected and how many were deleted after a moment."""
    row = connection.execute(
        text("""
        SELECT count(DISTINCT r.id) FILTER (WHERE r.ended_by = 'correction') AS corrected,
               count(DISTINCT r.id) FILTER (WHERE r.ended_by = 'deletion') AS deleted
        FROM episode_revisions r
        WHERE r.project_id = :p AND r.deployment_id = :d AND r.stage = :stage AND r.ended_at > :at
          AND r.received_at >= :since
        """),
        meant.bound(project_id) | {"at": at},
    ).one()
    return int(row.corrected), int(row.deleted)


def arrived_just_before(connection: Connection, project_id: int, meant: Evidenced) -> int:
    """How many of the episodes came in the last minute: some may have been committed after the look."""
    found = connection.execute(
        text(f"""
        SELECT count(*) FROM ({QUERY}) e JOIN episodes x ON x.project_id = :p AND x.id = e.id
        WHERE x.received_at > CAST(:until AS timestamptz) - interval '1 minute'
        """),  # noqa: S608
        meant.bound(project_id),
    )
    return int(found.scalar_one())
