"""SQL of members, invitations and failed sign-ins."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Select, delete, func, insert, select, text, update

from gapwatch.store.tables.access import InvitationTable, MemberTable, ProjectTable, UserTable

INVITATION_LASTS = "24 hours"
_COUNT = text("""
INSERT INTO sign_in_attempts AS a (subject, failures) VALUES (:subject, 1)
ON CONFLICT (subject) DO UPDATE SET
    failures = CASE WHEN a.since < now() - interval '15 minutes' THEN 1 ELSE a.failures + 1 END,
    since = CASE WHEN a.since < now() - interval '15 minutes' THEN now() ELSE a.since END
RETURNING failures
""")


@dataclass(frozen=True)
class MemberRow:
    user_id: int
    email: str
    role: str


@dataclass(frozen=True)
class InvitationRow:
    project_id: int
    id: int
    project: str
    email: str
    role: str
    invited_by: str
    expires_at: datetime


def members(connection: Connection, project_id: int) -> list[MemberRow]:
    rows = connection.execute(
        select(UserTable.id.label("user_id"), UserTable.email, MemberTable.role)
        .join(MemberTable, MemberTable.user_id == UserTable.id)
        .where(MemberTable.project_id == project_id, UserTable.disabled_at.is_(None))
        .order_by(UserTable.email)
    ).mappings()
    return [MemberRow(**row) for row in rows]


def role_of(connection: Connection, project_id: int, user_id: int) -> str | None:
    statement = select(MemberTable.role).where(
        MemberTable.project_id == project_id, MemberTable.user_id == user_id
    )
    return connection.execute(statement).scalar()


def change_role(connection: Connection, project_id: int, user_id: int, role: str | None) -> str:
    """Give a member another role, or none: "done", "absent", or "last admin" when nobody would be left.

    The admins are locked first, so that two of them cannot demote each other at the same moment.
    """
    admins = connection.scalars(
        select(MemberTable.user_id)
        .where(MemberTable.project_id == project_id, MemberTable.role == "admin")
        .order_by(MemberTable.user_id)
        .with_for_update()
    ).all()
    if role != "admin" and list(admins) == [user_id]:
        return "last admin"
    membership = (MemberTable.project_id == project_id, MemberTable.user_id == user_id)
    changed = connection.execute(
        delete(MemberTable).where(*membership)
        if role is None
        else update(MemberTable).where(*membership).values(role=role)
    )
    return "done" if changed.rowcount else "absent"


def invite(
    connection: Connection, project_id: int, *, email: str, role: str, invited_by: str, token_hash: bytes
) -> int:
    """A new link for an address; an older one for it stops working."""
    connection.execute(
        delete(InvitationTable).where(
            InvitationTable.project_id == project_id,
            InvitationTable.email == email.lower(),
            InvitationTable.used_at.is_(None),
        )
    )
    statement = insert(InvitationTable).values(
        project_id=project_id,
        token_hash=token_hash,
        email=email.lower(),
        role=role,
        invited_by=invited_by,
        expires_at=func.now() + text(f"interval '{INVITATION_LASTS}'"),
    )
    return int(connection.execute(statement.returning(InvitationTable.id)).scalar_one())


def open_invitations(connection: Connection, project_id: int) -> list[InvitationRow]:
    rows = connection.execute(
        _invitations().where(InvitationTable.project_id == project_id).order_by(InvitationTable.email)
    ).mappings()
    return [InvitationRow(**row) for row in rows]


def find_invitation(connection: Connection, token_hash: bytes) -> InvitationRow | None:
    """An invitation neither used nor over, locked: a second click at the same moment waits and finds none."""
    statement = _invitations().where(InvitationTable.token_hash == token_hash)
    row = connection.execute(statement.with_for_update(of=InvitationTable)).mappings().first()
    return None if row is None else InvitationRow(**row)


def use_invitation(connection: Connection, invitation: InvitationRow) -> None:
    connection.execute(
        update(InvitationTable)
        .where(InvitationTable.project_id == invitation.project_id, InvitationTable.id == invitation.id)
        .values(used_at=func.now())
    )


def withdraw_invitation(connection: Connection, project_id: int, invitation_id: int) -> bool:
    done = connection.execute(
        delete(InvitationTable).where(
            InvitationTable.project_id == project_id,
            InvitationTable.id == invitation_id,
            InvitationTable.used_at.is_(None),
        )
    )
    return bool(done.rowcount)


def lock_first_user(connection: Connection) -> None:
    """Two people with the set-up link: the second waits, and then there is a user."""
    connection.execute(text("LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE"))


def count_attempt(connection: Connection, subject: bytes) -> int:
    """Count a sign-in before it is checked, so that many at once cannot slip through; how many there are."""
    return int(connection.execute(_COUNT, {"subject": subject}).scalar_one())


def forgive_attempt(connection: Connection, subject: bytes, *, all_of_them: bool) -> None:
    """The sign-in was right: an account starts anew, an address only gets this one back."""
    statement = (
        "DELETE FROM sign_in_attempts WHERE subject = :subject"
        if all_of_them
        else "UPDATE sign_in_attempts SET failures = greatest(0, failures - 1) WHERE subject = :subject"
    )
    connection.execute(text(statement), {"subject": subject})


def drop_what_is_over(connection: Connection) -> None:
    """Counts whose time is over, and invitations a month after their end."""
    connection.execute(text("DELETE FROM sign_in_attempts WHERE since < now() - interval '15 minutes'"))
    connection.execute(text("DELETE FROM invitations WHERE expires_at < now() - interval '30 days'"))


def _invitations() -> Select[int, int, str, str, str, str, datetime]:
    return (
        select(
            InvitationTable.project_id,
            InvitationTable.id,
            ProjectTable.slug.label("project"),
            InvitationTable.email,
            InvitationTable.role,
            InvitationTable.invited_by,
            InvitationTable.expires_at,
        )
        .join(ProjectTable, ProjectTable.id == InvitationTable.project_id)
        .where(InvitationTable.used_at.is_(None), InvitationTable.expires_at > func.now())
    )
