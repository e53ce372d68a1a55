"""The link with which a mail address says that it wants alerts. It leads to a page with a button."""

from __future__ import annotations

from gapwatch.access.tokens import address_token
from gapwatch.store.alerting.mail_addresses import MailAddress


def confirm_link(server_secret: bytes, public_url: str, address: MailAddress) -> str:
    assert address.asked_at is not None  # noqa: S101 - it is being asked
    token = address_token(server_secret, address.project_id, address.id, address.asked_at)
    return f"{public_url}/confirm-address?token={token}"
