"""`/settings/keys`: API keys, each shown once when it is made."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import RedirectResponse, Response

from gapwatch.access.keys import new_key, read_networks
from gapwatch.errors import NotFound
from gapwatch.pages.frame import View, Visit
from gapwatch.store.people import access

SCOPES = {
    "ingest": "sends episodes: for robots and simulators",
    "read": "reads everything: for notebooks and dashboards",
    "admin": "does everything, keys and channels too: for scripts that set up",
}
LONGEST_LIFE_DAYS = 3650


@dataclass(frozen=True)
class KeysPage:
    keys: list[dict[str, Any]]
    # The secret of the key that was just made, this once.
    made: str | None
    made_scope: str | None
    problem: str
    scopes: dict[str, str]
    public_url: str


class KeyHandlers:
    def __init__(self, server_secret: bytes, public_url: str) -> None:
        self._server_secret = server_secret
        self._public_url = public_url

    def show(self, visit: Visit) -> View:
        return self._view(visit)

    def make(self, visit: Visit) -> View:
        name, scope = visit.form.line("name", 128), visit.form.one("scope")
        days = visit.form.number("days")
        if not name or scope not in SCOPES or days > LONGEST_LIFE_DAYS:
            return self._view(visit, problem="Give the key a name, a scope and a life of at most ten years.")
        try:
            networks = read_networks(re.split(r"[\s,]+", visit.form.one("networks")[:4000]))
        except ValueError as error:
            return self._view(visit, problem=f"Networks: {error}.")
        fresh = new_key(self._server_secret)
        access.add_key(
            visit.transaction,
            visit.project_id,
            name=name,
            prefix=fresh.prefix,
            key_hash=fresh.key_hash,
            scope=scope,
            expires_at=datetime.now(UTC) + timedelta(days=days) if days else None,
            networks=networks,
            actor=visit.actor,
        )
        return self._view(visit, made=fresh.secret, scope=scope)

    def revoke(self, visit: Visit) -> Response:
        key_id = visit.form.number("key")
        if not access.revoke_key(visit.transaction, visit.project_id, key_id, visit.actor):
            raise NotFound("There is no key with this id.")
        return RedirectResponse(visit.frame.links.to("settings", "keys"), 303)

    def _view(self, visit: Visit, made: str | None = None, scope: str | None = None, problem: str = "") -> View:
        keys = access.keys(visit.transaction, visit.project_id)
        # Working keys first, newest first.
        keys.sort(key=lambda key: (key["revoked_at"] is not None, -key["id"]))
        page = KeysPage(keys, made, scope, problem, SCOPES, self._public_url)
        return View("settings_keys.html", page, 422 if problem else 200)
