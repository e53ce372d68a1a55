"""What a rule or a silence is for, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def matched(match: Mapping[str, Sequence[str]]) -> str:
    """deployment a or b, site c; nothing for every deployment."""
    return ", ".join(f"{name} {' or '.join(words)}" for name, words in match.items() if words)
