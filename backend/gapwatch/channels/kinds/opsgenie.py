"""Opsgenie's alert API: created, acknowledged and closed under one alias.

Like PagerDuty it tells nobody of more of an alert that is known, so every notification of an incident has an alias
of its own; acknowledging and closing go to all of them.
"""

from __future__ import annotations

import json
from urllib.parse import quote

from gapwatch.channels.egress import Egress
from gapwatch.channels.kind import ChannelConfig, ChannelKind, Line, Url
from gapwatch.channels.message import Attempt, Message
from gapwatch.watching.notification import cut

LONGEST_MESSAGE, LONGEST_DESCRIPTION = 130, 15_000
PRIORITIES = {"info": "P5", "warning": "P2", "critical": "P1"}
VERBS = {"acknowledge": "acknowledge", "resolve": "close"}
NO_SUCH_ALERT = 404


class OpsgenieConfig(ChannelConfig):
    api_key: Line
    url: Url = "https://api.opsgenie.com"


def send(config: OpsgenieConfig, message: Message, egress: Egress) -> Attempt:
    if message.action in {"trigger", "test", "rollout"}:
        attempt = _post(config, "", _alert(message), egress)
        if message.action != "trigger" and attempt.outcome == "sent":
            # A test, or news of a rollout, shall leave nothing open.
            _move(config, "resolve", message, message.number, egress)
        return attempt
    numbers = sorted({told.number for told in message.told}) or [message.number]
    for number in numbers:
        attempt = _move(config, message.action, message, number, egress)
        if attempt.outcome != "sent" and attempt.status != NO_SUCH_ALERT:
            # Tried again from the first: to say it twice changes nothing there.
            break
    return attempt


def alias(message: Message, number: int) -> str:
    return message.key_of(number).replace("/", ":")


def _alert(message: Message) -> dict[str, object]:
    content = message.content
    text = "\n".join([message.headline, "", *message.lines(), "", message.link])
    details = {name: str(content[name]) for name in ("deployment", "site", "stage", "task") if content.get(name)}
    return {
        "message": cut(message.headline, LONGEST_MESSAGE),
        "alias": alias(message, message.number),
        "description": cut(text, LONGEST_DESCRIPTION),
        "priority": PRIORITIES[message.severity],
        "source": "Gapwatch",
        "entity": cut(str(content.get("deployment", message.project)), 512),
        "details": {**details, "link": message.link},
    }


def _move(config: OpsgenieConfig, action: str, message: Message, number: int, egress: Egress) -> Attempt:
    path = f"/{quote(alias(message, number), safe='')}/{VERBS[action]}?identifierType=alias"
    note = " ".join(message.lines())
    return _post(config, path, {"source": "Gapwatch", "note": cut(note, LONGEST_DESCRIPTION)}, egress)


def _post(config: OpsgenieConfig, path: str, body: dict[str, object], egress: Egress) -> Attempt:
    headers = {"Content-Type": "application/json", "Authorization": f"GenieKey {config.api_key}"}
    return egress.post(f"{config.url.rstrip('/')}/v2/alerts{path}", json.dumps(body).encode(), headers)


KIND = ChannelKind(
    label="Opsgenie",
    config=OpsgenieConfig,
    send=send,
    secrets=frozenset({"api_key"}),
    hints={"api_key": "the key of an API integration", "url": "https://api.eu.opsgenie.com in the EU"},
    takes_digest=False,
    remarks="alert API v2, one alias a notification of an incident; our `warning` is P2, `critical` P1",
)
