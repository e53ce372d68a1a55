"""Mail addresses of channels: asked by mail whether they want alerts, and used once they have confirmed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.store.alerting import incidents, outbox
from gapwatch.store.core.audit import audit

CONFIRMED, WAITING = "confirmed", "waiting for confirmation"
# Nobody's mailbox is filled by pressing a button.
ASKED_AT_MOST_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class MailAddress:
    project_id: int
    project: str
    id: int
    address: str
    asked_at: datetime | None
    confirmed_at: datetime | None

    @property
    def state(self) -> str:
        return WAITING if self.confirmed_at is None else CONFIRMED


_ADDRESSES = """
SELECT a.project_id, p.slug AS project, a.id, a.address, a.asked_at, a.confirmed_at
FROM mail_addresses a JOIN projects p ON p.id = a.project_id WHERE a.project_id = :p
"""


def addresses_of(connection: Connection, project_id: int, config: Mapping[str, Any]) -> list[MailAddress]:
    """Return the addresses of a channel in its order, none if its kind has none."""
    wanted = list(config.get("to") or ())
    rows = connection.execute(
        text(f"{_ADDRESSES} AND a.address = ANY(:to)"), {"p": project_id, "to": wanted}
    ).mappings()
    known = {row["address"]: MailAddress(**row) for row in rows}
    return [known[address] for address in wanted if address in known]


def ask(connection: Connection, project_id: int, channel_id: int, wanted: Sequence[str]) -> list[int]:
    """Ask the addresses that have not confirmed, through this channel; return the deliveries.

    A new question makes the link of the one before it worthless.
    """
    place = {"p": project_id, "to": list(dict.fromkeys(wanted))}
    connection.execute(
        text("""
        INSERT INTO mail_addresses (project_id, address) SELECT :p, unnest(CAST(:to AS text[]))
        ON CONFLICT (project_id, address) DO NOTHING
        """),
        place,
    )
    asked = connection.scalars(
        text("""
        UPDATE mail_addresses SET asked_at = now()
        WHERE project_id = :p AND address = ANY(:to) AND confirmed_at IS NULL
          AND (asked_at IS NULL OR asked_at < now() - CAST(:pause AS interval))
        RETURNING address
        """),
        place | {"pause": ASKED_AT_MOST_EVERY},
    )
    return [
        outbox.enqueue_confirmation(connection, project_id, channel_id, address) for address in sorted(asked.all())
    ]


def try_channel(
    connection: Connection, project_id: int, channel_id: int, config: Mapping[str, Any], content: Mapping[str, Any]
) -> list[int]:
    """Send a test to confirmed addresses and the link to the others; return the deliveries, the test first."""
    addresses = addresses_of(connection, project_id, config)
    tests = []
    if not addresses or any(address.confirmed_at is not None for address in addresses):
        tests.append(outbox.enqueue(connection, project_id, channel_id, "test", content, reason="test"))
    waiting = [address.address for address in addresses if address.confirmed_at is None]
    return tests + (ask(connection, project_id, channel_id, waiting) if waiting else [])


def find_address(connection: Connection, project_id: int, address_id: int) -> MailAddress | None:
    statement = text(f"{_ADDRESSES} AND a.id = :id")
    row = connection.execute(statement, {"p": project_id, "id": address_id}).mappings().first()
    return None if row is None else MailAddress(**row)


def confirm(connection: Connection, address: MailAddress) -> None:
    """Record that an address wants alerts."""
    place = {"p": address.project_id, "id": address.id}
    connection.execute(
        text("""
        UPDATE mail_addresses SET confirmed_at = coalesce(confirmed_at, now())
        WHERE project_id = :p AND id = :id
        """),
        place,
    )
    incidents.reconsider_untold(connection, address.project_id)
    audit(connection, address.project_id, address.address, "address.confirmed", f"address/{address.id}")


def forget_unused(connection: Connection, project_id: int) -> None:
    """Delete addresses that are in no channel any more. Added again, they are asked again."""
    connection.execute(
        text("""
        DELETE FROM mail_addresses a WHERE a.project_id = :p AND NOT EXISTS (
            SELECT 1 FROM channels c WHERE c.project_id = :p AND c.kind = 'email' AND c.config -> 'to' ? a.address)
        """),
        {"p": project_id},
    )
