"""`/healthz`: the process is up. `/readyz`: it can serve, and the workers keep up."""

from __future__ import annotations

import hmac
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gapwatch.errors import GapwatchError
from gapwatch.server_secret import is_right, unreadable
from gapwatch.store.alerting import outbox, watch_queue
from gapwatch.store.core import heartbeats
from gapwatch.store.core.database import Connection, Database
from gapwatch.store.core.schema_version import is_current
from gapwatch.store.fold import work

# Workers give a sign of life every two seconds.
WORKER_SILENT_AFTER_S = 20.0
WORK_LATE_AFTER_S = 60.0
# Checks whose outcome is of what tenants did.
OF_TENANTS = {"deliveries", "secret"}
LEAST_FREE_BYTES = 256 * 1024 * 1024


class HealthRoutes:
    def __init__(
        self, database: Database, data_dir: Path, server_secret: bytes, operator_token: str | None
    ) -> None:
        self._database = database
        self._data_dir = data_dir
        self._secret = server_secret
        self._operator_token = operator_token

    def routes(self) -> list[Route]:
        return [Route("/healthz", self.healthz), Route("/readyz", self.readyz)]

    async def healthz(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    def readyz(self, request: Request) -> Response:
        """Anybody may ask whether the service works. How much waits and what was given up is of its tenants, and
        told to the operator alone; one tenant's dead channel must not make a balancer take it from the others.
        """
        checks = self._checks()
        if not is_operator(request, self._operator_token) and not self._is_from_this_machine(request):
            checks = {name: {"ok": check["ok"]} for name, check in checks.items() if name not in OF_TENANTS}
        ready = all(check["ok"] for check in checks.values())
        return JSONResponse({"ready": ready, "checks": checks}, 200 if ready else 503)

    def _is_from_this_machine(self, request: Request) -> bool:
        """Without a token of the operator: a probe or a person on the machine itself, not through a proxy."""
        client = request.client.host if request.client else ""
        is_passed_on = any(name in request.headers for name in ("forwarded", "x-forwarded-for", "via"))
        return self._operator_token is None and client in {"127.0.0.1", "::1"} and not is_passed_on

    def _checks(self) -> dict[str, dict[str, Any]]:
        free = shutil.disk_usage(self._data_dir if self._data_dir.exists() else "/").free
        disk = {"ok": free >= LEAST_FREE_BYTES, "free_bytes": free}
        try:
            with self._database.transaction() as connection:
                backlog = work.backlog(connection)
                silent_s = heartbeats.seconds_since(connection, "worker")
                unwatched_s, unsent = watch_queue.oldest_due_s(connection), outbox.outbox_backlog(connection)
                undelivered = outbox.undelivered(connection)
                secret = secret_check(connection, self._secret)
            migrated = is_current(self._database)
        except GapwatchError as error:
            return {"database": {"ok": False, "why": error.detail}, "disk": disk}
        return {
            "database": {"ok": True},
            "migrations": {"ok": migrated},
            "disk": disk,
            "worker": {
                "ok": silent_s is not None and silent_s < WORKER_SILENT_AFTER_S,
                "silent_s": silent_s,
            },
            "work": {"ok": backlog.oldest_s < WORK_LATE_AFTER_S, **asdict(backlog)},
            "watch": {"ok": unwatched_s < WORK_LATE_AFTER_S, "oldest_s": unwatched_s},
            "outbox": {"ok": unsent.oldest_s < WORK_LATE_AFTER_S, **asdict(unsent)},
            "deliveries": deliveries_check(undelivered),
            "secret": secret,
        }


def is_operator(request: Request, token: str | None) -> bool:
    """Whether a request carries the token of whoever runs the service."""
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    return token is not None and hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def deliveries_check(undelivered: int) -> dict[str, Any]:
    """Nobody is told of what could not be told but here."""
    if not undelivered:
        return {"ok": True, "undelivered": 0}
    why = (
        "deliveries were given up in the last day by channels that have sent nothing since; "
        "/api/v1/deliveries?state=dead has them, and a test that arrives ends this"
    )
    return {"ok": False, "undelivered": undelivered, "why": why}


def secret_check(connection: Connection, secret: bytes) -> dict[str, Any]:
    """Whether this process has the secret of its database, and every channel in use can be read with it."""
    if not is_right(connection, secret):
        return {"ok": False, "why": "the database was set up with another server secret; see GAPWATCH_SECRET_KEY"}
    unread = unreadable(connection, secret)
    if unread:
        why = "channels have secrets of another server secret; what is due to them waits until they are set again"
        return {"ok": False, "unreadable_channels": unread, "why": why}
    return {"ok": True, "unreadable_channels": 0}
