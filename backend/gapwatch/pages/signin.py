"""Signing in and out. Sessions live in the database; the browser holds a random token."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gapwatch.access.passwords import is_password
from gapwatch.errors import Forbidden
from gapwatch.pages.forms import read_form
from gapwatch.pages.templates import Pages
from gapwatch.store import access
from gapwatch.store.database import Database


@dataclass(frozen=True)
class SignInPage:
    failed: bool
    to: str


class SignIn:
    def __init__(self, database: Database, pages: Pages, public_url: str) -> None:
        self._database = database
        self._pages = pages
        self._secure = public_url.startswith("https://")
        # The __Host- prefix needs HTTPS; on plain HTTP a browser would drop such a cookie.
        self._cookie = "__Host-gapwatch" if self._secure else "gapwatch"

    def who(self, request: Request) -> access.SignedIn | None:
        token = request.cookies.get(self._cookie)
        if not token:
            return None
        with self._database.transaction() as connection:
            return access.find_session(connection, _hash(token))

    def show(self, request: Request) -> Response:
        return self._pages.render(
            "sign_in.html", page=SignInPage(failed=False, to=_local(request.query_params.get("to")))
        )

    async def submit(self, request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        refuse_foreign_origin(request)
        form = await read_form(request)
        return await run_in_threadpool(self._sign_in, form)

    def _sign_in(self, form: dict[str, str]) -> Response:
        to = _local(form.get("to"))
        with self._database.transaction() as connection:
            found = access.find_user(connection, form.get("email", ""))
            # Checked even for an unknown address, so that both answers take the same time.
            if not is_password(form.get("password", ""), found[1] if found else None) or found is None:
                return self._pages.render("sign_in.html", 401, page=SignInPage(failed=True, to=to))
            token = secrets.token_urlsafe(32)
            access.open_session(connection, found[0], _hash(token), secrets.token_urlsafe(24))
        response = RedirectResponse(to, 303)
        response.set_cookie(
            self._cookie,
            token,
            max_age=90 * 86400,
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="lax",
        )
        return response

    async def sign_out(self, request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        refuse_foreign_origin(request)
        form = await read_form(request)
        return await run_in_threadpool(self._sign_out, request, form)

    def _sign_out(self, request: Request, form: dict[str, str]) -> Response:
        token = request.cookies.get(self._cookie, "")
        with self._database.transaction() as connection:
            session = access.find_session(connection, _hash(token))
            if session is not None:
                if not secrets.compare_digest(session.csrf_token, form.get("csrf", "")):
                    raise Forbidden("The form is out of date; load the page again.")
                access.close_session(connection, _hash(token))
        response = RedirectResponse("/sign-in", 303)
        response.delete_cookie(self._cookie, path="/", secure=self._secure, httponly=True, samesite="lax")
        return response


def refuse_foreign_origin(request: Request) -> None:
    """A form of another site cannot act for the person signed in here."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "same-origin")
    same = origin is None or urlsplit(origin).netloc == request.headers.get("host")
    if not same or site not in {"same-origin", "none"}:
        raise Forbidden("This form was sent from another site.")


def _local(to: str | None) -> str:
    """Where to go after signing in: only ever a path of ours."""
    if not to or not to.startswith("/") or to.startswith(("//", "/\\")) or "\\" in to:
        return "/"
    return to


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
