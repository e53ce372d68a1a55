"""Every page shows whatever is stored: times at both ends of the calendar, numbers without measure, odd texts."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from attack.neighbours import PLAN_BODY
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from people import Browser, somebody
from sqlalchemy import text

from gapwatch.access.sealing import Sealer
from gapwatch.doors.costly_reads import CostlyReads
from gapwatch.pages.routes import PageRoutes
from gapwatch.pages.templates import Pages
from gapwatch.settings import Settings
from gapwatch.store.core.database import Database
from parts import Project, episode, wait_until

NOW = datetime.now(UTC)
TIMES = st.sampled_from(
    [
        "0001-01-01T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "2000-01-01T00:00:00Z",
        NOW.isoformat(),
        (NOW + timedelta(hours=20)).isoformat(),
        "2038-01-19T03:14:08Z",
        "9999-12-31T23:59:59.999999Z",
    ]
)
# Of what the watch writes: it follows episodes, whose times are bounded.
HAPPENED = st.sampled_from(["2000-01-01T00:00:00Z", NOW.isoformat(), (NOW + timedelta(hours=20)).isoformat()])
NUMBERS = st.sampled_from([0.0, -0.0, 5e-324, -1e-9, 1.0, 1e15, -1e300, 1.7976931348623157e308])
TEXTS = st.sampled_from(
    ["", " ", "<script>alert(1)</script>", "%s {{ 7*7 }} ${x}", "\u202eafter\u0000".replace("\0", ""), "🤖" * 40,
     "a" * 500, "=HYPERLINK(1)", "Zürich\n\nline", "'; DROP TABLE events; --", "null", "../../..", "\u2028"]
)  # fmt: skip
NAMES = ("plain", "é" * 64, "🤖" * 32, "<b>bold</b>", "a'b\"c&d", "x" * 128, "%41", "NaN", "{{7*7}}", "-")
EVENT_KINDS = ("release", "calibration", "simulator", "site", "mitigation", "other")
EXTREMES = (0.0, 5e-324, 1e-12, 1.0, 1e12, 1.7e308)


def extreme_episodes() -> list[dict[str, Any]]:
    """What the API lets a robot send, at its limits."""
    times = ["2000-01-01T00:00:00Z", "2026-01-01T00:00:00Z", (NOW + timedelta(hours=20)).isoformat()]
    records = []
    for number in range(120):
        name, extreme = NAMES[number % len(NAMES)], EXTREMES[number % len(EXTREMES)]
        is_sim = number % 3 == 0
        failed = number % 2 == 0
        records.append(
            episode(
                id=f"extreme-{number}",
                **(
                    {"domain": "sim", "deployment": None, "simulator": {"name": name, "version": "1"}}
                    if is_sim
                    else {"deployment": "line", "robot": name, "site": name}
                ),
                started_at=times[number % 3 if number % 5 else 1],
                outcome="failure" if failed else "success",
                duration_s=extreme,
                reward=-extreme,
                session=name,
                conditions={name: name, "level": extreme * (-1) ** number, "flag": failed},
                signals={"force": -extreme, name: extreme},
                metrics={"energy": extreme},
                failure={"phase": name, "labels": [name], "note": name} if failed else None,
                safety={"violations": 2**31 - 1, "interventions": 0},
                provenance={"x": "y" * 1000},
            )
        )
    return records


@pytest.fixture(scope="module")
def table(attacked) -> Any:
    database = Database(attacked.database_url)
    yield PageRoutes(
        database,
        Pages(),
        Settings(data_dir=attacked.data_dir, database_url=attacked.database_url),
        nudge=lambda kind: None,
        sealer=Sealer(b"s" * 32),
        costly=CostlyReads(),
        export=lambda project_id, wanted: None,
    ).table
    database.close()


@pytest.fixture
def extreme(attacker: Project) -> Project:
    with attacker.client() as client:
        answer = client.post("/episodes/batch", json=extreme_episodes())
        assert answer.json()["accepted"] == 120, answer.text[:500]
    wait_until(
        lambda: attacker.value("SELECT count(*) FROM work WHERE project_id = :p") == 0, 30, what="the counts"
    )
    return attacker


@pytest.fixture
def admin(attacked, extreme: Project) -> Any:
    with Browser(attacked, somebody(extreme, "admin")) as browser:
        yield browser


ROW = st.fixed_dictionaries({"at": TIMES, "later": TIMES, "happened": HAPPENED, "words": TEXTS, "number": NUMBERS})


@st.composite
def stored_rows(draw: Any) -> list[dict[str, Any]]:
    return draw(st.lists(ROW, min_size=len(EVENT_KINDS), max_size=len(EVENT_KINDS)))


def store(project: Project, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows as a database may hold them, whoever let them in; the ids of those that have a page of their own."""
    with project.database.transaction() as transaction:

        def run(statement: str, **values: Any) -> Any:
            return transaction.execute(text(statement), {"p": project.id, **values})

        deployment = run("SELECT id FROM deployments WHERE project_id = :p").scalar_one()
        for name in ("events", "silences", "robot_statuses", "rejected_records"):
            run(f"DELETE FROM {name} WHERE project_id = :p")
        for number, row in enumerate(rows):
            at, later, words = row["at"], row["later"], row["words"]
            details = json.dumps({"site": words, "robots": [words], "n": row["number"]})
            run("INSERT INTO events (project_id, kind, at, title, deployment_id, details) "
                "VALUES (:p, :kind, :at, :title, :d, CAST(:details AS jsonb))",
                kind=EVENT_KINDS[number], at=at, title=words, d=deployment if number % 2 else None,
                details=details)  # fmt: skip
            if at < later:
                run("INSERT INTO silences (project_id, match, owner, reason, starts_at, ends_at, kind, recurrence) "
                    "VALUES (:p, CAST(:match AS jsonb), :words, :words, :at, :later, 'maintenance', "
                    "CAST(:recurrence AS jsonb))",
                    match=json.dumps({"deployment": ["*"]}), words=words, at=at, later=later,
                    recurrence=json.dumps({"days": ["mon"], "from": "22:00", "to": "02:00"}) if number % 2 else None)  # fmt: skip
            run("INSERT INTO robot_statuses (project_id, robot, status, since, until, reason, actor) "
                "VALUES (:p, :robot, 'parked', :at, :later, :words, :words)",
                robot=f"{NAMES[number]}", at=at, later=later, words=words)  # fmt: skip
            run("INSERT INTO rejected_records (project_id, received_at, key_prefix, code, errors, record) "
                "VALUES (:p, :at, :words, :words, CAST(:errors AS jsonb), :record)",
                at=at, words=words, record=b"\xff\x00" + words.encode(),
                errors=json.dumps([{"pointer": words, "code": words, "message": words}]))  # fmt: skip
        first = rows[0]
        incident = run(
            "INSERT INTO incidents (project_id, deployment_id, state, severity, opened_at, changed_at, resolved_at, owner) "
            "VALUES (:p, :d, 'resolved', 'critical', :at, :later, :at, :words) RETURNING id",
            d=deployment, at=first["happened"], later=rows[1]["happened"], words=first["words"],
        ).scalar_one()  # fmt: skip
        alert = run(
            "INSERT INTO alerts (project_id, series, state, severity, opened_at, state_since, rule, kind, deployment_id, "
            "incident_id, changed_at, evidence) VALUES (:p, 'success', 'resolved', 'critical', :at, :later, 'success-drift', "
            "'drift', :d, :i, :later, CAST(:evidence AS jsonb)) RETURNING id",
            at=first["happened"], later=rows[1]["happened"], d=deployment, i=incident, evidence="{}",
        ).scalar_one()  # fmt: skip
        decision = run(
            "INSERT INTO decisions (project_id, deployment_id, kind, from_stage, to_stage, state, revision, who, reason, at, "
            "packet, packet_hash) VALUES (:p, :d, 'hold', 'full', 'full', 'go', 1, :words, :words, :at, '{}', :words) RETURNING id",
            d=deployment, at=first["happened"], words=first["words"],
        ).scalar_one()  # fmt: skip
        cell = PLAN_BODY["cells"][0] | {"conditions": {first["words"]: first["words"]}, "why": first["words"]}
        plan = run(
            "INSERT INTO trial_plans (project_id, deployment_id, policy_id, goal, body, created_at, created_by) "
            "SELECT :p, id, policy_id, 'verdict', CAST(:body AS jsonb), :at, :words FROM deployments "
            "WHERE project_id = :p AND id = :d RETURNING id",
            d=deployment, at=first["at"], words=first["words"], body=json.dumps(PLAN_BODY | {"cells": [cell]}),
        ).scalar_one()  # fmt: skip
    return {"{incident_id}": incident, "{alert_id}": alert, "{decision_id}": decision, "{plan_id}": plan}


