"""ntfy, the public server or one of your own: one JSON message to a topic.

A topic of the public server is a password: whoever knows it reads along. So it is secret here.
"""

from __future__ import annotations

import base64
import json
from typing import Annotated

from pydantic import StringConstraints

from gapwatch.channels.egress import Egress
from gapwatch.channels.kind import ChannelConfig, ChannelKind, Text, Url
from gapwatch.channels.message import Attempt, Message
from gapwatch.watching.notification import cut

LONGEST_TITLE = 240
# 4096 bytes; beyond them ntfy would make a file of it.
LONGEST_TEXT_BYTES = 4000
PRIORITIES = {"info": 3, "warning": 4, "critical": 5}
TAGS = {"info": "information_source", "warning": "warning", "critical": "octagonal_sign"}

Topic = Annotated[str, StringConstraints(pattern=r"^[-_A-Za-z0-9]{1,64}$")]


class NtfyConfig(ChannelConfig):
    topic: Topic
    url: Url = "https://ntfy.sh"
    username: Text | None = None
    password: Text | None = None
    token: Text | None = None


def send(config: NtfyConfig, message: Message, egress: Egress) -> Attempt:
    is_over = message.action == "resolve"
    body: dict[str, object] = {
        "topic": config.topic,
        "title": cut(message.headline, LONGEST_TITLE),
        "message": _within("\n".join(message.lines())) or message.headline,
        "priority": 3 if is_over or message.action == "acknowledge" else PRIORITIES[message.severity],
        "tags": ["white_check_mark" if is_over else TAGS[message.severity]],
    }
    if message.link:
        body["click"] = message.link
    headers = {"Content-Type": "application/json"}
    if config.token is not None:
        headers["Authorization"] = f"Bearer {config.token}"
    elif config.username is not None:
        pair = f"{config.username}:{config.password or ''}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    return egress.post(f"{config.url.rstrip('/')}/", json.dumps(body).encode(), headers)


def _within(text: str) -> str:
    encoded = text.encode()
    if len(encoded) <= LONGEST_TEXT_BYTES:
        return text
    return encoded[: LONGEST_TEXT_BYTES - 3].decode("utf-8", "ignore") + "…"


KIND = ChannelKind(
    label="ntfy",
    config=NtfyConfig,
    send=send,
    secrets=frozenset({"topic", "password", "token"}),
    hints={"topic": "the topic's name", "url": "https://…", "token": "tk_…; optional"},
    remarks="a topic of ntfy.sh or of a server of your own; a token, or a name and password, if it asks for them",
)
