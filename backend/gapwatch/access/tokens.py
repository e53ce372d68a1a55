"""Random tokens of links and browsers, kept as hashes; and links that the server's own secret vouches for."""

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
    """A plain hash will do: the token has 256 bits of chance in it."""
    return hashlib.sha256(token.encode()).digest()


def setup_token(server_secret: bytes, now_s: int) -> str:
    """Nothing is stored: the server's secret vouches for it, and it works only while there is no user."""
    ends = str(now_s + SETUP_LASTS_S)
    return f"{ends}.{_vouch(server_secret, 'set-up', ends)}"


def is_setup_token(server_secret: bytes, token: str, now_s: int) -> bool:
    ends, _, vouched = token.partition(".")
    same = hmac.compare_digest(_vouch(server_secret, "set-up", ends).encode(), vouched.encode())
    return same and ends.isdecimal() and ends.isascii() and now_s < int(ends)


def address_token(server_secret: bytes, project_id: int, address_id: int, asked_at: datetime) -> str:
    """With which a mail address confirms that it wants alerts.

    Nothing is stored but when it was asked, so a question has one token however often its mail is tried.
    """
    vouched = _vouch(server_secret, "address", f"{project_id}.{address_id}.{asked_at.timestamp():.6f}")
    return f"{project_id}.{address_id}.{vouched}"


def address_of_token(token: str) -> tuple[int, int] | None:
    """Project and address that a token speaks of, which is not yet whether it is good."""
    numbers = token.split(".")[:2]
    if len(numbers) != 2 or not all(one.isascii() and one.isdecimal() and len(one) < 10 for one in numbers):  # noqa: PLR2004
        return None
    return int(numbers[0]), int(numbers[1])


def is_address_token(server_secret: bytes, token: str, asked_at: datetime, now: datetime) -> bool:
    found = address_of_token(token)
    if found is None or now > asked_at + ADDRESS_LASTS:
        return False
    return hmac.compare_digest(address_token(server_secret, *found, asked_at).encode(), token.encode())


def _vouch(server_secret: bytes, purpose: str, words: str) -> str:
    return hmac.digest(server_secret, f"{purpose}:{words}".encode(), hashlib.sha256).hex()
