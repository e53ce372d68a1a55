"""Attack: find a way into the database that row security does not watch, and read other tenants from numbers.

Every query of every page and of the read API is looked at while it runs: as whom, and of which project.
"""

import re
import threading

import httpx
import psycopg
import pytest
from attack.neighbours import COUNTED, TENANTS_TABLES, addressed, foreign_values, make_neighbour, served_routes
from attack.serving import serving
from people import PASSWORD
from sqlalchemy import text

from gapwatch.app import make_app
from gapwatch.backups import BackupError, back_up
from gapwatch.settings import Settings
from gapwatch.store.core.row_numbers import number_rows
from gapwatch.store.core.tenancy import COPIED_INTO, TENANT_ROLE
from gapwatch.store.write.new_episodes import COPY
from parts import Project, make_project

# Who it is and what they may: asked before there is a project to be of.
BEFORE_A_PROJECT = {"api_keys", "browser_sessions", "members", "projects", "users"}
# Where nobody is known yet, or who is there is of several projects, or the service asks for itself.
OF_NO_PROJECT = ("/sign-in", "/sign-out", "/set-up", "/invitation", "/confirm-address", "/account", "/projects",
                 "/healthz", "/readyz", "/static/", "/api/v1/openapi.json")  # fmt: skip
# COPY, and corrections of what was copied; and permits, which are read for all robots that wait over one connection,
# each answered with the row of its own project (tests/api/test_permits.py).
INGEST = {
    ("GET", "/api/v1/deployments/{slug}/permit"),
    ("POST", "/api/v1/episodes"),
    ("POST", "/api/v1/episodes/batch"),
    ("PUT", "/api/v1/episodes/{episode_id}"),
    ("DELETE", "/api/v1/episodes/{episode_id}"),
}
TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:ONLY\s+)?\"?([a-z_]+)", re.IGNORECASE)


@pytest.fixture
def looked_at(monkeypatch):
    """Statements on tables of tenants that this process ran as anybody but the tenants' role, or of no project."""
    found: list[str] = []
    execute, execute_async = psycopg.Cursor.execute, psycopg.AsyncCursor.execute
    looking = threading.local()
    ask = "SELECT current_user, coalesce(current_setting('gapwatch.project', true), '')"

    def note(query, who, project):
        named = set(TABLE.findall(str(query)))
        if (who != TENANT_ROLE or not project) and named & (set(TENANTS_TABLES) - BEFORE_A_PROJECT):
            found.append(f"{who} {project!r}: {str(query)[:300]}")

    def looked(self, query, *arguments, **options):
        in_transaction = self.connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        who, project = "nobody", ""
        if in_transaction and not getattr(looking, "on", False):
            looking.on = True
            try:
                with psycopg.Cursor(self.connection) as cursor:
                    execute(cursor, ask)
                    who, project = cursor.fetchone()
            finally:
                looking.on = False
        note(query, who, project)
        return execute(self, query, *arguments, **options)

    async def looked_async(self, query, *arguments, **options):
        note(query, "the pool of ingest", "")
        return await execute_async(self, query, *arguments, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", looked)
    monkeypatch.setattr(psycopg.AsyncCursor, "execute", looked_async)
    return found


def test_every_query_of_a_page_or_of_the_read_api_is_a_tenants(service, service_database, monkeypatch, looked_at):
    neighbour = make_neighbour(service, service_database)
    values = foreign_values(neighbour)
    routes, bodies = served_routes(service)
    # All in this process, where it can be looked at.
    monkeypatch.setattr("gapwatch.app.SIDE_PROCESSES", 0)
    settings = Settings(
        database_url=service.database_url, redis_url=service.running["redis_url"], data_dir=service.data_dir
    )
    key = {"Authorization": f"Bearer {neighbour.project.keys['admin']}"}
    asked = 0
    with (
        serving(make_app(settings), "on") as (port, _),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, headers={"Accept": "text/html"}) as browser,
    ):
        who = {"email": f"admin-{neighbour.project.slug}@example.com", "password": PASSWORD}
        assert browser.post("/sign-in", data=who).status_code == 303
        token = re.search(r'name="csrf" value="([^"]+)"', browser.get("/account").text)[1]
        looked_at.clear()
        # What reads comes first, while everything is still there.
        for method, path in sorted(routes, key=lambda route: ("GET", "POST", "PUT", "DELETE").index(route[0])):
            if path.startswith(OF_NO_PROJECT) or (method, path) in INGEST:
                continue
            address = addressed(path, values)
            if path.startswith("/api/") or path == "/metrics":
                body = bodies.get((method, path)) if method != "GET" else None
                answer = browser.request(method, address, json=body, headers=key)
            elif method == "GET":
                answer = browser.get(address)
            else:
                answer = browser.post(address, data={"csrf": token, "project": neighbour.project.slug})
            assert answer.status_code < 500, (method, path, answer.text[:300])
            assert looked_at == [], (method, path)
            asked += 1
    assert asked > 80


def test_row_security_is_forced_upon_the_owner_where_nothing_is_copied_into(database):
    with database.transaction() as connection:
        rows = connection.execute(
            text(
                "SELECT relname, relforcerowsecurity FROM pg_class WHERE relnamespace = 'public'::regnamespace"
                " AND relrowsecurity"
            )
        ).all()
    assert {name for name, _ in rows} >= set(TENANTS_TABLES)
    assert [name for name, is_forced in rows if not is_forced] == list(COPIED_INTO)
    assert re.search(r"COPY (\w+)", COPY)[1] in COPIED_INTO


