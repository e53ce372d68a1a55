"""The row that says which server secret a database belongs to, and what is encrypted with it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, text

from gapwatch.access.fingerprint import SecretFingerprint


def is_there(connection: Connection) -> bool:
    """Whether the database knows of fingerprints at all; one of an earlier release does not."""
    return bool(connection.execute(text("SELECT to_regclass('server_secret') IS NOT NULL")).scalar_one())


def stored_fingerprint(connection: Connection) -> SecretFingerprint | None:
    row = connection.execute(text("SELECT salt, fingerprint FROM server_secret")).first()
    return None if row is None else SecretFingerprint(bytes(row.salt), bytes(row.fingerprint))


def store_if_none(connection: Connection, fingerprint: SecretFingerprint) -> None:
    """Of two processes that start at once one is first; the other then reads that one's."""
    connection.execute(
        text(
            "INSERT INTO server_secret (id, salt, fingerprint) VALUES (1, :salt, :digest) ON CONFLICT DO NOTHING"
        ),
        fingerprint._asdict(),
    )


def forget(connection: Connection) -> None:
    connection.execute(text("DELETE FROM server_secret"))


@dataclass(frozen=True)
class SealedChannel:
    project_id: int
    id: int
    sealed: bytes


def sealed_channels(connection: Connection) -> list[SealedChannel]:
    """The channels in use that have secrets."""
    rows = connection.execute(
        text("""
        SELECT project_id, id, secret FROM channels WHERE disabled_at IS NULL AND secret IS NOT NULL
        ORDER BY project_id, id
        """)
    )
    return [SealedChannel(row.project_id, row.id, bytes(row.secret)) for row in rows]


def put_sealed(connection: Connection, channel: SealedChannel) -> None:
    connection.execute(
        text("UPDATE channels SET secret = :sealed WHERE project_id = :p AND id = :id"),
        {"p": channel.project_id, "id": channel.id, "sealed": channel.sealed},
    )


def usable_keys(connection: Connection) -> int:
    """API keys that are neither revoked nor expired."""
    statement = text("""
    SELECT count(*) FROM api_keys WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
    """)
    return int(connection.execute(statement).scalar_one())
