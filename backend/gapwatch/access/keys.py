"""API keys: `gw_` and 32 random bytes, shown once; stored as a prefix and a keyed hash."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import TypeAlias

PREFIX = "gw_"
# Letters of the random part that are stored in the clear, to find the row and to recognise a key in a list.
PREFIX_LENGTH = len(PREFIX) + 8
LONGEST_KEY = 64

# A project and the number of a key in it: each project counts for itself.
KeyNumber: TypeAlias = tuple[int, int]


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
    # Where it may be used from; nothing: from anywhere.
    networks: Sequence[str] = ()

    @property
    def key(self) -> KeyNumber:
        """What tells this key from every other one."""
        return self.project_id, self.key_id

    def is_from_here(self, client: str | None) -> bool:
        """Whether the key may be used from an address."""
        return not self.networks or (client is not None and is_within(client, tuple(self.networks)))

    def is_valid(self, presented: bytes, now: datetime) -> bool:
        # Compare in constant time, even if the key has expired, so that timing reveals nothing.
        same = hmac.compare_digest(self.key_hash, presented)
        return same and self.revoked_at is None and (self.expires_at is None or self.expires_at > now)

    def may(self, scope: str) -> bool:
        return self.scope in {scope, "admin"}


MOST_NETWORKS = 50


def read_networks(listed: Iterable[str]) -> list[str]:
    """Addresses and networks as they are stored; ValueError with a sentence for what is none."""
    try:
        networks = [str(ip_network(part.strip(), strict=False)) for part in listed if part.strip()]
    except ValueError:
        raise ValueError(
            "a network is written as 192.0.2.0/24 or 2001:db8::/32, an address as 192.0.2.7"
        ) from None
    if len(networks) > MOST_NETWORKS:
        raise ValueError(f"at most {MOST_NETWORKS} networks")
    return networks


@lru_cache(maxsize=10_000)
def is_within(client: str, networks: tuple[str, ...]) -> bool:
    try:
        address = ip_address(client)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return any((mapped or address) in ip_network(network) for network in networks)


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
