"""Making people and keys, for the command line and the demo; and the link that makes the first person."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from gapwatch.access.keys import new_key
from gapwatch.access.passwords import hash_password
from gapwatch.access.tokens import setup_token
from gapwatch.settings import Settings
from gapwatch.store.core.audit import audit
from gapwatch.store.core.database import Database
from gapwatch.store.people import access

ACTOR = "command line"


def put_person(database: Database, email: str, password: str, project: str, role: str) -> None:
    """A user with a role in a project; one who exists gets the new password. WeakPassword for a bad one."""
    hashed = hash_password(password, email)
    with database.transaction() as connection:
        project_id = access.ensure_project(connection, project)
        user_id = access.put_user(connection, email, hashed)
        access.close_sessions_of(connection, user_id)
        access.put_member(connection, project_id, user_id, role)
        audit(connection, project_id, ACTOR, "member.put", f"user/{user_id}", email=email, role=role)
        access.audit_password(connection, user_id, ACTOR)


def make_key(
    database: Database,
    server_secret: bytes,
    *,
    project: str,
    scope: str,
    name: str,
    expires_at: datetime | None = None,
    networks: Sequence[str] = (),
) -> str:
    """An API key, returned this once. The project is made if it is new."""
    fresh = new_key(server_secret)
    with database.transaction() as connection:
        project_id = access.ensure_project(connection, project)
        access.add_key(
            connection,
            project_id,
            name=name,
            prefix=fresh.prefix,
            key_hash=fresh.key_hash,
            scope=scope,
            expires_at=expires_at,
            networks=networks,
            actor=ACTOR,
        )
    return fresh.secret


def setup_link(database: Database, settings: Settings) -> str | None:
    """Where the first admin is made, for a day; None once there is a user."""
    with database.transaction() as connection:
        if access.has_users(connection):
            return None
    return f"{settings.public_url}/set-up?token={setup_token(settings.server_secret(), int(time.time()))}"
