"""Slack's incoming webhooks: blocks, with everything that came from outside escaped."""

from __future__ import annotations

import json

from gapwatch.alerts.channels.message import Message
from gapwatch.alerts.egress import Egress
from gapwatch.store.alerting.outbox import Attempt
from gapwatch.watching.channels import SlackConfig
from gapwatch.watching.notification import cut

SIGNS = {"info": "ℹ️", "warning": "⚠️", "critical": "🛑"}
LONGEST_HEADER, LONGEST_SECTION = 150, 2900


def send(config: SlackConfig, message: Message, egress: Egress) -> Attempt:
    sign = "✅" if message.action == "resolve" else SIGNS[message.severity]
    blocks: list[dict[str, object]] = [
        {
            "type": "header",
            "text": {"type": "plain_text", "text": cut(f"{sign} {message.headline}", LONGEST_HEADER)},
        }
    ]
    text = "\n".join(escape(line) for line in message.lines())
    if text:
        # Plain text: what looks like a mention or a format in a name must stay what it is.
        blocks.append({"type": "section", "text": {"type": "plain_text", "text": cut(text, LONGEST_SECTION)}})
    if message.link:
        button = {"type": "button", "text": {"type": "plain_text", "text": "Open"}, "url": message.link}
        blocks.append({"type": "actions", "elements": [button]})
    body = json.dumps({"text": escape(f"{sign} {message.headline}"), "blocks": blocks}).encode()
    return egress.post(config.url, body, {"Content-Type": "application/json"})


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
