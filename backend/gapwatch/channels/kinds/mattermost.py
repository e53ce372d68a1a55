"""Mattermost's incoming webhooks: one attachment, in which nothing mentions anybody and nothing is formatted."""

from __future__ import annotations

import json
import re

from gapwatch.channels.egress import Egress
from gapwatch.channels.kind import ChannelConfig, ChannelKind, Url
from gapwatch.channels.message import Attempt, Message
from gapwatch.watching.notification import cut

LONGEST_TEXT = 3500
COLOURS = {"info": "#3b82f6", "warning": "#f59e0b", "critical": "#dc2626"}
RESOLVED = "#16a34a"
_MARKS = re.compile(r"([\\*_~`|>\[\]()#<:!])")
# A mention has no escape; with an invisible letter inside it is none.
_NO_MENTION = "@\u200b"


class MattermostConfig(ChannelConfig):
    url: Url


def send(config: MattermostConfig, message: Message, egress: Egress) -> Attempt:
    attachment: dict[str, object] = {
        "fallback": plain(message.headline),
        "color": RESOLVED if message.action == "resolve" else COLOURS[message.severity],
        "title": message.headline.replace("@", _NO_MENTION),
        "text": cut(plain("\n".join(message.lines())), LONGEST_TEXT),
    }
    if message.link:
        attachment["title_link"] = message.link
    body = json.dumps({"username": "Gapwatch", "attachments": [attachment]}).encode()
    return egress.post(config.url, body, {"Content-Type": "application/json"})


def plain(text: str) -> str:
    """Text as it is, where Mattermost would see a format, a link or a mention."""
    return _MARKS.sub(r"\\\1", text).replace("@", _NO_MENTION)


KIND = ChannelKind(
    label="Mattermost, an incoming webhook",
    config=MattermostConfig,
    send=send,
    # Whoever knows the address can write there.
    secrets=frozenset({"url"}),
    hints={"url": "https://mattermost.example.com/hooks/…"},
    remarks="incoming webhook; everything escaped, no mentions",
)
