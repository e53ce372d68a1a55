"""What every channel gets to send: one delivery in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gapwatch.watching.notification import (
    SUMMARY_LENGTH,
    cut,
    lines,
)

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
        """The body in plain words."""
        told = lines(self.content) if self.action == "trigger" else []
        for name, words in (("acknowledged_by", "Acknowledged by"), ("resolved_by", "Resolved by")):
            if name in self.content:
                told.append(f"{words} {self.content[name]}.")
        if self.content.get("comment"):
            told.append(f"“{self.content['comment']}”")
        return told
