"""The outside world, played by a local server: PagerDuty, Slack, Alertmanager, a webhook, a mail server and the
services of `services.py`.

Each keeps the documented semantics of its model, writes down everything it gets with the time, and has bad days: the
next answers can be told beforehand.
"""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from alerts import services

# How often a server looks whether it shall stop; every test waits for that.
STOPS_WITHIN_S = 0.01


@dataclass
class Got:
    """One request that came."""

    at: float
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class BadDay:
    """How the next request is treated instead of well."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"not today"
    wait_s: float = 0.0
    reset: bool = False
    # The request is taken as if all were well, but the answer is as above.
    takes_it: bool = False


class Receiver:
    """An HTTP server with the paths of all services. `got` is everything, `taken` what was accepted."""

    def __init__(self) -> None:
        self.got: list[Got] = []
        self.taken: list[Got] = []
        self.bad_days: list[BadDay] = []
        self.gate = threading.Event()
        self.gate.set()
        self.lock = threading.Lock()
        self.incidents: dict[str, dict[str, Any]] = {}
        self.alertmanager: dict[str, dict[str, Any]] = {}
        self.opsgenie = services.Opsgenie()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                got = Got(time.time(), self.path, dict(self.headers.items()), body)
                with receiver.lock:
                    receiver.got.append(got)
                    bad = receiver.bad_days.pop(0) if receiver.bad_days else None
                receiver.gate.wait(30)
                if bad is None or bad.takes_it:
                    status, answer = receiver.take(got)
                if bad is not None:
                    time.sleep(bad.wait_s)
                    if bad.reset:
                        self.close_connection = True
                        self.connection.close()
                        return
                    status, answer = bad.status or 500, bad.body
                self.send_response(status)
                for name, value in (bad.headers if bad else {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        # A client that goes away in the middle is part of the play.
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=self.server.serve_forever, args=(STOPS_WITHIN_S,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()

    def take(self, got: Got) -> tuple[int, bytes]:
        with self.lock:
            if got.path.startswith("/v2/enqueue"):
                status, answer = self._pagerduty(got)
            elif got.path.endswith("/api/v2/alerts"):
                status, answer = self._alertmanager(got)
            elif got.path.startswith("/services/"):
                status, answer = self._slack(got)
            elif got.path.startswith("/v2/alerts"):
                status, answer = self.opsgenie.take(got)
            elif got.path == "/":
                status, answer = services.ntfy(got)
            else:
                plays = (play for path, play in services.BY_PATH.items() if got.path.startswith(path))
                status, answer = next(plays, lambda _: (200, b"thank you"))(got)
            if status < 300:
                self.taken.append(got)
            return status, answer

    def _pagerduty(self, got: Got) -> tuple[int, bytes]:
        """Events v2: one dedup_key is one open alert; after a resolve a trigger opens a new incident."""
        event = got.json
        summary = event.get("payload", {}).get("summary", "")
        if event.get("event_action") not in {"trigger", "acknowledge", "resolve"} or len(summary) > 1024:
            return 400, b'{"status":"invalid event"}'
        if not event.get("routing_key") or len(event["dedup_key"]) > 255 or len(got.body) > 512_000:
            return 400, b'{"status":"invalid event"}'
        key = event["dedup_key"]
        known = self.incidents.setdefault(key, {"opened": 0, "state": "none", "triggers": 0})
        if event["event_action"] == "trigger":
            known["triggers"] += 1
            if known["state"] in {"none", "resolved"}:
                known["opened"] += 1
                known["state"] = "triggered"
        elif known["state"] in {"triggered", "acknowledged"}:
            known["state"] = "resolved" if event["event_action"] == "resolve" else "acknowledged"
        return 202, json.dumps({"status": "success", "message": "Event processed", "dedup_key": key}).encode()

    def _slack(self, got: Got) -> tuple[int, bytes]:
        message = got.json
        if not message.get("text") or len(message.get("blocks", [])) > 50:
            return 400, b"invalid_payload"
        for block in message.get("blocks", []):
            if block["type"] == "header" and len(block["text"]["text"]) > 150:
                return 400, b"invalid_blocks"
        return 200, b"ok"

    def _alertmanager(self, got: Got) -> tuple[int, bytes]:
        """Labels are the alert; it is firing until its end."""
        for alert in got.json:
            key = json.dumps(alert["labels"], sort_keys=True)
            starts, ends = (datetime.fromisoformat(alert[name]) for name in ("startsAt", "endsAt"))
            if ends < starts:
                return 400, b"start time must be before end time"
            self.alertmanager[key] = alert
        return 200, b""

    def alertmanager_firing(self) -> list[dict[str, str]]:
        now = datetime.now(UTC)
        return [a["labels"] for a in self.alertmanager.values() if datetime.fromisoformat(a["endsAt"]) > now]

    def webhooks(self, action: str | None = None, path: str = "/hook") -> list[dict[str, Any]]:
        found = [got.json for got in list(self.taken) if got.path == path]
        return [body for body in found if action in {None, body["action"]}]


class MailServer:
    """SMTP without encryption: takes mail, or answers MAIL FROM with the code it was told."""

    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.codes: list[int] = []
        server = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                def say(line: str) -> None:
                    self.wfile.write(f"{line}\r\n".encode())

                say("220 mail.example.com ESMTP")
                while line := self.rfile.readline():
                    word = line.decode().strip().upper()
                    if word.startswith(("EHLO", "HELO")):
                        say("250 mail.example.com")
                    elif word.startswith("MAIL"):
                        code = server.codes.pop(0) if server.codes else 250
                        say(f"{code} as you say")
                    elif word == "DATA":
                        say("354 go on")
                        data = b""
                        while (part := self.rfile.readline()) not in {b".\r\n", b""}:
                            data += part
                        server.mails.append(message_from_bytes(data))
                        say("250 queued as 17")
                    elif word == "QUIT":
                        say("221 bye")
                        return
                    else:
                        say("250 ok")

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(STOPS_WITHIN_S,), daemon=True).start()

    @property
    def port(self) -> int:
        return self.server.server_address[1]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
