"""Reading episodes back: the record as it was sent, by id, by page, or as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.filters import EpisodeFilter, parse_range, parse_time
from gapwatch.record import LATER_FIELDS

STREAM_ROWS = 1000
_LABELLED = {"yes": "NOT NULL", "no": "NULL"}

_SELECT = """
SELECT e.*, p.name AS policy_name, p.version AS policy_version, t.name AS task, d.slug AS deployment,
       s.name AS simulator_name, s.version AS simulator_version, r.name AS robot, w.name AS site,
       cs.levels, nn.names AS number_names, sn.names AS signal_names, mn.names AS metric_names, c.body AS contract
FROM episodes e
JOIN policies p ON p.project_id = e.project_id AND p.id = e.policy_id
JOIN tasks t ON t.project_id = e.project_id AND t.id = e.task_id
LEFT JOIN deployments d ON d.project_id = e.project_id AND d.id = e.deployment_id
LEFT JOIN simulators s ON s.project_id = e.project_id AND s.id = e.simulator_id
LEFT JOIN robots r ON r.project_id = e.project_id AND r.id = e.robot_id
LEFT JOIN sites w ON w.project_id = e.project_id AND w.id = e.site_id
LEFT JOIN condition_sets cs ON cs.project_id = e.project_id AND cs.id = e.condition_set_id
LEFT JOIN name_sets nn ON nn.project_id = e.project_id AND nn.id = e.number_names_id
LEFT JOIN name_sets sn ON sn.project_id = e.project_id AND sn.id = e.signal_names_id
LEFT JOIN name_sets mn ON mn.project_id = e.project_id AND mn.id = e.metric_names_id
LEFT JOIN contracts c ON c.project_id = e.project_id AND c.id = e.contract_id
WHERE e.project_id = :project_id
"""


@dataclass(frozen=True)
class PageCursor:
    """Where a page ends: the next one starts behind it."""

    started_at: datetime
    id: str


def find_episode(connection: Connection, project_id: int, episode_id: str) -> dict[str, Any] | None:
    row = (
        connection.execute(text(f"{_SELECT} AND e.id = :id"), {"project_id": project_id, "id": episode_id})
        .mappings()
        .first()
    )
    return None if row is None else as_record(row)


def find_episodes(connection: Connection, project_id: int, episode_ids: list[str]) -> list[dict[str, Any]]:
    """Those that are stored, in the order of the ids."""
    rows = connection.execute(
        text(f"{_SELECT} AND e.id = ANY(:ids)"), {"project_id": project_id, "ids": episode_ids}
    ).mappings()
    records = {row["id"]: as_record(row) for row in rows}
    return [records[episode_id] for episode_id in episode_ids if episode_id in records]


def episodes_page(
    connection: Connection, project_id: int, wanted: EpisodeFilter, after: PageCursor | None, limit: int
) -> tuple[list[dict[str, Any]], PageCursor | None]:
    """Newest first. The second value is where the next page starts, None on the last."""
    where, parameters = _where(wanted)
    if after is not None:
        where += " AND (e.started_at, e.id) < (:after_at, :after_id)"
        parameters |= {"after_at": after.started_at, "after_id": after.id}
    statement = f"{_SELECT}{where} ORDER BY e.started_at DESC, e.id DESC LIMIT :limit"
    rows = (
        connection.execute(text(statement), {"project_id": project_id, "limit": limit + 1, **parameters})
        .mappings()
        .all()
    )
    page = rows[:limit]
    last = page[-1] if len(rows) > limit else None
    return [as_record(row) for row in page], None if last is None else PageCursor(last["started_at"], last["id"])


def stream_episodes(connection: Connection, project_id: int, wanted: EpisodeFilter) -> Iterator[dict[str, Any]]:
    """Every matching episode, oldest first, through a cursor on the server: memory stays flat."""
    where, parameters = _where(wanted)
    # Each fetch is a statement. Between two of them the reader takes what was fetched.
    connection.execute(text("SET LOCAL statement_timeout = '2min'"))
    connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '2min'"))
    rows = connection.execution_options(stream_results=True, max_row_buffer=STREAM_ROWS).execute(
        text(f"{_SELECT}{where} ORDER BY e.started_at, e.id"), {"project_id": project_id, **parameters}
    )
    for row in rows.mappings():
        yield as_record(row)


def known_names(connection: Connection, project_id: int) -> dict[str, list[str]]:
    """The names of conditions, signals and metrics that a project has ever used, for columns of a table."""
    rows = connection.execute(
        text(
            """
            SELECT kind, array_agg(DISTINCT name ORDER BY name) AS names FROM (
                SELECT kind, unnest(names) AS name FROM name_sets WHERE project_id = :p
                UNION ALL
                SELECT 'condition', jsonb_object_keys(levels) FROM condition_sets WHERE project_id = :p) used
            GROUP BY kind
            """
        ),
        {"p": project_id},
    )
    return {"condition": [], "signal": [], "metric": []} | {row.kind: row.names for row in rows}


def as_record(row: Any) -> dict[str, Any]:
    """The record of section 4 of the API's documentation, with what the server knows beside it."""
    conditions = dict(row["levels"] or {}) | _named(row["number_names"], row["numbers"])
    failure = {
        "phase": row["failure_phase"],
        "labels": row["failure_labels"],
        "category": row["failure_category"],
        "note": row["failure_note"],
    }
    safety = {name: row[name] for name in ("violations", "interventions", "overrides")}
    record = {
        "id": row["id"],
        "domain": "sim" if row["domain"] == "sim" else "real",
        "policy": {"name": row["policy_name"], "version": row["policy_version"]},
        "task": row["task"],
        "deployment": row["deployment"],
        "robot": row["robot"],
        "site": row["site"],
        "simulator": _versioned(row["simulator_name"], row["simulator_version"]),
        "stage": row["stage"],
        "started_at": _time(row["started_at"]),
        "duration_s": row["duration_s"],
        "outcome": row["outcome"],
        "reward": row["reward"],
        "metrics": _named(row["metric_names"], row["metrics"]),
        "conditions": conditions,
        "signals": _named(row["signal_names"], row["signals"]),
        "failure": _given(failure),
        "safety": _given(safety),
        "session": row["session"],
        "pair": row["pair"],
        "contract": row["contract"],
        "embedding": row["embedding"],
        "links": row["links"],
        "provenance": row["provenance"],
        **{later.column: row[later.column] for later in LATER_FIELDS},
        "received_at": _time(row["received_at"]),
        "revision": row["revision"],
        "clock_skew_s": row["clock_skew_s"],
    }
    return {name: value for name, value in record.items() if value is not None and value != {}}