def addresses(table: Any, ids: dict[str, Any]) -> list[str]:
    known = {"{slug:path}": "line", "{episode_id:path}": "extreme-2"} | ids
    found = []
    for way in table:
        if way.method == "GET" and way.who != "anybody":
            path = way.path
            for part, value in known.items():
                path = path.replace(part, str(value))
            found.append(path)
    more = ("/compare?deployment=line&policy=bin-pick@1.4.0", "/deployments/line?format=report", "/episodes?format=csv",
            "/deployments/line?since=2026-01-01T00:00:00Z", "/deployments/line?metric=reward",
            "/deployments/line?metric=duration_s", "/deployments/line?since=30d", "/?since=9999w",
            "/compare/simulators?metric=energy")  # fmt: skip
    return [*found, *more]


@settings(max_examples=4, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=stored_rows())
def test_every_page_survives_any_stored_row(attacked, extreme, admin, table, rows):
    ids = store(extreme, rows)
    with extreme.client("read") as client:
        statuses = {address: status_of(admin, address) for address in addresses(table, ids)}
        statuses |= {
            path: client.get(path).status_code
            for path in (
                "/events",
                "/silences?all=true",
                "/incidents",
                "/alerts",
                "/robots",
                "/deployments",
                "/deployments/line/trend",
                "/deployments/line/ledger",
                "/deployments/line/advice",
                "/fixes",
                "/fixes/table",
                "/week",
                "/rejected",
            )
        }
    assert {path: status for path, status in statuses.items() if status != 200} == {}, why(attacked.log)


def why(log: str) -> list[str]:
    """Where each kind of unexpected error was raised."""
    lines = (json.loads(line) for line in log.splitlines() if '"unexpected error"' in line)
    errors = [error for line in lines for error in line.get("exception", [])]
    return sorted(
        {
            f"{error['exc_type']} {error['exc_value']}: {error['frames'][-2:]}"
            for error in errors
            if error["frames"]
        }
    )


def status_of(browser: Browser, address: str) -> int:
    try:
        return browser.get(address).status_code
    except httpx.ReadError:  # after an unexpected error the server closes
        return browser.get(address).status_code
