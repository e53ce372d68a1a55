"""A fix, told to the service by whoever makes it: what it aims at, where, what it cost and should bring."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from gapwatch_client.transport import Transport

CREATED = 201


class FixRefused(ValueError):
    """The service did not take a fix; the message says which field and why."""


def tell_fix(transport: Transport, title: str, at: datetime | str | None, fields: dict[str, Any]) -> int:
    """Send a fix now and return the id of its event. Raises `FixRefused`, or `Unreachable` if nobody answers."""
    event: dict[str, Any] = {"kind": "mitigation", "title": title}
    if at is not None:
        event["at"] = at if isinstance(at, str) else at.astimezone().isoformat()
    deployment = fields.pop("deployment", None)
    if deployment is not None:
        event["deployment"] = deployment
    event["fix"] = {name: value for name, value in fields.items() if value is not None}
    answer = transport.send_event(json.dumps(event).encode())
    if answer.status != CREATED:
        faults = "; ".join(
            f"{fault.get('pointer', '')}: {fault.get('message', '')}" for fault in answer.body.get("errors", [])
        )
        raise FixRefused(faults or str(answer.body.get("detail", f"the service answered {answer.status}")))
    return int(answer.body["id"])
