"""A rule in words: what makes it fire, and for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gapwatch.pages.words import count, number, points


def limits(params: Mapping[str, Any]) -> str:
    """Those parameters that people ask about."""
    said = [params.get("series", ""), params.get("what", "")]
    if "above" in params:
        said.append(f"more than {points(params['above'])} points")
    if "after_minutes" in params:
        said.append(f"quiet for {number(params['after_minutes'])} min")
    if "arl" in params:
        said.append(f"at most one false alarm in {count(round(params['arl']))} episodes")
    return ", ".join(word for word in said if word)


def matched(match: Mapping[str, Sequence[str]]) -> str:
    """deployment a or b, site c; nothing for every deployment."""
    return ", ".join(f"{name} {' or '.join(words)}" for name, words in match.items() if words)
