"""Every error the service answers has one shape, whoever raises it."""

import asyncio
import gzip
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from starlette.routing import Route

from gapwatch import errors
from gapwatch.app import make_app
from gapwatch.settings import Settings
from parts import episode

MEMBERS = {"type", "title", "status", "detail", "instance", "errors"}


def assert_problem(answer: httpx.Response, status: int, code: str) -> dict:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert set(body) == MEMBERS
    assert body["status"] == status
    assert body["type"] == f"/problems/{code}"
    assert body["title"]
    assert body["detail"]
    assert body["instance"] == f"/requests/{answer.headers['x-request-id']}"
    for fault in body["errors"]:
        assert {"pointer", "code", "message"} <= set(fault) <= {"pointer", "code", "message", "index"}
    return body


def test_unknown_address(project):
    with project.client() as client:
        assert_problem(client.get("/nothing/here"), 404, "not-found")


def test_wrong_method_lists_the_right_ones(project):
    with project.client() as client:
        answer = client.patch("/episodes/batch", json={})
        assert_problem(answer, 405, "method-not-allowed")
        assert "POST" in answer.headers["allow"]


def test_no_key(service):
    answer = httpx.post(f"{service.url}/api/v1/episodes", json=episode())
    assert_problem(answer, 401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_wrong_scope(project):
    with project.client("read") as client:
        assert_problem(client.post("/episodes", json=episode()), 403, "forbidden")


def test_body_that_is_no_json(project):
    with project.client() as client:
        answer = client.post("/episodes", content=b"{", headers={"Content-Type": "application/json"})
        assert_problem(answer, 400, "malformed-body")


def test_body_that_is_too_large(project):
    with project.client() as client:
        answer = client.post(
            "/episodes", content=b" " * (1024 * 1024 + 1), headers={"Content-Type": "application/json"}
        )
        assert_problem(answer, 413, "body-too-large")


def test_body_that_unpacks_to_too_much(project):
    with project.client() as client:
        answer = client.post(
            "/episodes/batch",
            content=gzip.compress(bytes(100 * 1024 * 1024)),
            headers={"Content-Type": "application/json", "Content-Encoding": "gzip"},
        )
        assert_problem(answer, 413, "body-too-large")


def test_media_type_that_is_not_taken(project):
    with project.client() as client:
        answer = client.post("/episodes", content=b"a=1", headers={"Content-Type": "text/plain"})
        assert_problem(answer, 415, "unsupported-media-type")


def test_invalid_record_names_field_and_remedy_and_repeats_no_value(project):
    with project.client() as client:
        answer = client.post("/episodes", json=episode(outcome="s3cret-word", colour="blue"))
    body = assert_problem(answer, 422, "invalid")
    found = {(fault["pointer"], fault["code"]) for fault in body["errors"]}
    assert found == {("/outcome", "unknown-value"), ("/colour", "unknown-field")}
    assert "s3cret-word" not in answer.text


def test_same_id_with_other_content(project):
    record = episode()
    with project.client() as client:
        assert client.post("/episodes", json=record).status_code == 201
        answer = client.post("/episodes", json=record | {"outcome": "failure"})
    assert_problem(answer, 409, "conflict")


def test_request_id_of_the_sender_is_kept_when_it_is_sane(project):
    with project.client() as client:
        kept = client.get("/nothing", headers={"X-Request-Id": "robot-7.run-42"})
        assert kept.headers["x-request-id"] == "robot-7.run-42"
        replaced = client.get("/nothing", headers={"X-Request-Id": "<script>alert(1)</script>"})
        assert len(replaced.headers["x-request-id"]) == 32


def test_a_browser_gets_the_error_as_a_page(service):
    answer = httpx.get(f"{service.url}/nothing", headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "There is nothing at this address." in answer.text


@pytest.fixture
def broken_app(tmp_path):
    """The real app with one route that fails, and a database and Redis that are away."""
    settings = Settings(
        database_url=f"postgresql://nobody@/nothing?host={tmp_path}",
        redis_url=f"unix://{tmp_path}/redis.sock",
        data_dir=tmp_path,
    )
    app = make_app(settings)

    def fail(_):
        raise RuntimeError("the password is hunter2")

    app._app._app._app.router.routes.insert(0, Route("/api/v1/fail", fail))
    return app


def call(app, method, path, **options):
    async def run():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **options)

    # In a thread of its own: a browser test may have left a running loop in this one.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, run()).result()


def test_unexpected_failure_tells_its_id_and_nothing_else(broken_app):
    answer = call(broken_app, "GET", "/api/v1/fail")
    body = assert_problem(answer, 500, "internal-error")
    assert "hunter2" not in answer.text
    assert answer.headers["x-request-id"] in body["detail"]


def test_database_that_is_away_is_a_503_with_a_time_to_retry(broken_app):
    answer = call(broken_app, "GET", "/", headers={"Cookie": "gapwatch=x"})
    assert_problem(answer, 503, "unavailable")
    assert int(answer.headers["retry-after"]) > 0


def test_every_error_has_a_code_of_its_own():
    kinds = []
    waiting = [errors.GapwatchError]
    while waiting:
        kind = waiting.pop()
        kinds.append(kind)
        waiting += kind.__subclasses__()
    assert len(kinds) > 10
    assert len({kind.code for kind in kinds}) == len(kinds)
