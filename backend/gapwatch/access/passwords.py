"""Passwords: Argon2id, eight characters or more, no composition rules, no common passwords."""

from __future__ import annotations

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from gapwatch.access.common_passwords import is_common

SHORTEST, LONGEST = 8, 256

_hasher = PasswordHasher()
# Checked when the address is unknown, so that both answers take the same time.
_NOBODY = _hasher.hash("a password that nobody has")


class WeakPassword(ValueError):
    """The message tells a person what to choose instead."""


def hash_password(password: str, email: str = "") -> str:
    if not SHORTEST <= len(password) <= LONGEST:
        raise WeakPassword(f"A password has {SHORTEST} to {LONGEST} characters.")
    name = email.partition("@")[0].casefold()
    if is_common(password) or (name and name in password.casefold() and len(password) < len(name) + SHORTEST):
        raise WeakPassword("This password is among the first that are guessed. A few unrelated words are better.")
    return _hasher.hash(password)


def is_password(password: str, password_hash: str | None) -> bool:
    try:
        _hasher.verify(password_hash or _NOBODY, password[:LONGEST])
    except (Argon2Error, InvalidHashError):
        return False
    return password_hash is not None
