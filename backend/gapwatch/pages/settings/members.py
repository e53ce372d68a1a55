"""`/settings/members`: who is in the project, with which role, and links that invite others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from starlette.responses import RedirectResponse, Response

from gapwatch.access.roles import ROLES, WHAT_ROLES_DO
from gapwatch.access.tokens import hash_token, new_token
from gapwatch.errors import NotFound
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.people.onboarding import is_address
from gapwatch.store.core.audit import audit, changes
from gapwatch.store.people import members


@dataclass(frozen=True)
class MemberEntry:
    user_id: int
    email: str
    role: str


@dataclass(frozen=True)
class InvitationEntry:
    id: int
    email: str
    role: str
    invited_by: str
    expires_at: datetime


@dataclass(frozen=True)
class MembersPage:
    members: list[MemberEntry]
    invitations: list[InvitationEntry]
    roles: dict[str, str]
    # The link of the invitation that was just made, this once.
    link: str | None
    invited: str | None
    problem: str


class MemberHandlers:
    def __init__(self, public_url: str) -> None:
        self._public_url = public_url

    def show(self, visit: Visit) -> View:
        return self._view(visit)

    def invite(self, visit: Visit) -> View:
        email, role = visit.form.line("email").lower(), visit.form.one("role")
        if not is_address(email) or role not in ROLES:
            return self._view(visit, problem="Give an e-mail address and a role.")
        token = new_token()
        number = members.invite(
            visit.transaction,
            visit.project_id,
            email=email,
            role=role,
            invited_by=visit.actor,
            token_hash=hash_token(token),
        )
        audit(
            visit.transaction,
            visit.project_id,
            visit.actor,
            "member.invited",
            f"invitation/{number}",
            email=email,
            role=role,
        )
        # In the query: paths are logged, queries are not.
        return self._view(visit, link=f"{self._public_url}/invitation?token={token}", invited=email)

    def change(self, visit: Visit) -> View | Response:
        """Another role, or "none", which removes the member."""
        user_id, role = visit.form.number("user"), visit.form.one("role")
        wanted = None if role == "none" else role
        if wanted is not None and wanted not in ROLES:
            return self._view(visit, problem="There is no such role.")
        before = members.role_of(visit.transaction, visit.project_id, user_id)
        outcome = members.change_role(visit.transaction, visit.project_id, user_id, wanted)
        if outcome == "last admin":
            return self._view(visit, problem="The project needs an admin: make somebody else one first.")
        if outcome == "absent":
            raise NotFound("There is no such member.")
        changed = changes({"role": before}, {"role": wanted})
        audit(
            visit.transaction, visit.project_id, visit.actor, "member.changed", f"user/{user_id}", changes=changed
        )
        return RedirectResponse(visit.frame.links.to("settings", "members"), 303)

    def withdraw(self, visit: Visit) -> Response:
        number = visit.form.number("invitation")
        if not members.withdraw_invitation(visit.transaction, visit.project_id, number):
            raise NotFound("There is no such invitation.")
        audit(visit.transaction, visit.project_id, visit.actor, "invitation.withdrawn", f"invitation/{number}")
        return RedirectResponse(visit.frame.links.to("settings", "members"), 303)

    def _view(self, visit: Visit, link: str | None = None, invited: str | None = None, problem: str = "") -> View:
        page = MembersPage(
            members=[
                MemberEntry(member.user_id, member.email, member.role)
                for member in members.members(visit.transaction, visit.project_id)
            ],
            invitations=[
                InvitationEntry(
                    invitation.id, invitation.email, invitation.role, invitation.invited_by, invitation.expires_at
                )
                for invitation in members.open_invitations(visit.transaction, visit.project_id)
            ],
            roles=WHAT_ROLES_DO,
            link=link,
            invited=invited,
            problem=problem,
        )
        return View("settings_members.html", page, 422 if problem else 200)
