"""Makes channels of kinds that exist out of stored Apprise channels, as far as their addresses allow.

Not a migration: the addresses are encrypted with the server's secret, which migrations do not have.
"""

from __future__ import annotations

import structlog

from gapwatch.access.sealing import Sealer
from gapwatch.channels.retired import Successor, successors_of
from gapwatch.store.alerting import alert_settings
from gapwatch.store.alerting.alert_settings import RetiredChannel, SecretFate
from gapwatch.store.core.database import Connection

log = structlog.get_logger()

ACTOR = "gapwatch"


def replace_apprise(connection: Connection, sealer: Sealer) -> int:
    """Replace what can be replaced; return how many channels came of it. May run again at any time.

    A channel all of whose addresses have a successor becomes the first one, with its id, and the others stand
    beside it. One with an address that has none keeps that, and says that it is no longer supported.
    """
    made = 0
    for channel in alert_settings.lock_channels_of_kind(connection, "apprise"):
        urls = [str(url) for url in (sealer.open(channel.sealed) or {}).get("urls", [])]
        found = {url: successors_of(url) for url in urls}
        wanted = [successor for successors in found.values() for successor in successors or []]
        if not wanted:
            continue
        rest = [url for url, successors in found.items() if successors is None]
        if rest:
            left = Successor("apprise", {}, {"urls": rest})
            _put(connection, sealer, channel, left, channel.id, channel.name)
            beside = wanted
        else:
            _put(connection, sealer, channel, wanted[0], channel.id, channel.name)
            beside = wanted[1:]
        for successor in beside:
            name = _free_name(connection, channel, successor.kind)
            made_id = _put(connection, sealer, channel, successor, None, name)
            alert_settings.add_to_rules(connection, channel.project_id, made_id, channel.id)
        made += len(wanted)
        log.info("Apprise channel replaced", channel_id=channel.id, kinds=[s.kind for s in wanted], left=len(rest))
    return made


def _put(
    connection: Connection,
    sealer: Sealer,
    channel: RetiredChannel,
    successor: Successor,
    channel_id: int | None,
    name: str,
) -> int:
    put_id = alert_settings.put_channel(
        connection,
        channel.project_id,
        channel_id=channel_id,
        name=name,
        kind=successor.kind,
        config=successor.shown,
        sealed=sealer.seal(successor.secrets),
        routing=channel.routing,
        enabled=True,
        actor=ACTOR,
        secrets=SecretFate(set=sorted(successor.secrets)),
    )
    assert put_id is not None  # noqa: S101 - its row is locked, or it is new
    return put_id


def _free_name(connection: Connection, channel: RetiredChannel, kind: str) -> str:
    number = 1
    while True:
        name = f"{channel.name[:100]} {kind}" + (f" {number}" if number > 1 else "")
        if alert_settings.channel_named(connection, channel.project_id, name) is None:
            return name
        number += 1
