"""`/account` and `/projects`: one's own password, and the projects one is in."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from starlette.responses import RedirectResponse, Response

from gapwatch.access.passwords import WeakPassword, hash_password
from gapwatch.access.roles import allows
from gapwatch.errors import Forbidden
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.links import Links
from gapwatch.pages.people.onboarding import is_slug
from gapwatch.pages.people.sign_in import SignInHandlers
from gapwatch.pages.people.sign_in_gate import SignInGate
from gapwatch.store.core.audit import audit
from gapwatch.store.people import access

# Without those that look alike.
SUFFIX_LETTERS, SUFFIX_LENGTH, LONGEST_SLUG = "abcdefghjkmnpqrstuvwxyz23456789", 5, 63


@dataclass(frozen=True)
class AccountPage:
    email: str
    problem: str


@dataclass(frozen=True)
class ProjectEntry:
    slug: str
    role: str


@dataclass(frozen=True)
class ProjectsPage:
    projects: list[ProjectEntry]
    may_make: bool
    problem: str


class AccountHandlers:
    def __init__(self, gate: SignInGate, sign_in: SignInHandlers) -> None:
        self._gate = gate
        self._sign_in = sign_in

    def show(self, visit: Visit) -> View:
        return View("account.html", AccountPage(visit.person.email, ""))

    def change_password(self, visit: Visit) -> View | Response:
        """Ends every session of this person, and opens a new one here."""
        email = visit.person.email
        user_id, status = self._sign_in.check(visit.request, email, visit.form.one("current"))
        if user_id is None:
            return View("account.html", AccountPage(email, "The current password is not right."), status)
        try:
            hashed = hash_password(visit.form.one("password"), email)
        except WeakPassword as error:
            return View("account.html", AccountPage(email, str(error)), 422)
        access.put_user(visit.transaction, email, hashed)
        access.close_sessions_of(visit.transaction, user_id)
        access.audit_password(visit.transaction, user_id, visit.actor)
        return self._gate.open_session(visit.transaction, user_id, "/")


def show_projects(visit: Visit) -> View:
    return View("projects.html", _projects(visit, ""))


def make_project(visit: Visit) -> View | Response:
    """Whoever is admin of a project may start another, and is its admin."""
    page = _projects(visit, "")
    if not page.may_make:
        raise Forbidden("Only an admin of a project can make another.")
    slug = visit.form.line("slug", 64)
    problem = "" if is_slug(slug) else "A name is made of small letters, digits and hyphens, at most 63."
    if problem:
        return View("projects.html", _projects(visit, problem), 422)
    # Names are of all tenants together. With letters of chance none is ever taken, which would tell of another's.
    letters = "".join(secrets.choice(SUFFIX_LETTERS) for _ in range(SUFFIX_LENGTH))
    slug = f"{slug[: LONGEST_SLUG - SUFFIX_LENGTH - 1].rstrip('-')}-{letters}"
    project_id = access.ensure_project(visit.transaction, slug)
    access.put_member(visit.transaction, project_id, visit.person.user_id, "admin")
    audit(visit.transaction, project_id, visit.actor, "project.created", f"project/{slug}")
    return RedirectResponse(Links(slug).to(), 303)


def _projects(visit: Visit, problem: str) -> ProjectsPage:
    memberships = access.memberships(visit.transaction, visit.person.user_id)
    entries = [ProjectEntry(membership.slug, membership.role) for membership in memberships]
    return ProjectsPage(entries, any(allows(membership.role, "admin") for membership in memberships), problem)
