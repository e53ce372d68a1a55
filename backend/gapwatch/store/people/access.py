"""SQL of projects, people, keys and the audit trail."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from gapwatch.store.tables.access import ApiKey, AuditEntry, BrowserSession, Member, Project, User

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
    connection.execute(upsert(Project).values(slug=slug, name=slug).on_conflict_do_nothing())
    return int(connection.execute(select(Project.id).where(Project.slug == slug)).scalar_one())


def project_id(connection: Connection, slug: str) -> int | None:
    return connection.execute(select(Project.id).where(Project.slug == slug)).scalar()


def put_user(connection: Connection, email: str, password_hash: str) -> int:
    """Make a user, or give an existing one a new password."""
    statement = upsert(User).values(email=email.lower(), password_hash=password_hash)
    statement = statement.on_conflict_do_update(
        index_elements=["email"], set_={"password_hash": statement.excluded.password_hash}
    )
    return int(connection.execute(statement.returning(User.id)).scalar_one())


def put_member(connection: Connection, project_id: int, user_id: int, role: str) -> None:
    statement = upsert(Member).values(project_id=project_id, user_id=user_id, role=role)
    connection.execute(
        statement.on_conflict_do_update(index_elements=["project_id", "user_id"], set_={"role": role})
    )


def find_user(connection: Connection, email: str) -> tuple[int, str] | None:
    row = connection.execute(
        select(User.id, User.password_hash).where(User.email == email.lower(), User.disabled_at.is_(None))
    ).first()
    return None if row is None else (row.id, row.password_hash)


def has_users(connection: Connection) -> bool:
    return connection.execute(select(User.id).limit(1)).first() is not None


def open_session(connection: Connection, user_id: int, token_hash: bytes, csrf_token: str) -> None:
    connection.execute(
        insert(BrowserSession).values(token_hash=token_hash, user_id=user_id, csrf_token=csrf_token)
    )


def find_session(connection: Connection, token_hash: bytes) -> tuple[SignedIn, list[Membership]] | None:
    """Who is behind a token and the projects they are in, unless it is idle or old; seeing it keeps it alive."""
    rows = connection.execute(
        select(
            User.id,
            User.email,
            BrowserSession.csrf_token,
            BrowserSession.seen_at,
            Project.id.label("project_id"),
            Project.slug,
            Project.name,
            Member.role,
        )
        .join(User, User.id == BrowserSession.user_id)
        .outerjoin(Member, Member.user_id == User.id)
        .outerjoin(Project, Project.id == Member.project_id)
        .where(
            BrowserSession.token_hash == token_hash,
            User.disabled_at.is_(None),
            BrowserSession.seen_at > func.now() - text(f"interval '{SESSION_IDLE}'"),
            BrowserSession.created_at > func.now() - text(f"interval '{SESSION_ABSOLUTE}'"),
        )
        .order_by(Project.slug)
    ).all()
    if not rows:
        return None
    first = rows[0]
    # Written at most once a minute: a page view is otherwise free of writes.
    if datetime.now(UTC) - first.seen_at > SEEN_EVERY:
        connection.execute(
            update(BrowserSession).where(BrowserSession.token_hash == token_hash).values(seen_at=func.now())
        )
    mine = [Membership(row.project_id, row.slug, row.name, row.role) for row in rows if row.project_id is not None]
    return SignedIn(first.id, first.email, first.csrf_token), mine


def close_session(connection: Connection, token_hash: bytes) -> None:
    connection.execute(delete(BrowserSession).where(BrowserSession.token_hash == token_hash))


def close_sessions_of(connection: Connection, user_id: int) -> None:
    """A new password ends what was begun with the old one."""
    connection.execute(delete(BrowserSession).where(BrowserSession.user_id == user_id))


def drop_old_sessions(connection: Connection) -> None:
    connection.execute(
        delete(BrowserSession).where(
            BrowserSession.created_at < func.now() - text(f"interval '{SESSION_ABSOLUTE}'")
        )
    )


def memberships(connection: Connection, user_id: int) -> list[Membership]:
    rows = connection.execute(
        select(Project.id, Project.slug, Project.name, Member.role)
        .join(Member, Member.project_id == Project.id)
        .where(Member.user_id == user_id)
        .order_by(Project.slug)
    )
    return [Membership(*row) for row in rows]


def add_key(
    connection: Connection,
    project_id: int,
    *,
    name: str,
    prefix: str,
    key_hash: bytes,
    scope: str,
    expires_at: datetime | None,
) -> int:
    statement = insert(ApiKey).values(
        project_id=project_id,
        name=name,
        prefix=prefix,
        key_hash=key_hash,
        scope=scope,
        expires_at=expires_at,
    )
    return int(connection.execute(statement.returning(ApiKey.id)).scalar_one())


def audit(connection: Connection, project_id: int, actor: str, action: str, subject: str, **details: Any) -> None:
    connection.execute(
        insert(AuditEntry).values(
            project_id=project_id, actor=actor, action=action, subject=subject, details=details
        )
    )


def keys(connection: Connection, project_id: int) -> list[dict[str, Any]]:
    rows = connection.execute(
        select(
            ApiKey.id,
            ApiKey.name,
            ApiKey.prefix,
            ApiKey.scope,
            ApiKey.created_at,
            ApiKey.expires_at,
            ApiKey.revoked_at,
            ApiKey.last_used_at,
        )
        .where(ApiKey.project_id == project_id)
        .order_by(ApiKey.id)
    ).mappings()
    return [
        {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
        for row in rows
    ]


def revoke_key(connection: Connection, project_id: int, key_id: int) -> bool:
    """Whether there is such a key. Revoking twice keeps the first time."""
    done = connection.execute(
        update(ApiKey)
        .where(ApiKey.project_id == project_id, ApiKey.id == key_id)
        .values(revoked_at=func.coalesce(ApiKey.revoked_at, func.now()))
    )
    return bool(done.rowcount)


def projects(connection: Connection) -> list[tuple[int, str]]:
    """Every project by number and slug."""
    found = connection.execute(select(Project.id, Project.slug).order_by(Project.id))
    return [(row.id, row.slug) for row in found]
