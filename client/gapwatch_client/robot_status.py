"""What a robot says of itself, kept in the spool until the service has heard it: the newest word of each robot."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

SUFFIX = ".status"
LONGEST_REASON = 500
# The longest that the service takes for a statement which had to wait.
LONGEST_AGE_S = 10 * 365 * 86400
# A loop that says the same again and again writes one file a second.
REPEAT_AFTER_S = 1.0


@dataclass(frozen=True)
class Statement:
    """One word of one robot, and the file it waits in; None while the disk is full."""

    path: Path | None
    subject: str
    content: bytes

    def body(self) -> dict[str, Any]:
        """What is sent. A rest that is over by now is told as work."""
        said = json.loads(self.content)
        said_at, until_at = said.pop("said_at"), said.pop("until_at", None)
        if until_at is not None and until_at <= time.time():
            said = {name: said[name] for name in ("robot", "deployment") if name in said} | {"status": "working"}
        age_s = min(max(0.0, time.time() - said_at), LONGEST_AGE_S)
        return {**said, "age_s": round(age_s, 3)}

    def is_whole(self) -> bool:
        """Whether it can be sent: a power cut may leave an empty file."""
        try:
            return "status" in self.body()
        except (ValueError, TypeError, KeyError, AttributeError):
            return False


class StatusBoard:
    """Statements wait in one file a robot; a newer one takes the place of the older."""

    def __init__(self, directory: Path, complain: Callable[[str, str], None]) -> None:
        self._directory = directory
        self.complain = complain
        self.forget_after_fork()

    def forget_after_fork(self) -> None:
        self._lock = threading.Lock()
        self._in_memory: dict[str, bytes] = {}
        self._lately: dict[str, tuple[float, tuple[Any, ...]]] = {}
        self.is_fresh = False

    def say(self, status: str, robot: Any, deployment: Any, until: Any, reason: Any) -> None:
        """Keep a statement. It is in the spool when this returns, or in memory if the disk is full."""
        if robot is None and deployment is None:
            self.complain("status", f"nobody knows which robot is {status}; say robot=")
            return
        name = "robot" if robot is not None else "deployment"
        who = str(robot if robot is not None else deployment)
        subject = f"{name} {who}"
        words = (status, until, reason)
        now = time.time()
        with self._lock:
            at, before = self._lately.get(subject, (0.0, ()))
            if before == words and 0 <= now - at < REPEAT_AFTER_S:
                return
            self._lately[subject] = (now, words)
            said: dict[str, Any] = {name: who, "status": status, "said_at": now}
            until_at = self._moment(until)
            if until_at is not None:
                said["until"] = datetime.fromtimestamp(until_at, timezone.utc).isoformat()
                said["until_at"] = until_at
            if reason is not None and str(reason).strip():
                said["reason"] = " ".join(str(reason).split())[:LONGEST_REASON]
            content = json.dumps(said).encode()
            try:
                self._write(self._path(subject), content)
                self._in_memory.pop(subject, None)
            except OSError:
                self._in_memory[subject] = content
            self.is_fresh = True

    def waiting(self, *, of_all_processes: bool = True) -> list[Statement]:
        """Statements of the processes that use the directory, and those of this one that could not be written."""
        self.is_fresh = False
        found = []
        for path in self._files() if of_all_processes else ():
            with contextlib.suppress(OSError):
                statement = Statement(path, "", path.read_bytes())
                if statement.is_whole():
                    found.append(statement)
                else:
                    path.unlink()
        with self._lock:
            return found + [Statement(None, subject, content) for subject, content in self._in_memory.items()]

    def settle(self, statement: Statement) -> None:
        """The service has heard it. A newer one that was said meanwhile stays."""
        with self._lock:
            if statement.path is None:
                if self._in_memory.get(statement.subject) == statement.content:
                    del self._in_memory[statement.subject]
                return
            with contextlib.suppress(OSError):
                if statement.path.read_bytes() == statement.content:
                    statement.path.unlink()

    def __len__(self) -> int:
        return len(self._files()) + len(self._in_memory)

    def _moment(self, until: Any) -> float | None:
        """Seconds since 1970 of a time, a text in RFC 3339, or how long it lasts from now."""
        if until is None:
            return None
        try:
            if isinstance(until, timedelta):
                return time.time() + until.total_seconds()
            if isinstance(until, str):
                until = datetime.fromisoformat(until.strip().replace("Z", "+00:00"))
            # A time without a zone is one of this machine.
            moment: float = until.timestamp()
            datetime.fromtimestamp(moment, timezone.utc)
        except Exception as error:
            self.complain("status", f"until= was left out ({type(error).__name__}: {error})")
            return None
        return moment

    def _path(self, subject: str) -> Path:
        return self._directory / (hashlib.sha256(subject.encode("utf-8", "replace")).hexdigest()[:24] + SUFFIX)

    def _write(self, path: Path, content: bytes) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.new-status")
        try:
            fresh.write_bytes(content)
            fresh.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise

    def _files(self) -> list[Path]:
        try:
            with os.scandir(self._directory) as entries:
                return sorted(Path(entry.path) for entry in entries if entry.name.endswith(SUFFIX))
        except OSError:
            return []
