"""Telegram's bot API: one message of plain text to one chat."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated

from pydantic import StringConstraints

from gapwatch.channels.egress import LONGEST_RETRY_AFTER_S, Egress
from gapwatch.channels.kind import ChannelConfig, ChannelKind, Url
from gapwatch.channels.message import Attempt, Message
from gapwatch.watching.notification import cut

# They count 4096 in UTF-16; most of what is written here counts as one.
LONGEST_TEXT = 3500
TOO_MANY = 429

# Nothing in it can lead to another path.
Token = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,20}:[A-Za-z0-9_-]{10,100}$")]
ChatId = Annotated[str, StringConstraints(pattern=r"^(-?[0-9]{1,20}|@[A-Za-z0-9_]{5,32})$")]


class TelegramConfig(ChannelConfig):
    token: Token
    chat_id: ChatId
    url: Url = "https://api.telegram.org"


def send(config: TelegramConfig, message: Message, egress: Egress) -> Attempt:
    text = "\n".join([message.headline, "", cut("\n".join(message.lines()), LONGEST_TEXT), "", message.link])
    body = {"chat_id": config.chat_id, "text": text.strip(), "link_preview_options": {"is_disabled": True}}
    url = f"{config.url.rstrip('/')}/bot{config.token}/sendMessage"
    attempt = egress.post(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return _with_their_pause(attempt)


def _with_their_pause(attempt: Attempt) -> Attempt:
    """Telegram says in the body how long to wait, not in a header."""
    if attempt.status != TOO_MANY:
        return attempt
    try:
        pause_s = float(json.loads(attempt.answer)["parameters"]["retry_after"])
    except (ValueError, KeyError, TypeError):
        return attempt
    return replace(attempt, retry_after_s=min(LONGEST_RETRY_AFTER_S, max(0.0, pause_s)))


KIND = ChannelKind(
    label="Telegram, a bot",
    config=TelegramConfig,
    send=send,
    secrets=frozenset({"token"}),
    freely_changed=frozenset({"chat_id"}),
    hints={"token": "123456:ABC…, from @BotFather", "chat_id": "-1001234567890 or @channel", "url": "https://…"},
    remarks="bot API, `sendMessage` to one chat; plain text",
)
