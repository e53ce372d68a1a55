"""The links that lead in: the set-up link of a new service, and invitations."""

import re
import time

import httpx
import pytest
from people import PASSWORD, Browser, somebody

from gapwatch.access.tokens import SETUP_LASTS_S, setup_token
from gapwatch.accounts import put_person
from gapwatch.settings import Settings
from parts import make_project, reachable, start_service, wait_until


@pytest.fixture(scope="module")
def new_service(tmp_path_factory):
    """A service that nobody can sign in to yet."""
    service = start_service(reachable(tmp_path_factory.mktemp("new")) / "data")
    wait_until(lambda: "/set-up?token=" in service.log, what="the set-up link")
    yield service
    assert service.stop() == 0, service.log


def test_the_first_start_prints_a_link_that_makes_the_first_admin_once(new_service):
    link = re.search(r"http://\S+/set-up\?token=(\S+)", new_service.log)
    assert link is not None
    fields = {"token": link[1], "email": "ana@example.com", "password": PASSWORD, "project": "main"}
    with httpx.Client(base_url=new_service.url, follow_redirects=True) as browser:
        assert "set-up link" in browser.get("/sign-in").text
        assert browser.get("/set-up", params={"token": "guessed"}).status_code == 404
        assert browser.get("/set-up", params={"token": link[1]}).status_code == 200
        weak = browser.post("/set-up", data=fields | {"password": "password1"})
        assert weak.status_code == 422 and "guessed" in weak.text
        assert browser.post("/set-up", data=fields | {"email": "no address"}).status_code == 422
        assert browser.post("/set-up", data=fields | {"project": "No Slug"}).status_code == 422
        made = browser.post("/set-up", data=fields)
        assert made.status_code == 200 and made.url.path == "/"
        assert "main · admin" in made.text
    with httpx.Client(base_url=new_service.url, follow_redirects=True) as second:
        assert second.get("/set-up", params={"token": link[1]}).status_code == 404
        assert second.post("/set-up", data=fields | {"email": "eve@example.com"}).status_code == 404
        assert "set-up link" not in second.get("/sign-in").text


def test_a_set_up_link_is_over_after_a_day(service):
    secret = Settings(data_dir=service.data_dir).server_secret()
    old = setup_token(secret, int(time.time()) - SETUP_LASTS_S - 1)
    assert httpx.get(f"{service.url}/set-up", params={"token": old}).status_code == 404


@pytest.fixture
def invited(service, project):
    """An admin, and a link for somebody new."""
    with Browser(service, somebody(project, "admin")) as admin:
        email = f"new-{project.slug}@example.com"
        answer = admin.submit("/settings/members/invite", project.slug, email=email, role="viewer")
        token = re.search(r"/invitation\?token=([\w-]+)", answer.text)
        assert token is not None
        yield admin, email, token[1]


def test_an_invitation_makes_a_member_once(service, project, invited):
    admin, email, token = invited
    assert email in admin.get("/settings/members").text
    with Browser(service) as new:
        assert email in new.get("/invitation", params={"token": token}).text
        weak = new.post("/invitation", data={"token": token, "password": "short"})
        assert weak.status_code == 422
        joined = new.post("/invitation", data={"token": token, "password": PASSWORD})
        assert joined.status_code == 200
        assert f"{project.slug} · viewer" in joined.text
    with Browser(service) as again:
        assert again.get("/invitation", params={"token": token}).status_code == 404
        assert again.post("/invitation", data={"token": token, "password": PASSWORD}).status_code == 404


def test_only_a_hash_of_the_link_is_stored(project, invited):
    token = invited[2]
    stored = project.value("SELECT encode(token_hash, 'escape') FROM invitations WHERE project_id = :p")
    assert token not in stored
    project_log = project.rows("SELECT details::text FROM audit_entries WHERE project_id = :p")
    assert all(token not in row[0] for row in project_log)


def test_an_invitation_is_over_after_a_day_and_can_be_withdrawn(service, project, invited):
    admin, email, token = invited
    project.rows(
        "UPDATE invitations SET expires_at = now() - interval '1 second' WHERE project_id = :p RETURNING 1"
    )
    with Browser(service) as new:
        assert new.get("/invitation", params={"token": token}).status_code == 404
    answer = admin.submit("/settings/members/invite", project.slug, email=email, role="viewer")
    token = re.search(r"/invitation\?token=([\w-]+)", answer.text)[1]
    number = re.search(r'name="invitation" value="(\d+)"', answer.text)[1]
    admin.submit("/settings/members/withdraw", project.slug, invitation=number)
    with Browser(service) as new:
        assert new.get("/invitation", params={"token": token}).status_code == 404


def test_somebody_with_an_account_proves_it_and_then_has_two_projects(service, service_database, project, invited):
    _, email, token = invited
    other = make_project(service, service_database)
    put_person(service_database, email, PASSWORD, other.slug, "engineer")
    with Browser(service) as new:
        wrong = new.post("/invitation", data={"token": token, "password": "not this one at all"})
        assert wrong.status_code == 401
        joined = new.post("/invitation", data={"token": token, "password": PASSWORD})
        assert f"{project.slug} · viewer" in joined.text
        assert f"{other.slug} · engineer" in new.get("/", params={"project": other.slug}).text
        # With two projects every link says which one it means.
        page = new.get("/", params={"project": other.slug}).text
        links = re.findall(r'href="(/(?!static|sign)[^"]*)"', page)
        assert len(links) > 5
        assert all("project=" in link for link in links), links


def test_the_last_admin_stays(service, project):
    with Browser(service, somebody(project, "admin")) as admin:
        page = admin.get("/settings/members").text
        user = re.search(r'name="user" value="(\d+)"', page)[1]
        for role in ("viewer", "none"):
            answer = admin.submit("/settings/members", project.slug, user=user, role=role)
            assert answer.status_code == 422
            assert "needs an admin" in answer.text
        assert f"{project.slug} · admin" in admin.get("/").text


def test_who_is_removed_is_out_at_once(service, project):
    viewer = somebody(project, "viewer")
    with Browser(service, viewer) as out, Browser(service, somebody(project, "admin")) as admin:
        assert out.get("/").url.path == "/"
        page = admin.get("/settings/members").text
        user = re.search(
            rf'name="user" value="(\d+)"[^>]*>\s*<select name="role" aria-label="Role of {viewer["email"]}"', page
        )
        admin.submit("/settings/members", project.slug, user=user[1], role="none")
        assert "You are in no project yet" in out.get("/").text
