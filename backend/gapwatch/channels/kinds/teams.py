"""Microsoft Teams, by a workflow that posts what a webhook gets: one adaptive card of plain text.

Text runs, because a text block of a card would read names as Markdown.
"""

from __future__ import annotations

import json

from gapwatch.channels.egress import Egress
from gapwatch.channels.kind import ChannelConfig, ChannelKind, Url
from gapwatch.channels.message import Attempt, Message
from gapwatch.watching.notification import cut

# A message may have 28 KB.
LONGEST_TEXT, MOST_LINES = 6000, 60
COLOURS = {"info": "accent", "warning": "warning", "critical": "attention"}


class TeamsConfig(ChannelConfig):
    url: Url


def send(config: TeamsConfig, message: Message, egress: Egress) -> Attempt:
    colour = "good" if message.action == "resolve" else COLOURS[message.severity]
    title = {"type": "TextRun", "text": message.headline, "weight": "bolder", "size": "medium", "color": colour}
    blocks: list[dict[str, object]] = [{"type": "RichTextBlock", "inlines": [title]}]
    text = cut("\n".join(message.lines()), LONGEST_TEXT)
    blocks += [
        {"type": "RichTextBlock", "spacing": "small", "inlines": [{"type": "TextRun", "text": line}]}
        for line in text.split("\n")[:MOST_LINES]
        if line
    ]
    card: dict[str, object] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.2",
        "body": blocks,
    }
    if message.link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open", "url": message.link}]
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    body = json.dumps({"type": "message", "attachments": [attachment]}).encode()
    return egress.post(config.url, body, {"Content-Type": "application/json"})


KIND = ChannelKind(
    label="Microsoft Teams, a workflow",
    config=TeamsConfig,
    send=send,
    # The address carries its signature.
    secrets=frozenset({"url"}),
    hints={"url": "https://….logic.azure.com/workflows/…"},
    note="In Teams: Workflows, “Post to a channel when a webhook request is received”; its address goes here.",
    remarks="a workflow's webhook address; an adaptive card of plain text",
)
