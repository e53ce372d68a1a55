"""The line for a shell that sends a first episode."""

from __future__ import annotations

EPISODE = """{
  "id": "first-1", "domain": "real", "policy": {"name": "bin-pick", "version": "1.0.0"}, "task": "pick-mug",
  "deployment": "berlin-line-3", "started_at": "2026-11-02T09:14:03Z", "outcome": "success"}"""


def sending_command(public_url: str, key: str) -> str:
    headers = f'-H "Authorization: Bearer {key}" -H "Content-Type: application/json"'
    return f"curl {public_url}/api/v1/episodes {headers} -d '{EPISODE}'"
