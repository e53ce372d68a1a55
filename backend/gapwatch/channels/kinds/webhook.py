"""A signed webhook: JSON, with a signature over the time and the body.

To check it: HMAC-SHA256 with the shared secret over `TIMESTAMP.BODY`, compared with the hex after `v1=`; refuse
times more than five minutes off. `Gapwatch-Delivery` is the same over all tries of one delivery.
"""

from __future__ import annotations

import hashlib
import hmac
import json

from gapwatch.channels.egress import Egress
from gapwatch.channels.kind import ChannelConfig, ChannelKind, Text, Url
from gapwatch.channels.message import Attempt, Message


class WebhookConfig(ChannelConfig):
    url: Url
    secret: Text | None = None


def send(config: WebhookConfig, message: Message, egress: Egress) -> Attempt:
    body = json.dumps(
        {
            "version": 1,
            "id": message.id,
            "action": message.action,
            "dedup_key": message.dedup_key,
            "project": message.project,
            "created_at": message.created_at.isoformat().replace("+00:00", "Z"),
            **message.content,
            "headline": message.headline,
            "text": "\n".join(message.lines()),
        }
    ).encode()
    timestamp = str(int(message.now.timestamp()))
    headers = {
        "Content-Type": "application/json",
        "Gapwatch-Delivery": message.id,
        "Gapwatch-Timestamp": timestamp,
    }
    if config.secret is not None:
        headers["Gapwatch-Signature"] = f"v1={signature(config.secret, timestamp, body)}"
    return egress.post(config.url, body, headers)


def signature(secret: str, timestamp: str, body: bytes) -> str:
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


KIND = ChannelKind(
    label="a signed webhook of your own",
    config=WebhookConfig,
    send=send,
    secrets=frozenset({"secret"}),
    hints={"url": "https://…", "secret": "signs every message; optional"},
    remarks=(
        "JSON; `Gapwatch-Signature: v1=` HMAC-SHA256 over `Gapwatch-Timestamp` + `.` + body; "
        "`Gapwatch-Delivery` is the same over all tries. Refuse timestamps more than five minutes off."
    ),
)
