"""Random tokens of links and browsers, kept as hashes; and the link with which the first person is made."""

from __future__ import annotations

import hashlib
import hmac
import secrets

SETUP_LASTS_S = 24 * 3600


def new_token() -> str:
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> bytes:
    """A plain hash will do: the token has 256 bits of chance in it."""
    return hashlib.sha256(token.encode()).digest()


def setup_token(server_secret: bytes, now_s: int) -> str:
    """Nothing is stored: the server's secret vouches for it, and it works only while there is no user."""
    ends = str(now_s + SETUP_LASTS_S)
    return f"{ends}.{_vouch(server_secret, ends)}"


def is_setup_token(server_secret: bytes, token: str, now_s: int) -> bool:
    ends, _, vouched = token.partition(".")
    same = hmac.compare_digest(_vouch(server_secret, ends).encode(), vouched.encode())
    return same and ends.isdecimal() and ends.isascii() and now_s < int(ends)


def _vouch(server_secret: bytes, ends: str) -> str:
    return hmac.digest(server_secret, b"set-up:" + ends.encode(), hashlib.sha256).hex()
