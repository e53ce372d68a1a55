"""SQL of projects, people and keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from gapwatch.store.core.audit import audit, changes
from gapwatch.store.tables.access import ApiKeyTable, BrowserSessionTable, MemberTable, ProjectTable, UserTable

# What pages hand from one function of the store to the next without knowing SQL.
Transaction = Connection

# A browser that is not seen for so long, or that signed in so long ago, has to sign in again.
SESSION_IDLE, SESSION_ABSOLUTE = "14 days", "90 days"
SEEN_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class SignedIn:
    """A browser that signed in, and what it may see."""

    user_id: int
    email: str
    csrf_token: str


@dataclass(frozen=True)
class Membership:
    project_id: int
    slug: str
    name: str
    role: str


def ensure_project(connection: Connection, slug: str) -> int:
    connection.execute(upsert(ProjectTable).values(slug=slug, name=slug).on_conflict_do_nothing())
    return int(connection.execute(select(ProjectTable.id).where(ProjectTable.slug == slug)).scalar_one())


def project_id(connection: Connection, slug: str) -> int | None:
    return connection.execute(select(ProjectTable.id).where(ProjectTable.slug == slug)).scalar()


def put_user(connection: Connection, email: str, password_hash: str) -> int:
    """Make a user, or give an existing one a new password."""
    statement = upsert(UserTable).values(email=email.lower(), password_hash=password_hash)
    statement = statement.on_conflict_do_update(
        index_elements=["email"], set_={"password_hash": statement.excluded.password_hash}
    )
    return int(connection.execute(statement.returning(UserTable.id)).scalar_one())


def put_member(connection: Connection, project_id: int, user_id: int, role: str) -> None:
    statement = upsert(MemberTable).values(project_id=project_id, user_id=user_id, role=role)
    connection.execute(
        statement.on_conflict_do_update(index_elements=["project_id", "user_id"], set_={"role": role})
    )


class UserPassword(NamedTuple):
    user_id: int
    password_hash: str


def find_user(connection: Connection, email: str) -> UserPassword | None:
    row = connection.execute(
        select(UserTable.id, UserTable.password_hash).where(
            UserTable.email == email.lower(), UserTable.disabled_at.is_(None)
        )
    ).first()
    return None if row is None else UserPassword(row.id, row.password_hash)


def has_users(connection: Connection) -> bool:
    return connection.execute(select(UserTable.id).limit(1)).first() is not None


def open_session(connection: Connection, user_id: int, token_hash: bytes, csrf_token: str) -> None:
    connection.execute(
        insert(BrowserSessionTable).values(token_hash=token_hash, user_id=user_id, csrf_token=csrf_token)
    )


def find_session(connection: Connection, token_hash: bytes) -> tuple[SignedIn, list[Membership]] | None:
    """Who is behind a token and the projects they are in, unless it is idle or old; seeing it keeps it alive."""
    rows = connection.execute(
        select(
            UserTable.id,
            UserTable.email,
            BrowserSessionTable.csrf_token,
            BrowserSessionTable.seen_at,
            ProjectTable.id.label("project_id"),
            ProjectTable.slug,
            ProjectTable.name,
            MemberTable.role,
        )
        .join(UserTable, UserTable.id == BrowserSessionTable.user_id)
        .outerjoin(MemberTable, MemberTable.user_id == UserTable.id)
        .outerjoin(ProjectTable, ProjectTable.id == MemberTable.project_id)
        .where(
            BrowserSessionTable.token_hash == token_hash,
            UserTable.disabled_at.is_(None),
            BrowserSessionTable.seen_at > func.now() - text(f"interval '{SESSION_IDLE}'"),
            BrowserSessionTable.created_at > func.now() - text(f"interval '{SESSION_ABSOLUTE}'"),
        )
        .order_by(ProjectTable.slug)
    ).all()
    if not rows:
        return None
    first = rows[0]
    # Written at most once a minute: a page view is otherwise free of writes.
    if datetime.now(UTC) - first.seen_at > SEEN_EVERY:
        connection.execute(
            update(BrowserSessionTable)
            .where(BrowserSessionTable.token_hash == token_hash)
            .values(seen_at=func.now())
        )
    memberships = [
        Membership(row.project_id, row.slug, row.name, row.role) for row in rows if row.project_id is not None
    ]
    return SignedIn(first.id, first.email, first.csrf_token), memberships


def close_session(connection: Connection, token_hash: bytes) -> None:
    connection.execute(delete(BrowserSessionTable).where(BrowserSessionTable.token_hash == token_hash))


def close_sessions_of(connection: Connection, user_id: int) -> None:
    """A new password ends what was begun with the old one."""
    connection.execute(delete(BrowserSessionTable).where(BrowserSessionTable.user_id == user_id))


def drop_old_sessions(connection: Connection) -> None:
    connection.execute(
        delete(BrowserSessionTable).where(
            BrowserSessionTable.created_at < func.now() - text(f"interval '{SESSION_ABSOLUTE}'")
        )
    )


def memberships(connection: Connection, user_id: int) -> list[Membership]:
    rows = connection.execute(
        select(ProjectTable.id.label("project_id"), ProjectTable.slug, ProjectTable.name, MemberTable.role)
        .join(MemberTable, MemberTable.project_id == ProjectTable.id)
        .where(MemberTable.user_id == user_id)
        .order_by(ProjectTable.slug)
    ).mappings()
    return [Membership(**row) for row in rows]


def add_key(
    connection: Connection,
    project_id: int,
    *,
    name: str,
    prefix: str,
    key_hash: bytes,
    scope: str,
    expires_at: datetime | None,
    networks: Sequence[str] = (),
    actor: str,
) -> int:
    """Store a key, and in the audit trail all of it but its secret; return its number."""
    statement = insert(ApiKeyTable).values(
        project_id=project_id,
        name=name,
        prefix=prefix,
        key_hash=key_hash,
        scope=scope,
        expires_at=expires_at,
        networks=list(networks),
    )
    key_id = int(connection.execute(statement.returning(ApiKeyTable.id)).scalar_one())
    made = {
        "name": name,
        "prefix": prefix,
        "scope": scope,
        "expires_at": None if expires_at is None else expires_at.isoformat(),
        "networks": list(networks),
    }
    audit(connection, project_id, actor, "key.created", f"key/{key_id}", changes=changes({}, made))
    return key_id


def keys(connection: Connection, project_id: int) -> list[dict[str, Any]]:
    rows = connection.execute(
        select(
            ApiKeyTable.id,
            ApiKeyTable.name,
            ApiKeyTable.prefix,
            ApiKeyTable.scope,
            ApiKeyTable.created_at,
            ApiKeyTable.expires_at,
            ApiKeyTable.revoked_at,
            ApiKeyTable.last_used_at,
            ApiKeyTable.networks,
        )
        .where(ApiKeyTable.project_id == project_id)
        .order_by(ApiKeyTable.id)
    ).mappings()
    return [
        {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
        for row in rows
    ]


def revoke_key(connection: Connection, project_id: int, key_id: int, actor: str) -> bool:
    """Whether there is such a key. Revoking twice keeps the first time."""
    its = (ApiKeyTable.project_id == project_id, ApiKeyTable.id == key_id)
    row = connection.execute(
        select(ApiKeyTable.name, ApiKeyTable.revoked_at).where(*its).with_for_update()
    ).first()
    if row is None:
        return False
    if row.revoked_at is None:
        connection.execute(update(ApiKeyTable).where(*its).values(revoked_at=func.now()))
        revoked = changes({"is_revoked": False}, {"is_revoked": True})
        audit(connection, project_id, actor, "key.revoked", f"key/{key_id}", name=row.name, changes=revoked)
    return True


def audit_password(connection: Connection, user_id: int, actor: str) -> None:
    """Say in every project of a person that their password changed; never what it was or is."""
    for project in memberships(connection, user_id):
        audit(connection, project.project_id, actor, "password.changed", f"user/{user_id}")


class ProjectSlug(NamedTuple):
    id: int
    slug: str


def projects(connection: Connection) -> list[ProjectSlug]:
    rows = connection.execute(select(ProjectTable.id, ProjectTable.slug).order_by(ProjectTable.id))
    return [ProjectSlug(row.id, row.slug) for row in rows]
