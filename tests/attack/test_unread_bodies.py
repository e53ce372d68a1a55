"""Nobody without a key or a session fills the memory, and nobody keeps a connection by sending slowly."""

import contextlib
import select
import socket
import time
from urllib.parse import urlsplit

import httpx
import psutil
import pytest
from attack.serving import serving
from people import Browser, somebody

from gapwatch.app import make_app
from gapwatch.doors import bounded_body
from gapwatch.settings import Settings
from parts import Project, Service

MIB = 1024 * 1024
SENT = 256 * MIB
CHUNK = b"10000\r\n" + b" " * 65536 + b"\r\n"


def memory_of_web(service: Service) -> int:
    return sum(psutil.Process(pid).memory_info().rss for pid in service.children(" web"))


def head(path: str, *headers: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode()


def send_until_answered(project: Project, start: bytes, most: int = SENT) -> tuple[int, int]:
    """Send chunk after chunk until something comes back: the status, and how much was sent."""
    address = urlsplit(project.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(start)
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < most and not select.select([connection], [], [], 0)[0]:
                connection.sendall(CHUNK)
                sent += 65536
        return int(connection.recv(12).split()[1]), sent


JSON = "Content-Type: application/json"
FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("method", "path", "kind", "status"),
    [
        ("POST", "/api/v1/keys", JSON, 401),
        ("PUT", "/api/v1/episodes/x", JSON, 401),
        ("POST", "/api/v1/rules/preview", JSON, 401),
        ("POST", "/api/v1/nowhere", JSON, 401),
        ("POST", "/sign-in", FORM, 413),
        ("POST", "/settings/keys", FORM, 401),
    ],
)
@pytest.mark.parametrize("length", ["declared", "chunked"])
def test_a_huge_body_without_a_key_is_refused_unread(attacked, attacker, method, path, kind, status, length):
    before = memory_of_web(attacked)
    how = f"Content-Length: {SENT}" if length == "declared" else "Transfer-Encoding: chunked"
    answered, sent = send_until_answered(attacker, head(path, kind, how, method=method))
    # A declared length is refused whoever declares it.
    assert answered == (413 if length == "declared" and kind == FORM else status)
    # What the kernel's buffers hold was sent but not read.
    assert sent < 16 * MIB
    assert memory_of_web(attacked) - before < 32 * MIB


def test_a_huge_body_with_a_key_is_refused_at_the_limit(attacked, attacker):
    before = memory_of_web(attacked)
    key = f"Authorization: Bearer {attacker.keys['admin']}"
    for how in (f"Content-Length: {SENT}", "Transfer-Encoding: chunked"):
        answered, sent = send_until_answered(attacker, head("/api/v1/keys", JSON, key, how))
        assert answered == 413
        assert sent < 16 * MIB
    assert memory_of_web(attacked) - before < 32 * MIB


def test_bodies_within_the_limits_are_still_read(attacked, attacker):
    with attacker.client("admin") as client:
        body = {"name": "ci", "scope": "read"}
        assert client.post("/keys", json=body).status_code == 201
        # The framework's own complaint, not the door's.
        assert client.post("/keys", json={"name": "x" * 900_000}).status_code == 422
    with Browser(attacked, somebody(attacker, "admin")) as browser:
        assert browser.submit("/projects", attacker.slug, name="x" * 60_000).status_code < 500


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/sign-in", [FORM]), ("/api/v1/keys", [JSON, "key"]), ("/api/v1/episodes/x", [JSON, "key"])],
)
def test_a_dripped_body_is_cut_by_a_deadline(attacked, attacker, monkeypatch, path, headers):
    monkeypatch.setattr(bounded_body, "BODY_WITHIN_S", 0.5)
    settings = Settings(database_url=attacked.database_url, redis_url=attacked.running["redis_url"],
                        data_dir=attacked.data_dir)  # fmt: skip
    key = f"Authorization: Bearer {attacker.keys['admin']}"
    given = [key if header == "key" else header for header in headers]
    with (
        serving(make_app(settings), "on") as (port, _),
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
    ):
        connection.sendall(
            head(path, *given, "Content-Length: 1000", method="PUT" if path.endswith("x") else "POST")
        )
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and not select.select([connection], [], [], 0.1)[0]:
            connection.sendall(b"a")
        answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 408"), answer[:80]
        # It may finish sending for a moment, and is then closed.
        with contextlib.suppress(ConnectionError):
            while connection.recv(65536):
                pass


def test_a_refusal_at_the_door_reads_like_any_other(attacked, attacker):
    big = "x" * 100_000
    page = httpx.post(f"{attacked.url}/sign-in", data={"email": big}, headers={"Accept": "text/html"})
    assert page.status_code == 413
    assert "<html" in page.text and "64 KiB" in page.text
    refused = httpx.post(f"{attacked.url}/api/v1/keys", json={"name": "x"})
    assert refused.status_code == 401
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.headers["www-authenticate"] == "Bearer"
    assert refused.headers["x-request-id"] in refused.json()["instance"]
