"""What an import left out or had to assume, by field with counts: printed at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator


class ImportReport:
    def __init__(self) -> None:
        self._left_out: Counter[tuple[str, str]] = Counter()
        self._examples: dict[tuple[str, str], str] = {}
        self._assumed: dict[str, str] = {}
        self._skipped: Counter[str] = Counter()

    def left_out(self, field: str, reason: str, example: object = None) -> None:
        """Count a value that was not mapped."""
        self._left_out[field, reason] += 1
        if example is not None:
            self._examples.setdefault((field, reason), repr(example)[:60])

    def assumed(self, field: str, what: str) -> None:
        self._assumed.setdefault(field, what)

    def skipped(self, reason: str) -> None:
        """Count an episode that was not sent."""
        self._skipped[reason] += 1

    @property
    def episodes_skipped(self) -> int:
        return sum(self._skipped.values())

    def lines(self) -> Iterator[str]:
        for reason, count in self._skipped.most_common():
            yield f"{count} episodes not sent: {reason}"
        for (field, reason), count in sorted(self._left_out.items()):
            example = self._examples.get((field, reason))
            yield f"{field}: {reason} ({count} values{f', such as {example}' if example else ''})"
        for field, what in sorted(self._assumed.items()):
            yield f"{field}: {what}"
