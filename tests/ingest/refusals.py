"""The one shape of every error, and what no answer may repeat."""

from __future__ import annotations

import re
from typing import Any

import httpx

MARKER = "s3cret-7f3a"
MIB = 1024 * 1024
ANSWERED_WITHIN_S = 10
MEMBERS = {"type", "title", "status", "detail", "instance", "errors"}


def assert_refused(
    answer: httpx.Response, status: int, code: str | None = None, secrets: tuple[str, ...] = (MARKER,)
) -> dict[str, Any]:
    """The one shape of every error; the code stands in the type or among the errors."""
    assert answer.status_code == status, answer.text[:2000]
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert set(body) == MEMBERS
    assert body["status"] == status
    assert re.fullmatch(r"/problems/[a-z0-9-]+", body["type"])
    assert body["title"]
    assert body["detail"]
    assert re.fullmatch(r"/requests/[A-Za-z0-9._-]{8,64}", body["instance"])
    assert body["instance"] == f"/requests/{answer.headers.get('x-request-id', body['instance'][10:])}"
    for fault in body["errors"]:
        assert {"pointer", "code", "message"} <= set(fault) <= {"pointer", "code", "message", "index"}
        assert re.fullmatch(r"[a-z0-9-]+", fault["code"])
        assert fault["message"]
    codes = {fault["code"] for fault in body["errors"]}
    assert code is None or code == body["type"].removeprefix("/problems/") or code in codes, body["errors"][:20]
    for secret in secrets:
        assert secret not in answer.text
    return body
