"""Projects, people, keys, and the trail of who changed what."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ARRAY,
    DDL,
    BigInteger,
    CheckConstraint,
    FetchedValue,
    ForeignKey,
    Identity,
    Index,
    LargeBinary,
    SmallInteger,
    Text,
    event,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from gapwatch.store.tables.schema import (
    EMPTY_JSON,
    Base,
    CreatedAt,
    ProjectId,
    RowId,
    Time,
    Word,
    one_of,
)

ROLES = ("viewer", "engineer", "admin")
SCOPES = ("ingest", "read", "admin")


class ProjectTable(Base):
    __tablename__ = "projects"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    slug: Mapped[Word] = mapped_column(unique=True)
    name: Mapped[str]
    # Taxonomy overrides, metric directions, whether aborted episodes count: everything a project decides.
    options: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=EMPTY_JSON)
    created_at: Mapped[CreatedAt]


class ServerSecretTable(Base):
    """Which server secret this database was set up with: a salted fingerprint, which gives nothing of it away."""

    __tablename__ = "server_secret"
    __table_args__ = (CheckConstraint("id = 1", name="only_one"),)

    id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    salt: Mapped[bytes] = mapped_column(LargeBinary)
    fingerprint: Mapped[bytes] = mapped_column(LargeBinary)
    set_at: Mapped[CreatedAt]


class ProjectChangeTable(Base):
    """How often the numbers of a project were brought up to date: an open page asks for this instead of them."""

    __tablename__ = "project_changes"

    project_id: Mapped[ProjectId]
    folds: Mapped[int] = mapped_column(BigInteger)


class UserTable(Base):
    __tablename__ = "users"

    id: Mapped[int] = mapped_column(server_default=FetchedValue(), primary_key=True)
    email: Mapped[Word] = mapped_column(unique=True)
    password_hash: Mapped[str]
    created_at: Mapped[CreatedAt]
    disabled_at: Mapped[Time | None]


class MemberTable(Base):
    __tablename__ = "members"
    __table_args__ = (one_of("role", *ROLES), Index(None, "user_id"))

    project_id: Mapped[ProjectId]
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True)
    role: Mapped[Word]


class BrowserSessionTable(Base):
    """A signed-in browser. Only a hash of the token is kept."""

    __tablename__ = "browser_sessions"
    __table_args__ = (Index(None, "user_id"),)

    token_hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    csrf_token: Mapped[str]
    created_at: Mapped[CreatedAt]
    seen_at: Mapped[CreatedAt]


class InvitationTable(Base):
    """A link that makes somebody a member, once and for a day. Only a hash of its token is kept."""

    __tablename__ = "invitations"
    __table_args__ = (one_of("role", *ROLES), Index(None, "token_hash", unique=True))

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    token_hash: Mapped[bytes] = mapped_column(LargeBinary)
    email: Mapped[Word]
    role: Mapped[Word]
    invited_by: Mapped[Word]
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[Time]
    used_at: Mapped[Time | None]


class SignInAttemptTable(Base):
    """Failed sign-ins of one account or one address since a moment; the subject is a hash of either."""

    __tablename__ = "sign_in_attempts"
    __table_args__ = (Index(None, "since"),)

    subject: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    failures: Mapped[int]
    since: Mapped[CreatedAt]


class ApiKeyTable(Base):
    """`gw_` and 32 random bytes; stored as the first letters and a keyed hash."""

    __tablename__ = "api_keys"
    __table_args__ = (one_of("scope", *SCOPES), Index(None, "prefix", unique=True))

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    name: Mapped[str]
    prefix: Mapped[Word]
    key_hash: Mapped[bytes] = mapped_column(LargeBinary)
    scope: Mapped[Word]
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[Time | None]
    revoked_at: Mapped[Time | None]
    last_used_at: Mapped[Time | None]
    # Addresses and networks it may be used from; none: anywhere.
    networks: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))


class AuditEntryTable(Base):
    """Append-only: a trigger refuses UPDATE and DELETE."""

    __tablename__ = "audit_entries"
    __table_args__ = (Index(None, "project_id", "subject", "at"),)

    project_id: Mapped[ProjectId]
    id: Mapped[RowId]
    at: Mapped[CreatedAt]
    actor: Mapped[Word]
    action: Mapped[Word]
    subject: Mapped[Word]
    details: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=EMPTY_JSON)


event.listen(
    AuditEntryTable.__table__,
    "after_create",
    DDL(  # type: ignore[no-untyped-call]
        """
        CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'audit entries are never changed or deleted'; END $$;
        CREATE TRIGGER audit_entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
        """
    ),
)
