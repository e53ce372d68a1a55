"""One server secret a database: compared at every start, replaced only on purpose.

With another secret no API key works and no channel can be read. A process that has one would refuse senders and
tell nobody, so it does not start.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import structlog

from gapwatch.access.fingerprint import new_fingerprint
from gapwatch.access.sealing import Sealer
from gapwatch.errors import ServiceUnavailable
from gapwatch.settings import Settings
from gapwatch.store.core import secret_row
from gapwatch.store.core.database import Connection, Database

log = structlog.get_logger()

LOOK_AGAIN_S = 1.0


class WrongSecret(Exception):
    """This process has another server secret than its database; the message is for a person."""


def check_secret(database: Database, settings: Settings) -> None:
    """Refuse another secret than the one this database was set up with. The first that comes is remembered.

    A database that has channels and no fingerprint yet is asked by them: a secret that opens none is another.
    """
    secret = settings.server_secret()
    with database.transaction() as connection:
        if not secret_row.is_there(connection):
            # Not migrated yet; `/readyz` says so.
            return
        if secret_row.stored_fingerprint(connection) is None:
            channels = secret_row.sealed_channels(connection)
            if channels and unreadable(connection, secret) == len(channels):
                raise WrongSecret(_sentence(settings))
            secret_row.store_if_none(connection, new_fingerprint(secret))
        if not is_right(connection, secret):
            raise WrongSecret(_sentence(settings))


def wait_and_check_secret(database: Database, settings: Settings) -> None:
    """The same for a process that can do nothing without its database: it waits until there is one."""
    is_told = False
    while True:
        try:
            check_secret(database, settings)
            return
        except ServiceUnavailable:
            if not is_told:
                log.warning("the database is not answering yet")
                is_told = True
            time.sleep(LOOK_AGAIN_S)


def is_right(connection: Connection, secret: bytes) -> bool:
    """Whether the secret is that of the database, as far as it knows one."""
    stored = secret_row.stored_fingerprint(connection) if secret_row.is_there(connection) else None
    return stored is None or stored.fits(secret)


def unreadable(connection: Connection, secret: bytes) -> int:
    """How many channels in use cannot be read with the secret."""
    sealer = Sealer(secret)
    return sum(sealer.open(channel.sealed) is None for channel in secret_row.sealed_channels(connection))


@dataclass(frozen=True)
class SecretReplaced:
    """What becomes of what depended on the secret before."""

    channels_kept: int
    channels_to_set_again: int
    keys_to_replace: int


def replace_secret(database: Database, secret: bytes, before: bytes | None) -> SecretReplaced:
    """Make this the secret of the database. With the one before, channels keep their secrets; API keys do not."""
    if before == secret:
        raise ValueError("the secret before and the new one are the same")
    new, old = Sealer(secret), None if before is None else Sealer(before)
    kept = lost = 0
    with database.transaction() as connection:
        was_right = is_right(connection, secret)
        for channel in secret_row.sealed_channels(connection):
            opened = new.open(channel.sealed)
            if opened is None and old is not None:
                opened = old.open(channel.sealed)
                if opened is not None:
                    secret_row.put_sealed(connection, replace(channel, sealed=new.seal(opened)))
            kept, lost = kept + (opened is not None), lost + (opened is None)
        secret_row.forget(connection)
        secret_row.store_if_none(connection, new_fingerprint(secret))
        keys = 0 if was_right else secret_row.usable_keys(connection)
    return SecretReplaced(kept, lost, keys)


def _sentence(settings: Settings) -> str:
    mine = (
        "GAPWATCH_SECRET_KEY here"
        if settings.secret_key is not None
        else f"the one in {settings.data_dir / 'secret-key'}, used because GAPWATCH_SECRET_KEY is not set,"
    )
    return (
        f"This database was set up with another server secret: {mine} is not it, so no API key would work and no "
        "channel could be read. Give every part the same GAPWATCH_SECRET_KEY, or put the secret-key of the backup "
        "into the data directory. If it is lost, `gapwatch secret replace` makes this one the secret."
    )
