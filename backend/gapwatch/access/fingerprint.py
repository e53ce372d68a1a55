"""Which server secret it is, without saying anything of it."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import NamedTuple


class SecretFingerprint(NamedTuple):
    """A salt and a keyed hash of it, under a key that is derived for this and nothing else."""

    salt: bytes
    digest: bytes

    def fits(self, server_secret: bytes) -> bool:
        return hmac.compare_digest(self.digest, _digest(server_secret, self.salt))


def new_fingerprint(server_secret: bytes) -> SecretFingerprint:
    salt = secrets.token_bytes(16)
    return SecretFingerprint(salt, _digest(server_secret, salt))


def _digest(server_secret: bytes, salt: bytes) -> bytes:
    key = hmac.digest(server_secret, b"fingerprint", hashlib.sha256)
    return hmac.digest(key, salt, hashlib.sha256)
