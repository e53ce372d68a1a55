"""Ids, made once where the episode is made: the server recognises a record sent twice by its id."""

from __future__ import annotations

import os
import time
import uuid

# The namespace of imported episodes, so that the same file gives the same ids everywhere.
_IMPORTS = uuid.UUID("6f2c7b1e-0d0a-5f6b-9a35-1f6f1b0f7a51")


def new_id() -> str:
    """A UUID of version 7 (RFC 9562): 48 bits of milliseconds, then random bits. Later ids sort later."""
    now_ms = time.time_ns() // 1_000_000 & (1 << 48) - 1
    chance = int.from_bytes(os.urandom(10), "big")
    high, low = chance >> 68, chance & (1 << 62) - 1
    return str(uuid.UUID(int=now_ms << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low))


def id_of(*parts: object) -> str:
    """The same id for the same parts, always: this makes a repeated import harmless."""
    return str(uuid.uuid5(_IMPORTS, "/".join(map(str, parts))))
