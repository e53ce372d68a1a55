"""The one way into a page: who is it, may they, in which project; and for every change, is it really their wish.

Every address that is not for anybody goes through here, with the role it needs (`routes.py` has the table).
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from urllib.parse import quote

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gapwatch.access.roles import Role, allows
from gapwatch.access.tokens import hash_token, new_token
from gapwatch.doors.costly_reads import CostlyReads
from gapwatch.doors.lanes import Places
from gapwatch.errors import Forbidden, NotFound, NotSignedIn
from gapwatch.hosts import KnownHosts
from gapwatch.pages.forms import Form, read_form
from gapwatch.pages.frame import Frame, View, Visit
from gapwatch.pages.links import Links
from gapwatch.pages.templates import Pages
from gapwatch.settings import Settings
from gapwatch.store.core.database import Database
from gapwatch.store.core.tenancy import enter_project
from gapwatch.store.fold import project_changes
from gapwatch.store.people import access

SAFE_METHODS = {"GET", "HEAD"}
SESSION_LASTS_S = 90 * 86400
# Of one project in one process: half of the connections for pages.
PAGES_AT_ONCE = 10

Handler = Callable[[Visit], View | Response]
OpenHandler = Callable[[Request, Form], Response]
IsCostly = Callable[[Request, Form], bool]
Endpoint = Callable[[Request], Awaitable[Response]]


class SignInGate:
    def __init__(self, database: Database, pages: Pages, settings: Settings, costly: CostlyReads) -> None:
        self.database = database
        self._costly = costly
        self._places = Places(PAGES_AT_ONCE)
        self.pages = pages
        self._hosts = KnownHosts(settings)
        self._secure = settings.public_url.startswith("https://")
        # The __Host- prefix needs HTTPS; on plain HTTP a browser would drop such a cookie.
        self._cookie = "__Host-gapwatch" if self._secure else "gapwatch"

    def for_role(self, needed: Role | None, handler: Handler, is_costly: IsCostly | None = None) -> Endpoint:
        """An endpoint for members with at least this role; None: whoever is signed in, in a project or not."""

        async def endpoint(request: Request) -> Response:
            if request.method not in SAFE_METHODS:
                # Before anything is read of what a stranger sends.
                await run_in_threadpool(self._refuse_stranger, request)
            form = await self._form(request)
            if is_costly is not None and self._costly.has_side and is_costly(request, form):
                project_id = await run_in_threadpool(self._project_of, request, form)
                if project_id is not None:
                    return await self._costly.aside(request, project_id)
            return await run_in_threadpool(self._enter, request, form, needed, handler)

        return endpoint

    def for_anybody(self, handler: OpenHandler) -> Endpoint:
        """An endpoint before the gate: signing in, and the links that lead to it. There is no session to misuse
        yet, so a foreign origin is refused and no token asked for."""

        async def endpoint(request: Request) -> Response:
            form = await self._form(request)
            return await run_in_threadpool(handler, request, form)

        return endpoint

    def session(
        self, transaction: access.Transaction, request: Request
    ) -> tuple[access.SignedIn, list[access.Membership]] | None:
        token = request.cookies.get(self._cookie)
        return access.find_session(transaction, hash_token(token)) if token else None

    def open_session(self, transaction: access.Transaction, user_id: int, to: str) -> Response:
        """Signs in: a new token in a cookie, whatever the browser had before."""
        token = new_token()
        access.open_session(transaction, user_id, hash_token(token), secrets.token_urlsafe(24))
        answer = RedirectResponse(to, 303)
        answer.set_cookie(
            self._cookie,
            token,
            max_age=SESSION_LASTS_S,
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="lax",
        )
        return answer

    def close_session(self, transaction: access.Transaction, request: Request) -> Response:
        access.close_session(transaction, hash_token(request.cookies.get(self._cookie, "")))
        answer = RedirectResponse("/sign-in", 303)
        answer.delete_cookie(self._cookie, path="/", secure=self._secure, httponly=True, samesite="lax")
        return answer

    async def _form(self, request: Request) -> Form:
        if request.method in SAFE_METHODS:
            return Form([])
        self._refuse_foreign_origin(request)
        return await read_form(request)

    def _refuse_foreign_origin(self, request: Request) -> None:
        """A form of another site cannot act for the person signed in here."""
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "same-origin")
        same = origin is None or self._hosts.is_home(origin)
        if not same or site not in {"same-origin", "none"}:
            raise Forbidden("This form was sent from another site.")

    def _project_of(self, request: Request, form: Form) -> int | None:
        """Whose lane a request takes; None if it will be turned away anyhow."""
        with self.database.transaction() as transaction:
            session = self.session(transaction, request)
        _, memberships = session or (None, [])
        wanted = _wanted_project(request, form)
        found = (place.project_id for place in memberships if place.slug == wanted or not wanted)
        return next(found, None)

    def _refuse_stranger(self, request: Request) -> None:
        with self.database.transaction() as transaction:
            if self.session(transaction, request) is None:
                raise _not_signed_in()

    def _enter(self, request: Request, form: Form, needed: Role | None, handler: Handler) -> Response:
        is_change = request.method not in SAFE_METHODS
        with self.database.transaction() as transaction:
            session = self.session(transaction, request)
            if session is None:
                return _to_sign_in(request)
            person, memberships = session
            if is_change and not secrets.compare_digest(
                person.csrf_token.encode(), form.one("csrf").encode("utf-8", "replace")
            ):
                raise Forbidden("The form is out of date; load the page again.")
            wanted = _wanted_project(request, form)
            project = next(
                (membership for membership in memberships if membership.slug == wanted or not wanted), None
            )
            if project is None:
                if wanted:
                    raise NotFound("There is nothing at this address.")
                if needed is not None:
                    return RedirectResponse("/projects", 303)
                project = access.Membership(0, "", "", "")
            if needed is not None and not allows(project.role, needed):
                raise Forbidden(
                    f"This needs the role {needed}; yours in {project.slug} is {project.role}. "
                    "An admin of the project can change that under Settings, Members."
                )
            if needed is not None:
                # From here on the database shows this project alone, whatever a query forgets to ask for.
                enter_project(transaction, project.project_id)
            state = project_changes.project_state(transaction, project.project_id)
            frame = Frame(
                email=person.email,
                csrf=person.csrf_token,
                project=project.slug,
                role=project.role,
                projects=[membership.slug for membership in memberships],
                links=Links(project.slug if len(memberships) > 1 else None),
                open_incidents=state.open_incidents,
                unowned_incidents=state.unowned_incidents,
                version=state.version,
                address=_address(request),
            )
            with self._places.of(project.project_id):
                reply = handler(
                    Visit(request, transaction, person, project, frame, form, state.options, memberships)
                )
        if isinstance(reply, Response):
            return reply
        if request.query_params.get("format") == "json":
            body = {"project": frame.project, "page": reply.page}
            return Response(msgspec.json.encode(body), reply.status, media_type="application/json")
        return self.pages.render(
            reply.template,
            reply.status,
            reply.headers,
            frame=frame,
            page=reply.page,
            figures=reply.figures,
            about=reply.about,
        )


def _wanted_project(request: Request, form: Form) -> str | None:
    """A form says in itself which project it was shown for, whatever other tabs show by now."""
    return request.query_params.get("project") if request.method in SAFE_METHODS else form.one("project")


def _to_sign_in(request: Request) -> Response:
    wants_json = "application/json" in request.headers.get("accept", "")
    if request.method not in SAFE_METHODS or wants_json:
        raise _not_signed_in()
    return RedirectResponse(f"/sign-in?to={quote(_address(request))}", 303)


def _not_signed_in() -> NotSignedIn:
    return NotSignedIn("Sign in first.")


def _address(request: Request) -> str:
    """The page's path and query as the browser asked for them."""
    query = request.url.query
    path: str = request.scope.get("raw_path", b"").decode("ascii", "replace") or request.url.path
    return f"{path}?{query}" if query else path
