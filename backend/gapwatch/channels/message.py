"""What every kind of channel gets to send, one delivery in words; and what came of sending it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from gapwatch.watching.notification import SUMMARY_LENGTH, cut, lines

PREFIX = {"trigger": "", "acknowledge": "Acknowledged: ", "resolve": "Resolved: ", "test": ""}


@dataclass(frozen=True)
class Message:
    """One delivery. `id` and `dedup_key` stay the same over all tries; the key also over all actions."""

    id: str
    project: str
    action: str
    dedup_key: str
    content: Mapping[str, Any]
    created_at: datetime
    now: datetime

    @property
    def headline(self) -> str:
        return cut(PREFIX[self.action] + str(self.content["headline"]), SUMMARY_LENGTH)

    @property
    def severity(self) -> str:
        return str(self.content.get("severity", "info"))

    @property
    def link(self) -> str:
        return str(self.content.get("link", ""))

    def lines(self) -> list[str]:
        """Return the body as lines of plain text."""
        body = lines(self.content) if self.action == "trigger" else []
        for name, words in (("acknowledged_by", "Acknowledged by"), ("resolved_by", "Resolved by")):
            if name in self.content:
                body.append(f"{words} {self.content[name]}.")
        if self.content.get("comment"):
            body.append(f"“{self.content['comment']}”")
        return body


@dataclass(frozen=True)
class Attempt:
    """What came of sending once. `answer` is what the other side said."""

    outcome: Literal["sent", "retry", "refused"]
    status: int | None
    answer: str
    took_ms: int
    retry_after_s: float | None = None
