"""Prometheus Alertmanager, API v2. It keeps no alert by itself, so what is open is sent with an end a day ahead.

An alert there is its labels, and the severity is one of them: each message also ends the alert of the other
severities, so that one that became worse does not stand there twice.
"""

from __future__ import annotations

import base64
import json
from datetime import timedelta

from gapwatch.channels.egress import Egress
from gapwatch.channels.kind import ChannelConfig, ChannelKind, Text, Url
from gapwatch.channels.message import Attempt, Message
from gapwatch.watching.notify_policy import SEVERITIES

OPEN_FOR = timedelta(hours=24)


class AlertmanagerConfig(ChannelConfig):
    url: Url
    username: Text | None = None
    password: Text | None = None
    bearer: Text | None = None


def send(config: AlertmanagerConfig, message: Message, egress: Egress) -> Attempt:
    if message.action == "acknowledge":
        return Attempt("sent", None, "Alertmanager knows no acknowledgement; nothing was sent.", 0)
    headers = {"Content-Type": "application/json"}
    if config.bearer is not None:
        headers["Authorization"] = f"Bearer {config.bearer}"
    elif config.username is not None:
        pair = f"{config.username}:{config.password or ''}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    return egress.post(f"{config.url.rstrip('/')}/api/v2/alerts", body(message), headers)


def body(message: Message) -> bytes:
    content = message.content
    labels = {
        "alertname": "GapwatchTest" if message.action == "test" else "GapwatchIncident",
        "project": message.project,
        "incident": message.dedup_key,
        **{name: str(content[name]) for name in ("deployment", "site", "stage", "task") if content.get(name)},
    }
    annotations = {"summary": message.headline, "description": "\n".join(message.lines())}
    alerts = []
    for severity in SEVERITIES:
        is_open = message.action == "trigger" and severity == message.severity
        ends_at = message.now + OPEN_FOR if is_open else message.now
        alerts.append(
            {
                "labels": {**labels, "severity": severity},
                "annotations": annotations,
                "startsAt": content.get("opened_at") or message.created_at.isoformat(),
                "endsAt": ends_at.isoformat(),
                "generatorURL": message.link,
            }
        )
    return json.dumps(alerts).encode()


KIND = ChannelKind(
    label="Prometheus Alertmanager",
    config=AlertmanagerConfig,
    send=send,
    secrets=frozenset({"password", "bearer"}),
    hints={"url": "https://…"},
    remarks="API v2; open alerts are sent with an end a day ahead: set `repeat_minutes` below 1440",
)
