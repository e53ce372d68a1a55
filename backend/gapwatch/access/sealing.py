"""Encrypts channel secrets at rest, with a key derived from the server's own secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from cryptography.fernet import Fernet, InvalidToken


class Sealer:
    """Encrypts and authenticates. The database alone, without the server's secret, reveals nothing."""

    def __init__(self, server_secret: bytes) -> None:
        key = hmac.digest(server_secret, b"channel-secrets", hashlib.sha256)
        self._fernet = Fernet(base64.urlsafe_b64encode(key))

    def seal(self, secrets: dict[str, Any]) -> bytes:
        return self._fernet.encrypt(json.dumps(secrets).encode())

    def open(self, sealed: bytes | None) -> dict[str, Any] | None:
        """None when it was sealed under another server secret."""
        if sealed is None:
            return {}
        try:
            opened: dict[str, Any] = json.loads(self._fernet.decrypt(sealed))
        except InvalidToken:
            return None
        return opened
