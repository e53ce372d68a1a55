"""A page costs a small, fixed number of queries, the sign-in and the project's state among them."""

import asyncio

import httpx
import pytest
from pages.deployments.test_deployment import story
from people import Browser, somebody
from sqlalchemy import text

from gapwatch.app import make_app
from gapwatch.settings import Settings
from parts import wait_until


@pytest.fixture
def count_queries(service, project, queries):
    """count_queries(address) → the statements of a page, by the same application in this process.

    Of the second time: what cells and contracts are called is remembered by then.
    """
    with Browser(service, somebody(project, "viewer")) as browser:
        with project.client() as client:
            client.post("/episodes/batch", json=story()).raise_for_status()
        wait_until(
            lambda: browser.get("/deployments/berlin-line-3?format=json").json()["page"]["drop"]["n_real"] == 120,
            what="the numbers",
        )
        application = make_app(
            Settings(
                data_dir=service.data_dir,
                database_url=service.running["database_url"],
                redis_url=service.running["redis_url"],
            )
        )

        async def ask(address: str) -> list[str]:
            transport = httpx.ASGITransport(app=application)
            async with httpx.AsyncClient(
                transport=transport, base_url=service.url, cookies=browser.client.cookies
            ) as client:
                for _ in range(2):
                    queries.clear()
                    answer = await client.get(address, headers={"Accept": "text/html"})
                    assert answer.status_code == 200, answer.text[:500]
            return list(queries)

        yield lambda address: asyncio.run(ask(address))


def test_the_fleet_takes_at_most_ten_queries(count_queries):
    sent = count_queries("/")
    assert 5 < len(sent) <= 10, sent
    assert len(count_queries("/?since=7d")) <= 12


def test_a_deployment_takes_at_most_ten_queries(count_queries):
    sent = count_queries("/deployments/berlin-line-3")
    assert 5 < len(sent) <= 10, sent
    # The second is so short that its trend goes by the hour.
    for window in (
        "since=2026-10-05T00:00:00Z",
        "since=2026-10-05T00:00:00Z&until=2026-10-06T00:00:00Z",
        "since=2020-01-01T00:00:00Z",
    ):
        assert len(count_queries(f"/deployments/berlin-line-3?{window}")) <= 10


def test_a_window_that_begins_and_ends_within_a_day_takes_one_more(count_queries):
    """Of its edges, for whatever is counted and measured there."""
    for window in ("since=2026-10-03T10:17:00Z", "since=2026-10-03T10:17:00Z&until=2026-10-06T11:11:00Z"):
        sent = count_queries(f"/deployments/berlin-line-3?{window}")
        assert len(sent) <= 11, sent


def test_what_was_before_takes_no_more_queries(count_queries):
    assert len(count_queries("/deployments/berlin-line-3?against=before")) <= 10


def add_incidents(project, number: int) -> None:
    """So many more deployments with an incident of three alerts each."""
    with project.database.transaction() as connection:
        connection.execute(
            text("""
            INSERT INTO deployments (project_id, slug, policy_id, task_id, described_at)
            SELECT project_id, 'more-' || n, policy_id, task_id, now() FROM deployments, generate_series(1, :n) AS n
            WHERE project_id = :p AND slug = 'berlin-line-3' ON CONFLICT DO NOTHING
            """),
            {"p": project.id, "n": number},
        )
        connection.execute(
            text("""
            WITH opened AS (
                INSERT INTO incidents (project_id, deployment_id, state, severity)
                SELECT project_id, id, 'firing', 'warning' FROM deployments
                WHERE project_id = :p AND slug LIKE 'more-%' ON CONFLICT DO NOTHING RETURNING project_id, id, deployment_id)
            INSERT INTO alerts (project_id, deployment_id, incident_id, rule, kind, series, state, severity)
            SELECT project_id, deployment_id, id, 'r', 'drift', 'signal:' || n, 'firing', 'warning'
            FROM opened, generate_series(1, 3) AS n
            """),
            {"p": project.id},
        )


def test_the_inbox_takes_the_same_queries_for_one_incident_and_for_sixty(count_queries, project):
    add_incidents(project, 1)
    few = count_queries("/alerts")
    add_incidents(project, 60)
    many = count_queries("/alerts")
    assert len(few) == len(many) <= 8, many


def test_an_incident_takes_a_fixed_number_of_queries(count_queries, project):
    add_incidents(project, 3)
    taken = {
        len(count_queries(f"/incidents/{number}"))
        for (number,) in project.rows("SELECT id FROM incidents WHERE project_id = :p")
    }
    assert max(taken) - min(taken) == 0 and max(taken) <= 22, taken


def test_fixes_and_the_week_take_the_same_queries_for_one_fix_and_for_twenty(count_queries, project):
    def add(number: int) -> None:
        with project.database.transaction() as connection:
            connection.execute(
                text("""
                INSERT INTO events (project_id, kind, at, title, deployment_id)
                SELECT project_id, 'mitigation', timestamptz '2026-10-14' + n * interval '1 hour', 'fix ' || n, id
                FROM deployments, generate_series(1, :n) AS n WHERE project_id = :p AND slug = 'berlin-line-3'
                """),
                {"p": project.id, "n": number},
            )

    add(1)
    few = {page: len(count_queries(page)) for page in ("/fixes", "/week", "/deployments/berlin-line-3")}
    add(19)
    many = {page: len(count_queries(page)) for page in few}
    assert few == many
    assert many["/fixes"] <= 14 and many["/deployments/berlin-line-3"] <= 19 and many["/week"] <= 30, many
