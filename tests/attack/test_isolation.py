"""Attack: reach another tenant's rows, by every route with every role and every id, and by a query that forgets its
project.

The routes are taken from the tables that serve them. A new route is covered by that, or fails here until somebody
says what its path's names stand for.
"""

import re

import httpx
import pytest
from attack.neighbours import MARK, TENANTS_TABLES, addressed, foreign_values, make_neighbour, served_routes
from people import Browser, somebody
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from gapwatch.access.roles import ROLES
from gapwatch.store.core.database import Database
from gapwatch.store.core.tenancy import RoleMissing, ensure_tenant_role, protect_tables

SCOPES = ("ingest", "read", "admin")


# --- the database itself


@pytest.fixture
def two_projects(database):
    with database.transaction() as connection:
        for slug in ("anna", "boris"):
            connection.execute(text("INSERT INTO projects (slug, name) VALUES (:s, :s)"), {"s": slug})
        connection.execute(
            text("INSERT INTO channels (project_id, name, kind) SELECT id, slug, 'webhook' FROM projects")
        )
        connection.execute(text("INSERT INTO users (email, password_hash) VALUES ('a@x', 'h'), ('b@x', 'h')"))
        connection.execute(
            text(
                "INSERT INTO members SELECT p.id, u.id, 'admin' FROM projects p, users u WHERE left(p.slug, 1) = left(u.email, 1)"
            )
        )
        [[anna], [boris]] = connection.execute(text("SELECT id FROM projects ORDER BY slug")).all()
    return anna, boris


def names(connection, statement):
    return [row[0] for row in connection.execute(text(statement))]


def test_a_query_that_forgets_its_project_sees_the_rows_of_one_alone(database, two_projects):
    anna, boris = two_projects
    for project_id, slug in ((anna, "anna"), (boris, "boris")):
        with database.transaction(project_id) as connection:
            assert names(connection, "SELECT name FROM channels") == [slug]
            assert names(connection, "SELECT slug FROM projects") == [slug]
            assert names(connection, "SELECT email FROM users") == [f"{slug[0]}@x"]
        with database.reading(project_id) as connection:
            assert names(connection, "SELECT name FROM channels") == [slug]
    with database.transaction() as connection:
        assert names(connection, "SELECT name FROM channels ORDER BY 1") == ["anna", "boris"]


def test_nothing_of_a_transaction_stays_in_its_connection(database, two_projects):
    """A pool, or PgBouncer in transaction mode, hands a connection on after every transaction."""
    anna, _ = two_projects
    with database.engine.connect() as connection:
        for ending in (connection.commit, connection.rollback):
            with database.transaction(anna):
                pass
            connection.execute(
                text(
                    "SELECT set_config('role', 'gapwatch_tenant', true), set_config('gapwatch.project', '1', true)"
                )
            )
            ending()
            assert names(connection, "SELECT current_user::text") == names(connection, "SELECT session_user::text")
            assert names(connection, "SELECT nullif(current_setting('gapwatch.project', true), '')") == [None]
            connection.rollback()


def test_a_tenant_without_a_project_sees_nothing(database, two_projects):
    with database.transaction() as connection:
        connection.execute(text("SET LOCAL ROLE gapwatch_tenant"))
        for table in ("channels", "projects", "members"):
            assert (
                names(
                    connection,
                    f"SELECT project_id FROM {table}" if table != "projects" else "SELECT id FROM projects",
                )
                == []
            )


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO channels (project_id, name, kind) VALUES (:other, 'x', 'webhook')",
        "UPDATE channels SET project_id = :other",
        "SELECT password_hash FROM users",
        "SELECT * FROM browser_sessions",
        "SELECT * FROM server_secret",
        "SELECT * FROM sign_in_attempts",
        "DELETE FROM audit_entries",
        "ALTER TABLE channels DISABLE ROW LEVEL SECURITY",
        "DROP POLICY of_the_project ON channels",
        "CREATE TABLE mine (x int)",
    ],
)
def test_a_tenant_can_neither_write_elsewhere_nor_read_how_people_sign_in(database, two_projects, statement):
    anna, boris = two_projects
    with pytest.raises(DBAPIError), database.transaction(anna) as connection:
        connection.execute(text(statement), {"other": boris} if ":other" in statement else {})


