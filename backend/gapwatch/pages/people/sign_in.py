"""Signing in and out. Sessions live in the database; the browser holds a random token.

Guessing is slowed by account and by address; what is counted is counted before the password is looked at.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from gapwatch.access.passwords import is_password
from gapwatch.errors import ServiceUnavailable
from gapwatch.pages.forms import Form
from gapwatch.pages.frame import Visit
from gapwatch.pages.links import local_path
from gapwatch.pages.people.sign_in_gate import SignInGate
from gapwatch.store.people import access, members

# Failures within 15 minutes.
MOST_OF_AN_ACCOUNT = 10
MOST_OF_AN_ADDRESS = 100
LOCKED_FOR_S = 15 * 60
# A hash takes 64 MB and most of a core for a moment; more at once would starve the robots.
HASHES_AT_ONCE = 2
HASH_WITHIN_S = 10

_hashing = threading.BoundedSemaphore(HASHES_AT_ONCE)


@dataclass(frozen=True)
class SignInPage:
    problem: str
    to: str
    has_users: bool


class SignInHandlers:
    def __init__(self, gate: SignInGate) -> None:
        self._gate = gate

    def show(self, request: Request, _: Form) -> Response:
        to = local_path(request.query_params.get("to"))
        try:
            with self._gate.database.transaction() as transaction:
                has_users = access.has_users(transaction)
        except ServiceUnavailable:
            # The form is shown all the same; whoever sends it is told.
            has_users = True
        return self._gate.pages.render("sign_in.html", page=SignInPage("", to, has_users))

    def submit(self, request: Request, form: Form) -> Response:
        to, email = local_path(form.one("to")), form.line("email")
        user_id, status = self.check(request, email, form.one("password"))
        if user_id is not None:
            with self._gate.database.transaction() as transaction:
                return self._gate.open_session(transaction, user_id, to)
        problem = (
            "This address and password do not belong together."
            if status == 401  # noqa: PLR2004
            else "Too many attempts. Wait a quarter of an hour, then try again."
        )
        headers = {} if status == 401 else {"Retry-After": str(LOCKED_FOR_S)}  # noqa: PLR2004
        return self._gate.pages.render(
            "sign_in.html", status, headers, page=SignInPage(problem, to, has_users=True)
        )

    def check(self, request: Request, email: str, password: str) -> tuple[int | None, int]:
        """The user whose password this is, or None and the status to answer with."""
        address = request.client.host if request.client else ""
        account, place = _subject("account", email.lower()), _subject("address", address)
        with self._gate.database.transaction() as transaction:
            # Both are counted, and in one order, whatever the first says.
            failures = members.count_attempt(transaction, account), members.count_attempt(transaction, place)
            user = access.find_user(transaction, email)
        if failures[0] > MOST_OF_AN_ACCOUNT or failures[1] > MOST_OF_AN_ADDRESS:
            return None, 429
        if not _hashing.acquire(timeout=HASH_WITHIN_S):
            raise ServiceUnavailable("Many people are signing in; try again shortly.")
        try:
            # Checked even for an unknown address, so that both answers take the same time.
            right = is_password(password, user.password_hash if user else None)
        finally:
            _hashing.release()
        if not right or user is None:
            return None, 401
        with self._gate.database.transaction() as transaction:
            members.forgive_attempt(transaction, account, all_of_them=True)
            members.forgive_attempt(transaction, place, all_of_them=False)
        return user.user_id, 200

    def sign_out(self, visit: Visit) -> Response:
        return self._gate.close_session(visit.transaction, visit.request)


def _subject(kind: str, name: str) -> bytes:
    """Hashed: a password typed into the wrong field must not be kept in clear."""
    return hashlib.sha256(f"{kind}:{name}".encode()).digest()
