"""Counts of what became of a spool directory's episodes, over all processes that used it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

FILE = "state.json"
COUNTS = ("accepted", "duplicates", "refused", "dropped_sim", "dropped_real", "damaged")


class State:
    """Saved by the process that sends. Losing it loses counts, never episodes."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self.forget_after_fork()

    def forget_after_fork(self) -> None:
        """In a child: unsaved counts are the parent's to save."""
        self._lock = threading.Lock()
        self._unsaved: Counter[str] = Counter()
        self._facts: dict[str, Any] = {}
        self._changed = False

    def count(self, **counts: int) -> None:
        with self._lock:
            self._unsaved.update(counts)
            self._changed = True

    def note(self, **facts: Any) -> None:
        """Set the last error, the clock's skew and the like; None clears one."""
        with self._lock:
            self._facts.update(facts)
            self._changed = True

    def read(self) -> dict[str, Any]:
        """The saved state, plus what this process has counted since."""
        with self._lock:
            return self._merged()

    def save(self) -> None:
        """Only the process that sends may call this; others would overwrite its counts."""
        with self._lock:
            if not self._changed:
                return
            content = self._merged()
            fresh = self._path.with_suffix(".new-state")
            with contextlib.suppress(OSError):
                fresh.write_text(json.dumps(content))
                fresh.replace(self._path)
                self._unsaved.clear()
                self._facts.clear()
                self._changed = False

    def _merged(self) -> dict[str, Any]:
        saved: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            saved = json.loads(self._path.read_text())
        counts = {name: int(saved.get(name, 0)) + self._unsaved[name] for name in COUNTS}
        facts = {name: value for name, value in saved.items() if name not in COUNTS} | self._facts
        return counts | {name: value for name, value in facts.items() if value is not None}