def test_every_table_of_tenants_is_under_row_security_and_every_other_is_closed(database):
    with database.transaction() as connection:
        ruled = names(
            connection,
            "SELECT relname FROM pg_class c JOIN pg_policy p ON p.polrelid = c.oid WHERE relrowsecurity ORDER BY 1",
        )
        open_to_tenants = names(
            connection,
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
            " AND has_any_column_privilege('gapwatch_tenant', oid, 'SELECT')",
        )
    assert set(TENANTS_TABLES) <= set(ruled)
    assert set(open_to_tenants) - set(ruled) == {"heartbeats", "service_spans"}


def test_a_table_of_a_later_release_is_protected_by_itself(database):
    with database.transaction() as connection:
        connection.execute(text("CREATE TABLE later (project_id int, x int)"))
        assert protect_tables(connection) == ["later"]
        assert protect_tables(connection) == []


def test_the_service_and_its_tenants_are_no_superusers(service, service_database):
    with service_database.transaction() as connection:
        rows = connection.execute(
            text(
                "SELECT rolname, rolsuper, rolcreaterole, rolcreatedb, rolbypassrls FROM pg_roles"
                " WHERE rolname IN (current_user, 'gapwatch_tenant')"
            )
        ).all()
    assert len(rows) == 2
    assert not [row for row in rows if any(row[1:])]


def test_where_the_role_cannot_be_made_a_sentence_says_what_to_run(database, monkeypatch):
    """The service's role may not make roles; one of another name is not there."""
    monkeypatch.setattr("gapwatch.store.core.tenancy.TENANT_ROLE", "gapwatch_of_elsewhere")
    with database.transaction() as connection, pytest.raises(RoleMissing) as missing:
        ensure_tenant_role(connection)
    assert "CREATE ROLE gapwatch_of_elsewhere NOLOGIN; GRANT" in str(missing.value)


def test_pages_and_api_open_no_transaction_without_a_project():
    """But where nobody is known yet, and where the service asks for itself."""
    from gapwatch.settings import ROOT

    free = {
        "people/sign_in.py",
        "people/onboarding.py",
        "people/address_confirmation.py",
        "people/sign_in_gate.py",
    }
    free |= {"health.py", "metrics.py"}
    for folder in ("api", "pages"):
        for path in sorted((ROOT / "backend/gapwatch" / folder).rglob("*.py")):
            if not str(path).endswith(tuple(free)):
                assert not re.search(r"\.(transaction|reading)\(\)", path.read_text()), path


# --- every route


@pytest.fixture(scope="module")
def neighbour(service):
    database = Database(service.database_url)
    yield make_neighbour(service, database)
    database.close()


STATIC = ("/static/", "/healthz", "/readyz")
# What an answer to a foreign id may be; nothing of the neighbour's is in it and nothing of theirs has changed.
REFUSALS = {303, 400, 401, 403, 404, 405, 409, 415, 422}


def test_no_route_gives_a_role_anything_of_another_tenant(service, project, neighbour):
    routes, bodies = served_routes(service)
    assert len(routes) > 90
    values = foreign_values(neighbour)
    before = neighbour.fingerprint()
    api = [route for route in routes if route[1].startswith("/api/") or route[1] == "/metrics"]
    pages = [route for route in routes if route not in api and not route[1].startswith(STATIC)]
    for scope in SCOPES:
        with httpx.Client(
            base_url=service.url, timeout=30, headers={"Authorization": f"Bearer {project.keys[scope]}"}
        ) as client:
            for method, path in api:
                if path == "/api/v1/openapi.json":
                    continue
                body = bodies.get((method, path)) if method in {"POST", "PUT", "PATCH"} else None
                answer = client.request(method, addressed(path, values), json=body)
                check(answer, (scope, method, path), has_id="{" in path)
    theirs = neighbour.project.slug
    for role in (*ROLES, None):
        with Browser(service, somebody(project, role) if role else None) as browser:
            token = browser.token() if role else ""
            for method, path in pages:
                if method == "POST" and path in {"/sign-out", "/set-up"}:
                    continue
                address, has_id = addressed(path, values), "{" in path
                if method == "POST":
                    for slug in (project.slug, theirs):
                        data = form(token, slug, neighbour) if role else {}
                        # Where it would lead to is one of the pages.
                        answer = browser.post(address, data=data, follow_redirects=False)
                        check(answer, (role, method, path), has_id=has_id and role is not None)
                    continue
                check(browser.get(address, params={"project": theirs}), (role, method, path), has_id=False)
                # Without an id it is a page of one's own project, the same for every role that may see it.
                if has_id or role in {"admin", None}:
                    check(browser.get(address), (role, method, path), has_id=has_id and role is not None)
    assert neighbour.fingerprint() == before


