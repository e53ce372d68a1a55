"""Two links that lead in: the set-up link of a new service, and an invitation to a project."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from gapwatch.access.passwords import WeakPassword, hash_password
from gapwatch.access.tokens import hash_token, is_setup_token
from gapwatch.errors import NotFound
from gapwatch.pages.forms import Form
from gapwatch.pages.links import Links
from gapwatch.pages.people.sign_in import SignInHandlers
from gapwatch.pages.people.sign_in_gate import SignInGate
from gapwatch.store.core.audit import audit
from gapwatch.store.people import access, members

FIRST_PROJECT = "main"
_ADDRESS = re.compile(r"[^@\s]{1,128}@[^@\s]{1,127}")
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")

REFUSED_CHOICE = (
    "This password does not do. If you have an account here, give its password; if not, choose one of 8 to 256 "
    "characters that is not among the first that are guessed: a few unrelated words."
)
OVER = (
    "This link was used, is over, or was never made. Ask whoever sent it for a new one; "
    "for a new service, its log has the set-up link, and every start makes a fresh one."
)


@dataclass(frozen=True)
class SetUpPage:
    token: str
    problem: str
    email: str
    project: str


@dataclass(frozen=True)
class InvitationPage:
    token: str
    problem: str
    email: str
    project: str
    role: str
    invited_by: str


def is_address(text: str) -> bool:
    return _ADDRESS.fullmatch(text) is not None


def is_slug(text: str) -> bool:
    return _SLUG.fullmatch(text) is not None


class OnboardingHandlers:
    def __init__(self, gate: SignInGate, sign_in: SignInHandlers, server_secret: bytes) -> None:
        self._gate = gate
        self._sign_in = sign_in
        self._server_secret = server_secret

    def show_set_up(self, request: Request, _: Form) -> Response:
        token = self._good_token(request.query_params.get("token", ""))
        with self._gate.database.transaction() as transaction:
            if access.has_users(transaction):
                raise NotFound(OVER)
        return self._gate.pages.render("set_up.html", page=SetUpPage(token, "", "", FIRST_PROJECT))

    def set_up(self, _: Request, form: Form) -> Response:
        """The first person, admin of every project there is. Works once: afterwards there is a user."""
        token = self._good_token(form.one("token"))
        email, project = form.line("email"), form.line("project", 64)
        problem, hashed = _hashed(email, form.one("password"))
        if not is_slug(project):
            problem = "A project's name is made of small letters, digits and hyphens."
        if problem:
            page = SetUpPage(token, problem, email, project)
            return self._gate.pages.render("set_up.html", 422, page=page)
        with self._gate.database.transaction() as transaction:
            members.lock_first_user(transaction)
            if access.has_users(transaction):
                raise NotFound(OVER)
            access.ensure_project(transaction, project)
            user_id = access.put_user(transaction, email, hashed)
            for existing in access.projects(transaction):
                access.put_member(transaction, existing.id, user_id, "admin")
                audit(transaction, existing.id, email, "member.set-up", f"user/{user_id}", role="admin")
            return self._gate.open_session(transaction, user_id, "/")

    def show_invitation(self, request: Request, _: Form) -> Response:
        token = request.query_params.get("token", "")
        with self._gate.database.transaction() as transaction:
            page = _invitation_page(transaction, token)
        return self._gate.pages.render("invitation.html", page=page)

    def accept_invitation(self, request: Request, form: Form) -> Response:
        token = form.one("token")
        with self._gate.database.transaction() as transaction:
            page = _invitation_page(transaction, token)
            is_known = access.find_user(transaction, page.email) is not None
        # Somebody who has an account proves it; somebody new chooses a password.
        if is_known:
            user_id, status = self._sign_in.check(request, page.email, form.one("password"))
            problem, hashed = ("" if user_id else REFUSED_CHOICE), ""
        else:
            user_id, status = None, 422
            problem, hashed = _hashed(page.email, form.one("password"))
            # Whoever made the link may look at it too: it does not say who has an account here.
            problem = REFUSED_CHOICE if problem else ""
        if problem:
            page = InvitationPage(**{**vars(page), "problem": problem})
            return self._gate.pages.render("invitation.html", status, page=page)
        with self._gate.database.transaction() as transaction:
            invitation = members.find_invitation(transaction, hash_token(token))
            if invitation is None:
                raise NotFound(OVER)
            if user_id is None:
                # Another link may have made the account a moment ago; that one's password stands.
                if access.find_user(transaction, invitation.email) is not None:
                    raise NotFound(OVER)
                user_id = access.put_user(transaction, invitation.email, hashed)
            members.use_invitation(transaction, invitation)
            access.put_member(transaction, invitation.project_id, user_id, invitation.role)
            audit(
                transaction,
                invitation.project_id,
                invitation.email,
                "member.joined",
                f"user/{user_id}",
                role=invitation.role,
                invited_by=invitation.invited_by,
            )
            return self._gate.open_session(transaction, user_id, Links(invitation.project).to())

    def _good_token(self, token: str) -> str:
        if not is_setup_token(self._server_secret, token, int(time.time())):
            raise NotFound(OVER)
        return token


def _hashed(email: str, password: str) -> tuple[str, str]:
    """What is wrong with them, or the hash."""
    if not is_address(email):
        return "This is not an e-mail address.", ""
    try:
        return "", hash_password(password, email)
    except WeakPassword as error:
        return str(error), ""


def _invitation_page(transaction: access.Transaction, token: str) -> InvitationPage:
    invitation = members.find_invitation(transaction, hash_token(token)) if token else None
    if invitation is None:
        raise NotFound(OVER)
    return InvitationPage(
        token=token,
        problem="",
        email=invitation.email,
        project=invitation.project,
        role=invitation.role,
        invited_by=invitation.invited_by,
    )
