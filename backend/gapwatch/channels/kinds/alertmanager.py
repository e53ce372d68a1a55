"""Prometheus Alertmanager, API v2, as Prometheus itself uses it: what is open is sent every few minutes with an
end that moves ahead. An Alertmanager that was restarted has it again, and one that hears no more forgets it.

An alert there is its labels. Each kind of reason of an incident is one, under the severity at which it was told,
with the labels of that time; what ends is exactly what was sent.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from gapwatch.channels.egress import Egress
from gapwatch.channels.kind import ChannelConfig, ChannelKind, Text, Url
from gapwatch.channels.message import Attempt, Message, ToldReason, told_reasons

RESEND_EVERY = timedelta(minutes=3)
# As Prometheus does: three rounds may be lost before an alert ends by itself.
OPEN_FOR = 4 * RESEND_EVERY
# How long what is over is sent along, in case its end was missed.
ENDED_FOR = timedelta(minutes=15)
TEST_FOR = timedelta(minutes=5)
# What is of no incident is sent once, and is not kept up.
LINE_FOR = timedelta(hours=24)
MOST_ALERTS_A_POST = 500


class AlertmanagerConfig(ChannelConfig):
    url: Url
    username: Text | None = None
    password: Text | None = None
    bearer: Text | None = None


def send(config: AlertmanagerConfig, message: Message, egress: Egress) -> Attempt:
    if message.action == "acknowledge":
        return Attempt("sent", None, "Alertmanager knows no acknowledgement; nothing was sent.", 0)
    alerts = alerts_of(message)
    if not alerts:
        return Attempt("sent", None, "Nothing of this incident stands there; nothing was sent.", 0)
    return _post(config, alerts, egress)


def resend(config: AlertmanagerConfig, messages: Sequence[Message], egress: Egress) -> Attempt:
    """Tell again of all that is open there, and of what has just ended."""
    alerts = [alert for message in messages for alert in alerts_of(message)]
    attempt = Attempt("sent", None, "Nothing is open there; nothing was sent.", 0)
    for start in range(0, len(alerts), MOST_ALERTS_A_POST):
        attempt = _post(config, alerts[start : start + MOST_ALERTS_A_POST], egress)
        if attempt.outcome != "sent":
            break
    return attempt


def alerts_of(message: Message) -> list[dict[str, Any]]:
    """The alerts that an incident is there: open ones with a moving end, and those that have just ended."""
    now = message.now
    if message.action in {"test", "rollout"}:
        labels = {
            "alertname": "GapwatchTest" if message.action == "test" else "GapwatchRollout",
            "project": message.project,
            # Another test is another alert: Alertmanager tells nobody of the same one again.
            "incident": f"{message.dedup_key}/{message.id}",
            # The way that most alerts go; what is merely info, many routes drop.
            "severity": "warning",
        }
        text = message.lines()
        return [_alert(labels, message.content, message.headline, text, message.created_at, now + TEST_FOR)]
    if "incident" not in message.content and not message.told:
        [line] = told_reasons(message.content, {}, was_tried=False)
        return [_told_alert(message, line, now + LINE_FOR if message.action == "trigger" else now)]
    stands = [told for told in message.told if told.was_tried or told.number == message.number]
    standing = {told.kind: told for told in stands if told.over_at is None}
    open_labels = [_labels(message, told) for told in standing.values()]
    alerts = []
    if message.action == "trigger":
        alerts = [_told_alert(message, told, now + OPEN_FOR) for told in standing.values()]
    else:
        open_labels = []
    ended = [told for told in message.told if told.was_tried and _labels(message, told) not in open_labels]
    sent: list[Mapping[str, str]] = []
    for told in ended:
        labels = _labels(message, told)
        if labels not in sent and (told.over_at is None or told.over_at > now - ENDED_FOR):
            sent.append(labels)
            alerts.append(_told_alert(message, told, told.over_at or now))
    return alerts


def _labels(message: Message, told: ToldReason) -> dict[str, str]:
    content = told.content
    return {
        "alertname": "GapwatchIncident",
        "project": message.project,
        "incident": message.dedup_key,
        **({"reason": told.kind} if told.kind else {}),
        **{name: str(content[name]) for name in ("deployment", "site", "stage", "task") if content.get(name)},
        "severity": told.severity,
    }


def _told_alert(message: Message, told: ToldReason, ends_at: datetime) -> dict[str, Any]:
    of_then = Message(
        message.id, message.project, "trigger", message.dedup_key, told.content, message.created_at, message.now
    )
    starts_at = datetime.fromisoformat(told.since) if told.since else message.created_at
    labels = _labels(message, told)
    return _alert(labels, told.content, of_then.headline, of_then.lines(), starts_at, ends_at)


def _alert(
    labels: Mapping[str, str],
    content: Mapping[str, Any],
    summary: str,
    lines: Iterable[str],
    starts_at: datetime,
    ends_at: datetime,
) -> dict[str, Any]:
    return {
        "labels": labels,
        "annotations": {"summary": summary, "description": "\n".join(lines)},
        # An end before its beginning is refused there.
        "startsAt": min(starts_at, ends_at).astimezone(UTC).isoformat(),
        "endsAt": ends_at.astimezone(UTC).isoformat(),
        "generatorURL": str(content.get("link", "")),
    }


def _post(config: AlertmanagerConfig, alerts: Sequence[Mapping[str, Any]], egress: Egress) -> Attempt:
    headers = {"Content-Type": "application/json"}
    if config.bearer is not None:
        headers["Authorization"] = f"Bearer {config.bearer}"
    elif config.username is not None:
        pair = f"{config.username}:{config.password or ''}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    return egress.post(f"{config.url.rstrip('/')}/api/v2/alerts", json.dumps(alerts).encode(), headers)


KIND = ChannelKind(
    label="Prometheus Alertmanager",
    config=AlertmanagerConfig,
    send=send,
    resend=resend,
    secrets=frozenset({"password", "bearer"}),
    hints={"url": "https://…"},
    takes_digest=False,
    remarks=(
        "API v2; one alert a kind of reason (label `reason`), sent again every 3 minutes with an end 12 minutes "
        "ahead while it is open"
    ),
)