def _where(wanted: EpisodeFilter) -> tuple[str, dict[str, Any]]:
    """SQL for a filter. Values are always parameters; the text only ever comes from this file."""
    clauses: list[str] = []
    parameters: dict[str, Any] = {}
    plain = {
        "outcome": "e.outcome",
        "phase": "e.failure_phase",
        "category": "e.failure_category",
        "policy": "p.name",
        "version": "p.version",
        "task": "t.name",
        "deployment": "d.slug",
    }
    for name, column in plain.items():
        value = getattr(wanted, name)
        if value is not None:
            clauses.append(f"{column} = :{name}")
            parameters[name] = value
    if wanted.domain is not None:
        clauses.append("e.domain = ANY(:domain)")
        parameters["domain"] = ["sim"] if wanted.domain == "sim" else ["real", "shadow"]
    for name, column in {"robot": "r.name", "site": "w.name", "stage": "e.stage"}.items():
        values = getattr(wanted, name)
        if values:
            clauses.append(f"{column} = ANY(:{name})")
            parameters[name] = values
    if wanted.labelled is not None:
        clauses.append(f"e.outcome = 'failure' AND e.failure_category IS {_LABELLED[wanted.labelled]}")
    if wanted.simulator:
        clauses.append("(s.name = ANY(:simulator) OR s.name || '@' || s.version = ANY(:simulator))")
        parameters["simulator"] = wanted.simulator
    if wanted.label is not None:
        clauses.append("e.failure_labels @> ARRAY[:label]")
        parameters["label"] = wanted.label
    now = datetime.now(UTC)
    for name, sign in {"since": ">=", "until": "<"}.items():
        value = getattr(wanted, name)
        if value is not None:
            clauses.append(f"e.started_at {sign} :{name}")
            parameters[name] = parse_time(value, now)
    _add_conditions(wanted.condition, clauses, parameters)
    for number, spelled in enumerate(wanted.signal):
        name, low, high = parse_range(spelled)
        value = f"e.signals[array_position(sn.names, :signal_{number})]"
        parameters[f"signal_{number}"] = name
        for end, bound, sign in (("low", low, ">="), ("high", high, "<=")):
            if bound is not None:
                clauses.append(f"{value} {sign} :signal_{number}_{end}")
                parameters[f"signal_{number}_{end}"] = bound
    return "".join(f" AND {clause}" for clause in clauses), parameters


def _add_conditions(conditions: list[str], clauses: list[str], parameters: dict[str, Any]) -> None:
    """Values of one condition are alternatives; different conditions must all hold."""
    by_name: dict[str, list[str]] = {}
    for spelled in conditions:
        name, _, value = spelled.partition(":")
        by_name.setdefault(name, []).append(value)
    for number, (name, values) in enumerate(by_name.items()):
        parameters |= {f"condition_{number}": name, f"levels_{number}": values}
        number_value = f"e.numbers[array_position(nn.names, :condition_{number})]"
        alternatives = [f"cs.levels ->> :condition_{number} = ANY(:levels_{number})"]
        numeric = [float(value) for value in values if _is_number(value)]
        if numeric:
            parameters[f"numbers_{number}"] = numeric
            alternatives.append(f"{number_value} = ANY(CAST(:numbers_{number} AS float8[]))")
        if "" in values:
            alternatives.append(f"(cs.levels ->> :condition_{number} IS NULL AND {number_value} IS NULL)")
        clauses.append(f"({' OR '.join(alternatives)})")


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _named(names: list[str] | None, values: list[float] | None) -> dict[str, float]:
    return dict(zip(names or [], values or [], strict=True))


def _versioned(name: str | None, version: str | None) -> dict[str, str | None] | None:
    return None if name is None else {"name": name, "version": version}


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
