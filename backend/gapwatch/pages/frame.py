"""What surrounds every page: who is looking, at which project, and what is open there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request

from gapwatch.access.roles import Role, allows
from gapwatch.pages.forms import Form
from gapwatch.pages.links import Links
from gapwatch.store.people.access import (
    Membership,
    SignedIn,
    Transaction,
)


@dataclass(frozen=True)
class Frame:
    """The part of a page that is the same on all of them."""

    email: str
    csrf: str
    project: str
    role: str
    projects: list[str]
    links: Links
    open_incidents: int
    # The badge: what nobody takes care of.
    unowned_incidents: int
    # Changes whenever something on the project's pages may have; the browser polls it.
    version: str
    address: str

    def may(self, needed: Role) -> bool:
        return allows(self.role, needed)


@dataclass(frozen=True)
class Visit:
    """One request of somebody who may make it, inside the request's one transaction."""

    request: Request
    transaction: Transaction
    person: SignedIn
    project: Membership
    frame: Frame
    form: Form
    # What the project decides for itself: its taxonomy, the direction of its metrics.
    options: dict[str, Any] = field(default_factory=dict)
    memberships: Sequence[Membership] = ()

    @property
    def project_id(self) -> int:
        return self.project.project_id

    @property
    def actor(self) -> str:
        """Who is named in the audit trail."""
        return self.person.email

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])


@dataclass(frozen=True)
class View:
    """A page to be rendered: its template, its data (which is also its JSON twin) and its figures."""

    template: str
    page: Any
    status: int = 200
    figures: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    # What the template needs beside the data and is not part of the twin: heights, links.
    about: Any = None
