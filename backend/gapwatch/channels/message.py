"""What every kind of channel gets to send, one delivery in words; and what came of sending it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from gapwatch.watching.notification import SUMMARY_LENGTH, cut, lines

PREFIX = {
    "trigger": "",
    "acknowledge": "Acknowledged: ",
    "resolve": "Resolved: ",
    "test": "",
    "rollout": "",
    "digest": "",
}


@dataclass(frozen=True)
class ToldReason:
    """One kind of reason that a channel was told of, or may have been: in which notification, and since when it is
    over.

    What an earlier release sent has no kind.
    """

    number: int
    kind: str
    severity: str
    since: str
    over_at: datetime | None
    was_tried: bool
    content: Mapping[str, Any]


@dataclass(frozen=True)
class Message:
    """One delivery. `id` and `dedup_key` stay the same over all tries; the key also over all actions.

    `told` is what this channel was told of the incident up to this delivery, oldest first.
    """

    id: str
    project: str
    action: str
    dedup_key: str
    content: Mapping[str, Any]
    created_at: datetime
    now: datetime
    told: Sequence[ToldReason] = ()

    @property
    def number(self) -> int:
        """Which notification of its incident this is, counted from one."""
        return int(self.content.get("number", 1))

    def key_of(self, number: int) -> str:
        """The key of one notification of an incident; the first has that of the incident."""
        return self.dedup_key[:240] + (f"/{number}" if number > 1 else "")

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
        if self.action in {"rollout", "digest"}:
            body = [str(line) for line in self.content.get("lines", ())]
        for name, words in (("acknowledged_by", "Acknowledged by"), ("resolved_by", "Resolved by")):
            if name in self.content:
                body.append(f"{words} {self.content[name]}.")
        if self.content.get("comment"):
            body.append(f"“{self.content['comment']}”")
        return body


@dataclass(frozen=True)
class Attempt:
    """What came of sending once. `answer` is what the other side said; `unready` is not its fault but ours."""

    outcome: Literal["sent", "retry", "refused", "unready"]
    status: int | None
    answer: str
    took_ms: int
    retry_after_s: float | None = None


def told_reasons(content: Mapping[str, Any], over: Mapping[str, datetime], *, was_tried: bool) -> list[ToldReason]:
    """The kinds of reasons that one notification tells of; `over` says when those that are over ended."""
    severity, opened_at = str(content.get("severity", "info")), str(content.get("opened_at", ""))
    tells = content.get("tells") or [{"kind": "", "severity": severity, "since": opened_at}]
    return [
        ToldReason(
            int(content.get("number", 1)),
            tell["kind"],
            tell["severity"],
            tell["since"],
            over.get(tell["kind"]),
            was_tried,
            content,
        )
        for tell in tells
    ]