def test_owning_a_table_opens_nothing_by_itself(database):
    """Without the policy of the service its own role sees no row, and a backup by it is refused, not short."""
    with database.transaction() as connection:
        connection.execute(text("INSERT INTO projects (slug, name) VALUES ('anna', 'anna')"))
        connection.execute(text("INSERT INTO channels (project_id, name, kind) VALUES (1, 'x', 'webhook')"))
    with database.transaction() as connection:
        assert connection.execute(text("SELECT count(*) FROM channels")).scalar_one() == 1
        connection.execute(text("DROP POLICY of_the_service ON channels"))
        assert connection.execute(text("SELECT count(*) FROM channels")).scalar_one() == 0


def test_a_backup_that_would_be_short_of_rows_is_refused(database, tmp_path):
    with database.transaction() as connection:
        connection.execute(text("DROP POLICY of_the_service ON channels"))
    with pytest.raises(BackupError, match="may not read all of channels"):
        back_up(database, tmp_path / "short.dump")


# --- numbers


@pytest.fixture
def two(database):
    with database.transaction() as connection:
        connection.execute(text("INSERT INTO projects (slug, name) VALUES ('anna', 'anna'), ('boris', 'boris')"))


def add_channel(database, project_id, name):
    with database.transaction(project_id) as connection:
        return connection.execute(
            text("INSERT INTO channels (project_id, name, kind) VALUES (:p, :n, 'webhook') RETURNING id"),
            {"p": project_id, "n": name},
        ).scalar_one()


def test_a_project_counts_for_itself(database, two):
    numbers = [add_channel(database, project_id, f"c{n}") for n, project_id in enumerate((1, 2, 2, 2, 1, 1))]
    assert numbers == [1, 1, 2, 3, 2, 3]


def test_the_number_of_a_row_that_is_gone_is_not_given_again(database, two):
    assert add_channel(database, 1, "a") == 1
    with database.transaction() as connection:
        connection.execute(text("DELETE FROM channels"))
    assert add_channel(database, 1, "b") == 2


def test_first_rows_that_come_at_once_get_a_number_each(database, two):
    numbers: list[int] = []
    threads = [
        threading.Thread(target=lambda name=f"c{n}": numbers.append(add_channel(database, 1, name)))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 9))


def test_an_older_database_goes_on_where_each_project_was(database, two):
    with database.transaction() as connection:
        connection.execute(
            text("INSERT INTO channels (project_id, id, name, kind) VALUES (1, 41, 'a', 'webhook')")
        )
    assert add_channel(database, 1, "b") == 42
    assert add_channel(database, 2, "b") == 1


def test_every_number_of_a_tenants_row_is_counted_so_and_those_of_people_are_drawn(database, two):
    with database.transaction() as connection:
        triggers = dict(
            connection.execute(
                text(
                    "SELECT tgrelid::regclass::text, tgfoid::regproc::text FROM pg_trigger WHERE tgname = 'number_of_row'"
                )
            ).all()
        )
        assert triggers.pop("users") == "draw_number"
        assert sorted(triggers) == COUNTED and set(triggers.values()) == {"take_number_of_project"}
        connection.execute(text("CREATE TABLE later (project_id int, id int GENERATED BY DEFAULT AS IDENTITY)"))
        assert number_rows(connection) == ["later"]
        emails = ", ".join(f"('{n}@x', 'h')" for n in range(20))
        ids = connection.scalars(text(f"INSERT INTO users (email, password_hash) VALUES {emails} RETURNING id"))
        assert max(ids) > 10_000


def test_what_a_tenant_sees_is_the_same_however_busy_the_others_are(service, project, service_database):
    """All that a new project shows of numbers, before and after others made a hundred of each."""

    def seen(one: Project):
        with one.client("admin") as client:
            return [
                client.post("/channels", json={"name": "x", "kind": "webhook", "config": {"url": "https://x.example/"}}).json()["id"],
                client.post("/silences", json={"reason": "x", "minutes": 60}).json()["id"],
                client.post("/events", json={"kind": "other", "title": "x"}).json()["id"],
                client.post("/keys", json={"name": "x", "scope": "read"}).json()["id"],
            ]  # fmt: skip

    first = seen(make_project(service, service_database))
    with project.client("admin") as client:
        for _ in range(20):
            client.post("/events", json={"kind": "other", "title": "busy"}).raise_for_status()
            client.post("/silences", json={"reason": "busy", "minutes": 60}).raise_for_status()
    assert seen(make_project(service, service_database)) == first


def test_what_has_the_same_number_elsewhere_stays_there(service, service_database, project):
    other = make_project(service, service_database)
    numbers = []
    for one in (project, other):
        with one.client("admin") as client:
            numbers.append(client.post("/events", json={"kind": "other", "title": "x"}).json()["id"])
    assert numbers[0] == numbers[1]
    with project.client("admin") as client:
        assert client.delete(f"/events/{numbers[0]}").status_code == 204
    assert other.value("SELECT count(*) FROM events WHERE project_id = :p") == 1
