"""SQL of the rollups: adding the episodes of claimed work, and reading windows."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, text

from gapwatch.store.work import Claim

__all__ = ["Connection", "fold"]

# One statement adds all claimed work in all tiers. Rows are grouped before the upsert, so that no key occurs
# twice, and ordered, so that two workers never wait for each other in a circle.
FOLD = text("""
WITH claimed AS (
    SELECT unnest(CAST(:projects AS int[])) AS project_id, unnest(CAST(:ids AS text[])) AS id,
           unnest(CAST(:revisions AS int[])) AS revision, unnest(CAST(:signs AS int[])) AS sign
), folded AS (
    SELECT c.sign, e.project_id, e.domain, e.deployment_id, e.simulator_id, e.policy_id, e.task_id,
           e.started_at, e.outcome
    FROM claimed c JOIN episodes e USING (project_id, id, revision)
    UNION ALL
    SELECT c.sign, e.project_id, e.domain, e.deployment_id, e.simulator_id, e.policy_id, e.task_id,
           e.started_at, e.outcome
    FROM claimed c JOIN episode_revisions e USING (project_id, id, revision)
), counted AS (
    SELECT project_id, domain, CASE domain WHEN 'real' THEN deployment_id ELSE simulator_id END AS source_id,
           policy_id, task_id, tier, date_trunc(tier, started_at, 'UTC') AS bucket_at,
           sum(sign) FILTER (WHERE outcome = 'success') AS successes,
           sum(sign) FILTER (WHERE outcome = 'failure') AS failures,
           sum(sign) FILTER (WHERE outcome = 'aborted') AS aborted,
           sum(sign) FILTER (WHERE outcome = 'abandoned') AS abandoned
    FROM folded CROSS JOIN (VALUES ('hour'), ('day'), ('month')) AS tiers (tier)
    GROUP BY 1, 2, 3, 4, 5, 6, 7
)
INSERT INTO rollup_counts AS r (project_id, domain, source_id, policy_id, task_id, tier, bucket_at,
                                successes, failures, aborted, abandoned)
SELECT project_id, domain, source_id, policy_id, task_id, tier, bucket_at,
       coalesce(successes, 0), coalesce(failures, 0), coalesce(aborted, 0), coalesce(abandoned, 0)
FROM counted ORDER BY 1, 2, 3, 4, 5, 6, 7
ON CONFLICT (project_id, domain, source_id, policy_id, task_id, tier, bucket_at) DO UPDATE SET
    successes = r.successes + excluded.successes,
    failures = r.failures + excluded.failures,
    aborted = r.aborted + excluded.aborted,
    abandoned = r.abandoned + excluded.abandoned
""")


def fold(connection: Connection, claims: Sequence[Claim]) -> None:
    projects, ids, revisions, signs = [], [], [], []
    for claim in claims:
        count = len(claim.episode_ids)
        ids += claim.episode_ids
        projects += [claim.project_id] * count
        revisions += [claim.revision] * count
        signs += [claim.sign] * count
    connection.execute(FOLD, {"projects": projects, "ids": ids, "revisions": revisions, "signs": signs})
