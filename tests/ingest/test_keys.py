"""Keys from the sender's side: what is one, what it opens, how soon it stops, and how much it may send."""

import json
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from gapwatch.access.keys import bearer, hash_key, new_key
from gapwatch.errors import TooManyRequests
from gapwatch.ingest.rate_limits import RateLimits
from gapwatch.store.core.database import Database
from parts import clean_environment, episode, make_project, reachable, start_service, wait_until


def post(service, **headers) -> httpx.Response:
    return httpx.post(f"{service.url}/api/v1/episodes", json=episode(), headers=headers)


def test_a_key_is_long_random_and_stored_only_as_a_keyed_hash(project):
    key = project.keys["ingest"]
    assert key.startswith("gw_")
    assert len(key) >= 3 + 43
    [[prefix, key_hash]] = project.rows(
        "SELECT prefix, key_hash FROM api_keys WHERE project_id = :p AND scope = 'ingest'"
    )
    assert key.startswith(prefix)
    assert len(prefix) == 11
    assert key[11:].encode() not in bytes(key_hash)
    assert hash_key(b"another server's secret", key) != bytes(key_hash)


def test_absent_wrong_revoked_and_expired_keys_get_the_same_answer(service, project):
    now = datetime.now(UTC)
    expired, revoked = new_key(b"x"), new_key(b"x")
    from gapwatch.settings import Settings

    secret = Settings(data_dir=service.data_dir).server_secret()
    with project.database.transaction() as connection:
        from gapwatch.store.people import access

        for fresh, expires_at in ((expired, now - timedelta(seconds=1)), (revoked, None)):
            key_id = access.add_key(
                connection,
                project.id,
                name="x",
                prefix=fresh.prefix,
                key_hash=hash_key(secret, fresh.secret),
                scope="ingest",
                actor="test",
                expires_at=expires_at,
            )
        access.revoke_key(connection, project.id, key_id, "test")
    wrong = project.keys["ingest"][:-1] + ("A" if project.keys["ingest"][-1] != "A" else "B")
    answers = [post(service)]
    answers += [
        post(service, Authorization=f"Bearer {key}") for key in (wrong, expired.secret, revoked.secret, "gw_short")
    ]
    assert {answer.status_code for answer in answers} == {401}
    bodies = {answer.text.replace(answer.headers["x-request-id"], "") for answer in answers}
    assert len(bodies) == 1


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "gw_abc",
        "Basic gw_" + "a" * 43,
        "Bearer " + "a" * 50,
        "Bearer gw_" + "é" * 43,
        "Bearer gw_" + "a" * 10_000,
    ],
)
def test_what_does_not_look_like_a_key_is_none(header):
    assert bearer(header) is None


def test_a_key_in_the_query_does_not_count(service, project):
    answer = httpx.post(f"{service.url}/api/v1/episodes?key={project.keys['ingest']}", json=episode())
    assert answer.status_code == 401
    assert project.keys["ingest"] not in service.log


@pytest.mark.parametrize(
    ("scope", "allowed"), [("ingest", {"ingest"}), ("read", {"read"}), ("admin", {"ingest", "read", "admin"})]
)
def test_a_scope_opens_its_own_routes_only(project, scope, allowed):
    with project.client(scope) as client:
        record = episode()
        found = {
            "ingest": client.post("/episodes", json=record).status_code != 403,
            "read": client.get("/episodes").status_code != 403,
            "admin": client.delete("/episodes/x").status_code != 403,
        }
    assert {name for name, is_open in found.items() if is_open} == allowed


def test_a_revoked_key_stops_working_within_a_second(project):
    with project.client("admin") as admin, project.client("ingest") as client:
        assert client.post("/episodes", json=episode()).status_code == 201
        [mine] = [key for key in admin.get("/keys").json()["keys"] if key["scope"] == "ingest"]
        assert admin.delete(f"/keys/{mine['id']}").status_code == 204
        time.sleep(1)
        assert client.post("/episodes", json=episode()).status_code == 401


def test_a_key_is_shown_once_and_its_use_is_noted(service, project):
    with project.client("admin") as admin:
        made = admin.post("/keys", json={"name": "line 3", "scope": "ingest", "expires_days": 1}).json()
        assert post(service, Authorization=f"Bearer {made['key']}").status_code == 201
        listed = wait_until(
            lambda: [k for k in admin.get("/keys").json()["keys"] if k["name"] == "line 3" and k["last_used_at"]]
        )
        assert made["key"] not in admin.get("/keys").text
    assert listed[0]["expires_at"]
    trail = project.rows(
        "SELECT action FROM audit_entries WHERE project_id = :p AND subject = :s", s=f"key/{made['id']}"
    )
    assert trail == [("key.created",)]


def test_the_command_line_makes_a_key_for_the_running_service(service):
    argv = [sys.executable, "-m", "gapwatch", "key", "create", "--project", "from-shell", "--scope", "ingest"]
    done = subprocess.run(
        [*argv, "--data-dir", service.data_dir],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert post(service, Authorization=f"Bearer {done.stdout.strip()}").status_code == 201


def test_an_empty_bucket_refuses_until_it_is_full_again(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    buckets = RateLimits(per_second=10)
    for _ in range(20):
        buckets.check((7, 1))
        buckets.take((7, 1), 1)
    with pytest.raises(TooManyRequests) as refused:
        buckets.check((7, 1))
    assert refused.value.headers["Retry-After"] == "1"
    # Another key of the project, and the one that another project counts as its first.
    buckets.check((7, 2))
    buckets.check((8, 1))
    now[0] = 0.2
    buckets.check((7, 1))


def test_a_large_batch_is_taken_and_waited_for(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    buckets = RateLimits(per_second=10)
    buckets.check((7, 1))
    buckets.take((7, 1), 120)
    with pytest.raises(TooManyRequests) as refused:
        buckets.check((7, 1))
    assert refused.value.headers["Retry-After"] == "10"


def test_a_noisy_key_is_held_back_and_another_is_served_meanwhile(tmp_path):
    service = start_service(reachable(tmp_path) / "data", GAPWATCH_INGEST_RATE="1000")
    database = Database(service.database_url)
    noisy, quiet = make_project(service, database), make_project(service, database)
    batch = json.dumps([episode() for _ in range(1000)])
    stopping = threading.Event()
    statuses: list[int] = []

    def flood():
        with noisy.client() as client:
            client.headers["Content-Type"] = "application/json"
            while not stopping.is_set():
                statuses.append(client.post("/episodes/batch", content=batch).status_code)
                time.sleep(0.005)

    threads = [threading.Thread(target=flood) for _ in range(4)]
    try:
        with quiet.client() as client:
            client.post("/episodes", json=episode())
            for thread in threads:
                thread.start()
            for _ in range(60):
                assert client.post("/episodes", json=episode()).status_code == 201
                time.sleep(0.02)
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
        database.close()
        service.stop()
    assert statuses.count(429) > statuses.count(200)
