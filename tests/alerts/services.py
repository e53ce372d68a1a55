"""What other services accept and answer, after their documents: each takes a request and returns status and body."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs


def discord(got: Any) -> tuple[int, bytes]:
    body = got.json
    embeds = body.get("embeds", [])
    if not body.get("content") and not embeds:
        return 400, b'{"message": "Cannot send an empty message", "code": 50006}'
    too_long = any(len(e.get("title", "")) > 256 or len(e.get("description", "")) > 4096 for e in embeds)
    if too_long or len(body.get("content", "")) > 2000:
        return 400, b'{"embeds": ["Must be shorter"]}'
    return 204, b""


def teams(got: Any) -> tuple[int, bytes]:
    body = got.json
    cards = [a for a in body["attachments"] if a["contentType"] == "application/vnd.microsoft.card.adaptive"]
    if body["type"] != "message" or not cards or len(got.body) > 28 * 1024:
        return 400, b'{"error": {"code": "InvalidRequest"}}'
    return 202, b""


def telegram(got: Any) -> tuple[int, bytes]:
    body = got.json
    if not body.get("chat_id") or not 0 < len(body.get("text", "")) <= 4096:
        return 400, b'{"ok": false, "error_code": 400, "description": "Bad Request: message text is empty"}'
    return 200, json.dumps({"ok": True, "result": {"message_id": 7, "text": body["text"]}}).encode()


def ntfy(got: Any) -> tuple[int, bytes]:
    body = got.json
    if not body.get("topic") or len(body["message"].encode()) > 4096 or body["priority"] not in range(1, 6):
        return 400, b'{"code":40024,"http":400,"error":"invalid request: JSON"}'
    return 200, json.dumps({"id": "hwQ2YpKdmg", "event": "message", "topic": body["topic"]}).encode()


def pushover(got: Any) -> tuple[int, bytes]:
    fields = {name: values[0] for name, values in parse_qs(got.body.decode()).items()}
    if len(fields.get("token", "")) != 30 or len(fields.get("user", "")) != 30:
        return 400, b'{"token":"invalid","errors":["application token is invalid"],"status":0}'
    if not 0 < len(fields["message"]) <= 1024 or len(fields["title"]) > 250:
        return 400, b'{"message":"too long","errors":["message is too long"],"status":0}'
    return 200, b'{"status":1,"request":"647d2300-702c-4b38-8b2f-d56326ae460b"}'


class Opsgenie:
    """Alerts by alias: created, acknowledged, closed; what is closed and comes again is a new one."""

    def __init__(self) -> None:
        self.alerts: dict[str, str] = {}

    def take(self, got: Any) -> tuple[int, bytes]:
        if not got.headers.get("Authorization", "").startswith("GenieKey "):
            return 401, b'{"message":"Key format is not valid!"}'
        path, _, query = got.path.removeprefix("/v2/alerts").partition("?")
        if not path:
            body = got.json
            if not 0 < len(body["message"]) <= 130 or len(body["alias"]) > 512:
                return 422, b'{"message":"Request body is not processable."}'
            if body["priority"] not in {"P1", "P2", "P3", "P4", "P5"}:
                return 422, b'{"message":"Request body is not processable."}'
            self.alerts[body["alias"]] = "open"
        else:
            _, alias, verb = path.split("/")
            if query != "identifierType=alias":
                return 404, b'{"message":"Alert does not exist"}'
            self.alerts[alias.replace("%3A", ":")] = {"acknowledge": "acknowledged", "close": "closed"}[verb]
        return 202, b'{"result":"Request will be processed","took":0.302,"requestId":"43a29c5c"}'


def mattermost(got: Any) -> tuple[int, bytes]:
    body = got.json
    if not body.get("text") and not body.get("attachments"):
        return 400, b'{"id":"web.incoming_webhook.text.app_error","message":"No text specified."}'
    return 200, b"ok"


BY_PATH = {
    "/api/webhooks/": discord,
    "/workflows/": teams,
    "/bot": telegram,
    "/1/messages.json": pushover,
    "/hooks/": mattermost,
}
