"""What the fleet page reads beside the answers: the words of failures, recent days, and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg import sql
from sqlalchemy import Connection, text

from gapwatch.store.core.content_cache import ContentCache
from gapwatch.store.core.driver import driver_connection
from gapwatch.store.read.directory import Deployment
from gapwatch.store.read.selection import CellFilter
from gapwatch.tally.sums import Signature


def deployment_slugs(connection: Connection, project_id: int) -> list[str]:
    rows = connection.execute(
        text("SELECT slug FROM deployments WHERE project_id = :p ORDER BY slug LIMIT 1000"), {"p": project_id}
    )
    return [row.slug for row in rows]


# real, sim in the window or "sim of all time"; deployment or simulator; policy; task.
WordKey = tuple[str, int, int, int]


@dataclass(frozen=True)
class FailureWords:
    """How often deployments (real) and their baselines (sim) fail with which words.

    `signatures`: what was said, by number. `simulators`: their numbers by name and version. `counts`: whose,
    signature, failures. With a window the words of all sim episodes come too, for baselines without any in it.
    """

    signatures: dict[int, Signature]
    simulators: dict[tuple[str | None, str | None], int]
    counts: list[tuple[WordKey, int, int]]


# Whole months, or whole days for a window: a fleet is looked over, not measured to the minute.
_ROWS_OF_RUNS = """
SELECT '{what}' AS what, f.* FROM (SELECT DISTINCT policy_id, task_id FROM places) AS runs JOIN LATERAL (
    SELECT source_id, policy_id, task_id, signature_id, failures FROM rollup_failures r
    WHERE r.project_id = :p AND r.domain = 'sim' AND r.policy_id = runs.policy_id AND r.task_id = runs.task_id
      AND {when}
) AS f ON true
"""
_WORDS = """
WITH places AS (
    SELECT * FROM unnest(CAST(:sources AS int[]), CAST(:policies AS int[]), CAST(:tasks AS int[]),
        CAST(:since AS timestamptz[])) AS place (source_id, policy_id, task_id, since)
), found AS (
    SELECT 'real' AS what, f.* FROM places JOIN LATERAL (
        SELECT source_id, policy_id, task_id, signature_id, failures FROM rollup_failures r
        WHERE r.project_id = :p AND r.domain = 'real' AND r.policy_id = places.policy_id
          AND r.task_id = places.task_id AND r.source_id = places.source_id AND {when}
    ) AS f ON true
    UNION ALL {sim}
)
SELECT what, source_id, policy_id, task_id, signature_id, sum(failures)::int AS failures, NULL AS words
FROM found GROUP BY 1, 2, 3, 4, 5 HAVING sum(failures) > 0
UNION ALL
SELECT 'simulator', id, 0, 0, 0, 0, ARRAY[name, version] FROM simulators WHERE project_id = :p
"""
_ALL_TIME, _IN_WINDOW = "r.tier = 'month'", "r.tier = 'day' AND r.bucket_at >= :all_since"
_SINCE_THEN = "r.tier = 'day' AND r.bucket_at >= date_trunc('day', places.since, 'UTC')"
_WORDS_OF_ALL_TIME = text(
    _WORDS.format(when=_ALL_TIME, sim=_ROWS_OF_RUNS.format(what="sim", when=_ALL_TIME)),
)
_WORDS_SINCE = text(
    _WORDS.format(
        when=_SINCE_THEN,
        sim=f"{_ROWS_OF_RUNS.format(what='sim', when=_IN_WINDOW)} UNION ALL"
        f" {_ROWS_OF_RUNS.format(what='sim of all time', when=_ALL_TIME)}",
    ),
)
_WORDS_OF_PRESENTS = text(
    _WORDS.format(when=_SINCE_THEN, sim=_ROWS_OF_RUNS.format(what="sim", when=_ALL_TIME)),
)
_SIGNATURES = text("SELECT id, phase, labels, category FROM signatures WHERE project_id = :p AND id = ANY(:ids)")
_CACHED_SIGNATURES: ContentCache[int, Signature] = ContentCache(20_000)
# Two small things in one exchange: recent days of some deployments, one by one, and the last hours of all.
# Neither grows with the years that are stored.
_GLANCE = text("""
SELECT 'recent' AS what, source_id AS id, date_bin('3 days', bucket_at, CAST(:month AS timestamptz)) AS at,
       sum(successes)::bigint AS k, sum(successes + failures)::bigint AS n
FROM rollup_counts
WHERE project_id = :p AND domain = 'real' AND source_id = ANY(:shown) AND tier = 'day' AND bucket_at >= :month
GROUP BY 1, 2, 3 HAVING sum(successes + failures) > 0
UNION ALL
SELECT domain, 0, NULL, 0, sum(successes + failures + aborted + abandoned)::bigint FROM rollup_counts
WHERE project_id = :p AND tier = 'hour' AND bucket_at >= :day GROUP BY domain
ORDER BY 1, 2, 3
""")


@dataclass(frozen=True)
class Glance:
    """`recent`: deployment → (start, successes, n) of every three days; `last_day`: episodes of either side."""

    recent: dict[int, list[tuple[datetime, int, int]]]
    last_day: dict[str, int]


def counts_of_presents(
    connection: Connection, project_id: int, deployment_ids: Sequence[int], wanted: CellFilter
) -> dict[int, tuple[int, int, int, int]]:
    """Successes, failures, aborted and abandoned attempts that match a filter in each deployment's regime."""
    clauses, parameters = wanted.clauses()
    statement = sql.SQL(
        "SELECT p.deployment_id, count(*) FILTER (WHERE e.outcome = 'success'),"  # noqa: S608 - text of ours
        " count(*) FILTER (WHERE e.outcome = 'failure'), count(*) FILTER (WHERE e.outcome = 'aborted'),"
        " count(*) FILTER (WHERE e.outcome = 'abandoned')"
        " FROM presents p JOIN deployments d ON d.project_id = p.project_id AND d.id = p.deployment_id"
        " JOIN episodes e ON e.project_id = p.project_id AND e.deployment_id = p.deployment_id"
        " AND e.domain = 'real' AND e.started_at >= p.since AND e.policy_id = d.policy_id"
        f" AND e.task_id = d.task_id WHERE p.project_id = %(p)s AND p.deployment_id = ANY(%(ids)s){clauses}"
        " GROUP BY 1"
    )
    with driver_connection(connection).cursor() as cursor:
        rows = cursor.execute(statement, {"p": project_id, "ids": list(deployment_ids), **parameters}).fetchall()
    return {row[0]: (row[1], row[2], row[3], row[4]) for row in rows}


