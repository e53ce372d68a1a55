"""Passwords: Argon2id, no composition rules, no default account."""

from __future__ import annotations

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

SHORTEST, LONGEST = 8, 256

_hasher = PasswordHasher()
# Checked when the address is unknown, so that both answers take the same time.
_NOBODY = _hasher.hash("a password that nobody has")


def hash_password(password: str) -> str:
    if not SHORTEST <= len(password) <= LONGEST:
        raise ValueError(f"A password has {SHORTEST} to {LONGEST} characters.")
    return _hasher.hash(password)


def is_password(password: str, password_hash: str | None) -> bool:
    try:
        _hasher.verify(password_hash or _NOBODY, password[:LONGEST])
    except (Argon2Error, InvalidHashError):
        return False
    return password_hash is not None
