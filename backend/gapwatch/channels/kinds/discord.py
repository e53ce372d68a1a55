"""Discord's webhooks: one embed, in which nothing mentions anybody and nothing is formatted."""

from __future__ import annotations

import json
import re

from gapwatch.channels.egress import Egress
from gapwatch.channels.kind import ChannelConfig, ChannelKind, Url
from gapwatch.channels.message import Attempt, Message
from gapwatch.watching.notification import cut

LONGEST_TITLE, LONGEST_TEXT = 256, 4000
COLOURS = {"info": 0x3B82F6, "warning": 0xF59E0B, "critical": 0xDC2626}
RESOLVED = 0x16A34A
_MARKS = re.compile(r"([\\*_~`|>\[\]()#<@])")


class DiscordConfig(ChannelConfig):
    url: Url


def send(config: DiscordConfig, message: Message, egress: Egress) -> Attempt:
    embed: dict[str, object] = {
        "title": cut(plain(message.headline), LONGEST_TITLE),
        "description": cut(plain("\n".join(message.lines())), LONGEST_TEXT),
        "color": RESOLVED if message.action == "resolve" else COLOURS[message.severity],
    }
    if message.link:
        embed["url"] = message.link
    body = json.dumps({"username": "Gapwatch", "embeds": [embed], "allowed_mentions": {"parse": []}}).encode()
    return egress.post(config.url, body, {"Content-Type": "application/json"})


def plain(text: str) -> str:
    """Text as it is, where Discord would see a format or a link."""
    return _MARKS.sub(r"\\\1", text)


KIND = ChannelKind(
    label="Discord, a webhook",
    config=DiscordConfig,
    send=send,
    # Whoever knows the address can write there.
    secrets=frozenset({"url"}),
    hints={"url": "https://discord.com/api/webhooks/…"},
    remarks="webhook of a channel; everything escaped, no mentions",
)
