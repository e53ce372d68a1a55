"""`/confirm-address`: a mail address says that it wants alerts, by a button, because mail filters follow links."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from gapwatch.access.tokens import address_of_token, is_address_token
from gapwatch.errors import NotFound
from gapwatch.pages.forms import Form
from gapwatch.pages.people.sign_in_gate import SignInGate
from gapwatch.store.alerting import mail_addresses
from gapwatch.store.people import access

OVER = (
    "This link is over, was replaced by a newer one, or was never made. "
    "Who set the channel can send a new one under Settings, Channels."
)


@dataclass(frozen=True)
class ConfirmPage:
    token: str
    address: str
    project: str
    is_confirmed: bool


class AddressConfirmationHandlers:
    def __init__(self, gate: SignInGate, server_secret: bytes) -> None:
        self._gate = gate
        self._server_secret = server_secret

    def show(self, request: Request, _: Form) -> Response:
        token = request.query_params.get("token", "")
        with self._gate.database.transaction() as transaction:
            address = self._asked(transaction, token)
        return self._page(token, address, is_confirmed=address.confirmed_at is not None)

    def confirm(self, _: Request, form: Form) -> Response:
        token = form.one("token")
        with self._gate.database.transaction() as transaction:
            address = self._asked(transaction, token)
            if address.confirmed_at is None:
                mail_addresses.confirm(transaction, address)
        return self._page(token, address, is_confirmed=True)

    def _asked(self, transaction: access.Transaction, token: str) -> mail_addresses.MailAddress:
        place = address_of_token(token)
        address = None if place is None else mail_addresses.find_address(transaction, *place)
        now = datetime.now(UTC)
        if (
            address is None
            or address.asked_at is None
            or not is_address_token(self._server_secret, token, address.asked_at, now)
        ):
            raise NotFound(OVER)
        return address

    def _page(self, token: str, address: mail_addresses.MailAddress, *, is_confirmed: bool) -> Response:
        page = ConfirmPage(token, address.address, address.project, is_confirmed)
        return self._gate.pages.render("confirm_address.html", page=page)
