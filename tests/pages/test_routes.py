"""Who may do what: the table of routes, walked with every role."""

import httpx
import pytest
from people import Browser, somebody

from gapwatch.access.roles import ROLES
from gapwatch.access.sealing import Sealer
from gapwatch.doors.costly_reads import CostlyReads
from gapwatch.pages.routes import PageRoutes
from gapwatch.pages.templates import Pages
from gapwatch.settings import Settings
from gapwatch.store.core.database import Database
from parts import episode, make_project, wait_until

FORBIDDEN, MISSING = 403, 404


@pytest.fixture(scope="module")
def table(service):
    settings = Settings(data_dir=service.data_dir, database_url=service.database_url)
    database = Database(service.database_url)
    yield PageRoutes(
        database,
        Pages(),
        settings,
        nudge=lambda kind: None,
        sealer=Sealer(b"s" * 32),
        costly=CostlyReads(),
        export=lambda project_id, wanted: iter(()),
    ).table
    database.close()


def address(way, known: str) -> str:
    """The route with something that exists in it."""
    found = way.path.replace("{episode_id:path}", known).replace("{slug:path}", "berlin-line-3")
    return found.replace("{alert_id}", "1")


@pytest.fixture
def filled(project):
    record = episode(outcome="failure")
    with project.client() as client:
        client.post("/episodes", json=record).raise_for_status()
    wait_until(
        lambda: project.value("SELECT count(*) FROM rollup_counts WHERE project_id = :p"), what="the counts"
    )
    return record["id"]


def test_every_page_asks_for_its_role(service, project, table, filled):
    people = {role: Browser(service, somebody(project, role)) for role in ROLES}
    ways = [way for way in table if way.who in ROLES]
    assert len(ways) > 15
    for way in ways:
        path = address(way, filled)
        for role, browser in people.items():
            answer = browser.get(path) if way.method == "GET" else browser.submit(path, project.slug)
            allowed = ROLES.index(role) >= ROLES.index(way.who)
            if allowed:
                # A form without its fields may be refused for what it says, never for who sends it.
                assert answer.status_code < 500 and answer.status_code != FORBIDDEN, (
                    way,
                    role,
                    answer.status_code,
                )
            else:
                assert answer.status_code == FORBIDDEN, (way, role, answer.status_code)
    for browser in people.values():
        browser.close()


def test_nobody_gets_past_the_door_without_signing_in(service, table, filled):
    with httpx.Client(base_url=service.url) as stranger:
        for way in table:
            if way.who == "anybody":
                continue
            path = address(way, filled)
            if way.method == "GET":
                answer = stranger.get(path)
                assert answer.status_code == 303, way
                assert answer.headers["location"].startswith("/sign-in?to="), way
                assert stranger.get(path, headers={"Accept": "application/json"}).status_code == 401, way
            else:
                assert stranger.post(path, data={"csrf": "x"}).status_code == 401, way


def test_every_change_needs_the_token_and_comes_from_here(service, project, table, filled):
    with Browser(service, somebody(project, "admin")) as browser:
        token = browser.token()
        for way in table:
            if way.method != "POST" or way.who == "anybody":
                continue
            path, fields = address(way, filled), {"csrf": token, "project": project.slug}
            assert browser.post(path, data=fields | {"csrf": "guessed"}).status_code == FORBIDDEN, way
            assert browser.post(path, data={"project": project.slug}).status_code == FORBIDDEN, way
            for headers in (
                {"Origin": "https://evil.example"},
                {"Origin": "null"},
                {"Sec-Fetch-Site": "cross-site"},
                {"Sec-Fetch-Site": "same-site"},
            ):
                assert browser.post(path, data=fields, headers=headers).status_code == FORBIDDEN, (way, headers)
        # None of it did anything, signing out included.
        assert browser.get("/").url.path == "/"


def test_what_belongs_to_another_project_is_not_there(service, service_database, project, filled):
    stranger = make_project(service, service_database)
    with Browser(service, somebody(stranger, "admin")) as browser:
        absent = browser.get("/episodes/no-such-episode")
        assert absent.status_code == MISSING
        for path in (f"/episodes/{filled}", "/deployments/berlin-line-3", f"/?project={project.slug}"):
            answer = browser.get(path)
            assert answer.status_code == MISSING, path
            assert project.slug not in answer.text
        for path in (f"/episodes/{filled}", "/deployments/berlin-line-3"):
            assert browser.submit(path, stranger.slug).status_code == MISSING
            assert browser.submit(path, project.slug).status_code == MISSING
        assert browser.submit("/settings/members", stranger.slug, user="1", role="viewer").status_code == MISSING


def test_every_answer_carries_the_security_headers(service, table, project, filled):
    with Browser(service, somebody(project, "admin")) as browser:
        for way in table:
            if way.method == "GET":
                headers = browser.get(address(way, filled)).headers
                policy = headers["content-security-policy"]
                assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
                assert "script-src 'self';" in policy
                assert headers["x-content-type-options"] == "nosniff"
                assert headers["cross-origin-opener-policy"] == "same-origin"
                assert headers["cache-control"] == "no-store"
                assert "access-control-allow-origin" not in headers
