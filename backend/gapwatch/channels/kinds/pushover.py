"""Pushover's message API: a form with the application's token and the key of a user or group."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from pydantic import StringConstraints

from gapwatch.channels.egress import Egress
from gapwatch.channels.kind import ChannelConfig, ChannelKind, Url
from gapwatch.channels.message import Attempt, Message
from gapwatch.watching.notification import cut

LONGEST_TITLE, LONGEST_TEXT, LONGEST_LINK = 250, 1000, 512
# High passes quiet hours. Their emergency repeats until somebody presses a button there, also after it is over.
PRIORITIES = {"info": 0, "warning": 1, "critical": 1}

Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]{30}$")]


class PushoverConfig(ChannelConfig):
    token: Key
    user: Key
    url: Url = "https://api.pushover.net/1/messages.json"


def send(config: PushoverConfig, message: Message, egress: Egress) -> Attempt:
    fields = {
        "token": config.token,
        "user": config.user,
        "title": cut(message.headline, LONGEST_TITLE),
        "message": cut("\n".join(message.lines()), LONGEST_TEXT) or cut(message.headline, LONGEST_TITLE),
        "priority": PRIORITIES[message.severity] if message.action in {"trigger", "test", "rollout"} else 0,
        "timestamp": int(message.created_at.timestamp()),
    }
    if message.link and len(message.link) <= LONGEST_LINK:
        fields |= {"url": message.link, "url_title": "Open in Gapwatch"}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return egress.post(config.url, urlencode(fields).encode(), headers)


KIND = ChannelKind(
    label="Pushover",
    config=PushoverConfig,
    send=send,
    secrets=frozenset({"token", "user"}),
    hints={"token": "the application's token", "user": "the key of a user or group", "url": "https://…"},
    remarks="message API; `warning` and `critical` with high priority",
)