def form(token, slug, neighbour):
    """A form in which every number is the neighbour's."""
    numbers = {name.removesuffix("_id"): str(number) for name, number in neighbour.numbers.items()}
    words = {
        "role": "admin",
        "act": "acknowledge",
        "name": f"{MARK}-rule",
        "robot": f"{MARK}-robot",
        "deployment": f"{MARK}-line",
    }
    return {**numbers, **words, "id": numbers["incident"], "csrf": token, "project": slug}


def check(answer, what, *, has_id):
    assert answer.status_code < 500, (what, answer.status_code, answer.text[:300])
    first = answer.history[0].request if answer.history else answer.request
    asked = f"{first.url} {first.read().decode('utf-8', 'replace')}"
    said = answer.text
    # What the attacker wrote himself may stand in the answer; nothing that he did not know.
    for secret in ("-policy", "-task", "-site", "-hook", "-junk"):
        assert MARK + secret not in said or MARK + secret in asked, (what, said[:500])
    if has_id and answer.history == []:
        assert answer.status_code in REFUSALS, (what, answer.status_code, said[:300])


# --- what is said in passing


def test_figures_of_a_key_are_of_its_project_alone(service, project, neighbour):
    neighbour.project.rows(
        "INSERT INTO deliveries (project_id, channel_id, action, dedup_key, content, state, give_up_at)"
        " SELECT :p, :c, 'trigger', 'gapwatch/x/1', '{}', 'dead', now() RETURNING id",
        c=neighbour.numbers["channel_id"],
    )
    try:
        mine, theirs = (
            httpx.get(f"{service.url}/metrics", headers={"Authorization": f"Bearer {one.keys['read']}"}).text
            for one in (project, neighbour.project)
        )
        assert "gapwatch_outbox_dead 0" in mine and "gapwatch_outbox_dead 1" in theirs
        public = httpx.get(f"{service.url}/readyz", headers={"X-Forwarded-For": "203.0.113.9"}).json()
        assert "deliveries" not in public["checks"]
        assert all(set(check) == {"ok"} for check in public["checks"].values())
    finally:
        neighbour.project.rows("DELETE FROM deliveries WHERE project_id = :p RETURNING id")


def test_a_new_projects_name_is_never_taken(service, project, neighbour):
    with Browser(service, somebody(project, "admin")) as browser:
        for slug in (neighbour.project.slug, "nobodys-name"):
            answer = browser.submit("/projects", project.slug, slug=slug)
            assert answer.status_code == 200 and "taken" not in answer.text


def test_an_invitation_does_not_say_who_has_an_account(service, project, neighbour):
    known = somebody(neighbour.project, "viewer")["email"]
    said = []
    with Browser(service, somebody(project, "admin")) as browser:
        for email in (known, "nobody-here@example.com"):
            page = browser.submit("/settings/members/invite", project.slug, email=email, role="viewer").text
            link = re.search(r"/invitation\?token=[\w-]+", page)[0]
            shown = httpx.get(service.url + link).text
            token = link.partition("=")[2]
            tried = httpx.post(f"{service.url}/invitation", data={"token": token, "password": "password"}).text
            said.append([text.replace(email, "").replace(token, "") for text in (shown, tried)])
    assert said[0] == said[1]
