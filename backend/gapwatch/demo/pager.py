"""The demo's own pager: a webhook on this machine that writes down what on-call would receive."""

from __future__ import annotations

import ipaddress
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

from gapwatch.settings import Settings

CHANNEL = "demo pager"
FILE = "pages.ndjson"
LARGEST_PAGE = 1024 * 1024


def allow_local_pager(settings: Settings) -> Settings:
    """Allow alerts to private addresses if only this machine can reach the service anyway."""
    return settings.model_copy(update={"allow_private_targets": True}) if is_local(settings) else settings


def is_local(settings: Settings) -> bool:
    try:
        return ipaddress.ip_address(settings.host).is_loopback
    except ValueError:
        return settings.host == "localhost"


def start_pager(folder: Path) -> str:
    """Listen in the background on a free port. Return the address."""
    folder.mkdir(parents=True, exist_ok=True)
    pages, writing = folder / FILE, threading.Lock()
    pages.touch()

    class Pager(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = min(int(self.headers.get("Content-Length") or 0), LARGEST_PAGE)
            page = self.rfile.read(size).replace(b"\n", b" ")
            with writing, pages.open("ab") as file:
                file.write(page + b"\n")
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """The service's own log already has the delivery."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pager)
    threading.Thread(target=server.serve_forever, name="demo pager", daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def put_channel(client: httpx.Client, address: str) -> None:
    """Make the pager a channel of the project; its port is new at every start."""
    body = {"name": CHANNEL, "kind": "webhook", "config": {"url": address}}
    known = client.get("/api/v1/channels").raise_for_status().json()["channels"]
    ids = [channel["id"] for channel in known if channel["name"] == CHANNEL]
    answer = (
        client.put(f"/api/v1/channels/{ids[0]}", json=body) if ids else client.post("/api/v1/channels", json=body)
    )
    answer.raise_for_status()
