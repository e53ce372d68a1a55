"""Random tokens for links and browsers, stored as hashes; and links signed with the server's own secret."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta

SETUP_LASTS_S = 24 * 3600
ADDRESS_LASTS = timedelta(days=3)


def new_token() -> str:
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> bytes:
    """A plain hash is enough: the token has 256 random bits."""
    return hashlib.sha256(token.encode()).digest()


def setup_token(server_secret: bytes, now_s: int) -> str:
    """Nothing is stored: it is signed with the server's secret, and works only while there is no user."""
    ends = str(now_s + SETUP_LASTS_S)
    return f"{ends}.{_sign(server_secret, 'set-up', ends)}"


def is_setup_token(server_secret: bytes, token: str, now_s: int) -> bool:
    ends, _, signature = token.partition(".")
    same = hmac.compare_digest(_sign(server_secret, "set-up", ends).encode(), signature.encode())
    return same and ends.isdecimal() and ends.isascii() and now_s < int(ends)


def address_token(server_secret: bytes, project_id: int, address_id: int, asked_at: datetime) -> str:
    """The token with which a mail address confirms that it wants alerts.

    Only the time of the request is stored, so a request has one token however often its mail is retried.
    """
    signature = _sign(server_secret, "address", f"{project_id}.{address_id}.{asked_at.timestamp():.6f}")
    return f"{project_id}.{address_id}.{signature}"


def address_of_token(token: str) -> tuple[int, int] | None:
    """The project and address in a token, which is not verified yet."""
    parts = token.split(".")[:2]
    if len(parts) != 2 or not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):  # noqa: PLR2004
        return None
    return int(parts[0]), int(parts[1])


def is_address_token(server_secret: bytes, token: str, asked_at: datetime, now: datetime) -> bool:
    ids = address_of_token(token)
    if ids is None or now > asked_at + ADDRESS_LASTS:
        return False
    return hmac.compare_digest(address_token(server_secret, *ids, asked_at).encode(), token.encode())


def _sign(server_secret: bytes, purpose: str, words: str) -> str:
    return hmac.digest(server_secret, f"{purpose}:{words}".encode(), hashlib.sha256).hex()