@dataclass(frozen=True)
class PlaceNames:
    """What the real episodes of one deployment name in a window."""

    sites: frozenset[str]
    robots: frozenset[str]
    policies: frozenset[str]


NO_NAMES = PlaceNames(frozenset(), frozenset(), frozenset())
# Whole days: who looks over a fleet looks for a name, not for a minute.
_NAMES = """
WITH named AS (
    SELECT DISTINCT r.source_id, r.policy_id, r.robot_id, r.site_id FROM rollup_places r{presents}
    WHERE r.project_id = :p AND r.domain = 'real' AND {when}
)
SELECT n.source_id, array_agg(DISTINCT s.name) AS sites, array_agg(DISTINCT b.name) AS robots,
       array_agg(DISTINCT v.name) AS policies
FROM named n JOIN policies v ON v.project_id = :p AND v.id = n.policy_id
LEFT JOIN sites s ON s.project_id = :p AND s.id = n.site_id
LEFT JOIN robots b ON b.project_id = :p AND b.id = n.robot_id
GROUP BY 1
"""
_NAMES_SINCE = text(
    _NAMES.format(
        presents="",
        when="r.bucket_at >= date_trunc('day', coalesce(CAST(:since AS timestamptz), '-infinity'), 'UTC')",
    )
)
_NAMES_OF_PRESENTS = text(
    _NAMES.format(
        presents=" JOIN presents w ON w.project_id = r.project_id AND w.deployment_id = r.source_id",
        when="r.bucket_at >="
        " date_trunc('day', CASE WHEN :of_version THEN w.version_since ELSE w.since END, 'UTC')",
    )
)


def place_names(
    connection: Connection, project_id: int, window: str | None, since: datetime | None
) -> dict[int, PlaceNames]:
    """The names of every deployment, in a window by name (`now`, `version`) or since a time."""
    if window in ("now", "version"):
        rows = connection.execute(_NAMES_OF_PRESENTS, {"p": project_id, "of_version": window == "version"})
    else:
        rows = connection.execute(_NAMES_SINCE, {"p": project_id, "since": since})
    return {
        row.source_id: PlaceNames(*(frozenset(name for name in names if name is not None) for names in row[1:]))
        for row in rows.all()
    }


def failure_words(
    connection: Connection,
    project_id: int,
    deployments: Sequence[Deployment],
    since: datetime | Mapping[int, datetime | None] | None,
) -> FailureWords:
    """`since` of all of them, or of each by its number; then their baselines are whole."""
    each = since if isinstance(since, Mapping) else {}
    parameters = {
        "p": project_id,
        "sources": [deployment.id for deployment in deployments],
        "policies": [deployment.policy_id for deployment in deployments],
        "tasks": [deployment.task_id for deployment in deployments],
        "since": [each.get(one.id) if isinstance(since, Mapping) else since for one in deployments],
    }
    if since is None:
        rows = connection.execute(_WORDS_OF_ALL_TIME, parameters)
    elif isinstance(since, Mapping):
        rows = connection.execute(_WORDS_OF_PRESENTS, parameters)
    else:
        rows = connection.execute(_WORDS_SINCE, parameters | {"all_since": since})
    simulators: dict[tuple[str | None, str | None], int] = {}
    counts: list[tuple[WordKey, int, int]] = []
    for what, source_id, policy_id, task_id, signature_id, failures, words in rows.all():
        if what == "simulator":
            simulators[words[0], words[1]] = source_id
        else:
            counts.append(((what, source_id, policy_id, task_id), signature_id, failures))
    said = _signatures(connection, project_id, {signature_id for _, signature_id, _ in counts})
    return FailureWords(said, simulators, counts)


def _signatures(connection: Connection, project_id: int, ids: set[int]) -> dict[int, Signature]:
    """Query only those that this process has not read before."""
    known = _CACHED_SIGNATURES.get(connection, project_id, ids)
    missing = sorted(ids - known.keys())
    if missing:
        rows = connection.execute(_SIGNATURES, {"p": project_id, "ids": missing})
        read = {row.id: Signature(row.phase, tuple(sorted({*(row.labels or ())})), row.category) for row in rows}
        _CACHED_SIGNATURES.put(connection, project_id, read)
        known |= read
    return known


def glance(connection: Connection, project_id: int, shown: list[int], month: datetime, day: datetime) -> Glance:
    glimpsed = Glance({}, {"sim": 0, "real": 0})
    parameters = {"p": project_id, "shown": shown, "month": month, "day": day}
    for row in connection.execute(_GLANCE, parameters).all():
        if row.what == "recent":
            glimpsed.recent.setdefault(row.id, []).append((row.at, row.k, row.n))
        else:
            glimpsed.last_day[row.what] = row.n
    return glimpsed
