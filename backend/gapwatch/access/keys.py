"""API keys: `gw_` and 32 random bytes, shown once; stored as a prefix and a keyed hash."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime

PREFIX = "gw_"
# Letters of the random part that are stored in the clear, to find the row and to recognise a key in a list.
PREFIX_LENGTH = len(PREFIX) + 8
LONGEST_KEY = 64


@dataclass(frozen=True)
class NewKey:
    secret: str
    prefix: str
    key_hash: bytes


@dataclass(frozen=True)
class KeyHolder:
    """Who a request speaks for."""

    project_id: int
    key_id: int
    prefix: str
    scope: str
    key_hash: bytes
    expires_at: datetime | None
    revoked_at: datetime | None

    def is_valid(self, presented: bytes, now: datetime) -> bool:
        # Compare in constant time, even if the key has expired, so that timing reveals nothing.
        same = hmac.compare_digest(self.key_hash, presented)
        return same and self.revoked_at is None and (self.expires_at is None or self.expires_at > now)

    def may(self, scope: str) -> bool:
        return self.scope in {scope, "admin"}


def new_key(server_secret: bytes) -> NewKey:
    secret = PREFIX + secrets.token_urlsafe(32)
    return NewKey(secret, secret[:PREFIX_LENGTH], hash_key(server_secret, secret))


def hash_key(server_secret: bytes, secret: str) -> bytes:
    return hmac.digest(server_secret, b"api-key:" + secret.encode(), hashlib.sha256)


def bearer(header: str | None) -> str | None:
    """The key of an Authorization header, if it looks like one of ours."""
    scheme, _, secret = (header or "").partition(" ")
    secret = secret.strip()
    looks_right = secret.isascii() and PREFIX_LENGTH < len(secret) <= LONGEST_KEY and secret.startswith(PREFIX)
    return secret if scheme.lower() == "bearer" and looks_right else None
