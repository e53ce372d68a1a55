"""PagerDuty Events API v2: trigger, acknowledge and resolve under one dedup_key, through one routing key.

PagerDuty notifies nobody of further events of an alert that somebody acknowledged. So every notification of an
incident that has to reach people has a key of its own; acknowledging and resolving go to all of them.
"""

from __future__ import annotations

import json
from typing import Any

from gapwatch.channels.egress import Egress
from gapwatch.channels.kind import ChannelConfig, ChannelKind, Line, Url
from gapwatch.channels.message import Attempt, Message

LARGEST_EVENT = 500_000
JSON = {"Content-Type": "application/json"}
# What wakes a person must be of high urgency there: `error` and `critical` are.
SEVERITIES = {"info": "info", "warning": "error", "critical": "critical"}


class PagerDutyConfig(ChannelConfig):
    routing_key: Line
    url: Url = "https://events.pagerduty.com/v2/enqueue"


def send(config: PagerDutyConfig, message: Message, egress: Egress) -> Attempt:
    if message.action in {"trigger", "test", "rollout"}:
        attempt = _send_event(config, "trigger", message, message.number, egress)
        if message.action != "trigger" and attempt.outcome == "sent":
            # A test, or news of a rollout, shall leave nothing open.
            _send_event(config, "resolve", message, message.number, egress)
        return attempt
    numbers = sorted({told.number for told in message.told}) or [message.number]
    for number in numbers:
        attempt = _send_event(config, message.action, message, number, egress)
        if attempt.outcome != "sent":
            # Tried again from the first: to say it twice changes nothing there.
            break
    return attempt


def _send_event(config: PagerDutyConfig, action: str, message: Message, number: int, egress: Egress) -> Attempt:
    return egress.post(config.url, event(config.routing_key, action, message, number), JSON)


def event(routing_key: str, action: str, message: Message, number: int) -> bytes:
    body: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": action,
        "dedup_key": message.key_of(number),
    }
    if action == "trigger":
        content = message.content
        body |= {
            "payload": {
                "summary": message.headline,
                "source": str(content.get("deployment", message.project)),
                "severity": SEVERITIES[message.severity],
                "timestamp": message.created_at.isoformat(),
                "component": str(content.get("task", "")),
                "group": str(content.get("site") or ""),
                "class": str((content.get("reasons") or [{}])[0].get("kind", "test")),
                "custom_details": {"text": message.lines(), **content},
            },
            "client": "Gapwatch",
            "client_url": message.link,
            "links": [{"href": message.link, "text": "Open in Gapwatch"}] if message.link else [],
        }
    encoded = json.dumps(body).encode()
    if len(encoded) > LARGEST_EVENT:
        body["payload"]["custom_details"] = {"text": "Too long for PagerDuty; open the link."}
        encoded = json.dumps(body).encode()
    return encoded


KIND = ChannelKind(
    label="PagerDuty, Events v2",
    config=PagerDutyConfig,
    send=send,
    secrets=frozenset({"routing_key"}),
    hints={"routing_key": "the integration's key", "url": "https://…"},
    takes_digest=False,
    remarks=(
        "Events v2, one `dedup_key` a notification of an incident, since PagerDuty notifies nobody of more events "
        "of an acknowledged one; our `warning` is PagerDuty's `error`, so that it is of high urgency"
    ),
)
