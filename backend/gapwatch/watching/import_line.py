"""The one line about an import of history: what is wrong now, deployment by deployment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gapwatch.notation import count as written
from gapwatch.watching.notification import HEADLINE_LENGTH, cut, leading_reason, phrase
from gapwatch.watching.phrases import AlertReason, clock

MOST_NAMED = 20


@dataclass(frozen=True)
class WrongNow:
    """A deployment that is not as it should be at the end of an import; `from_start`: it never was."""

    deployment: str
    changed_at: datetime
    from_start: bool
    reasons: Sequence[AlertReason]


def line_severity(wrong: WrongNow) -> str:
    """How severe a deployment is in the line. What was so from the first day is worth knowing, and no page.

    Never critical: nobody has to get up for something that was read in from a file.
    """
    is_info = wrong.from_start or all(reason.severity == "info" for reason in wrong.reasons)
    return "info" if is_info else "warning"


def line_content(episodes: int, wrong: Sequence[WrongNow], link: str) -> dict[str, Any]:
    """The content of the line; what changed comes first, then what was so from the first day."""
    changed = [one for one in wrong if not one.from_start]
    standing = [one for one in wrong if one.from_start]
    named = ", ".join(one.deployment for one in [*changed, *standing])
    count, of = len(wrong), written(episodes)
    verb = "deployment is" if count == 1 else "deployments are"
    severities = [line_severity(one) for one in wrong]
    return {
        "headline": cut(f"Import of {of} episodes: {count} {verb} wrong now: {named}", HEADLINE_LENGTH),
        "severity": "warning" if "warning" in severities else "info",
        "import": {
            "episodes": episodes,
            "changed": [one.deployment for one in changed],
            "from_the_first_day": [one.deployment for one in standing],
        },
        "reasons": [_reason(one) for one in [*changed, *standing][:MOST_NAMED]],
        "link": link,
    }


def _reason(wrong: WrongNow) -> dict[str, Any]:
    leading = leading_reason(wrong.reasons)
    changed_at = wrong.changed_at.isoformat().replace("+00:00", "Z")
    since = "from the first day" if wrong.from_start else f"since {clock(changed_at)}"
    words = phrase(leading).partition(", since ")[0]
    return {
        "deployment": wrong.deployment,
        "rule": leading.rule,
        "kind": leading.kind,
        "severity": leading.severity,
        "series": leading.series,
        "changed_at": changed_at,
        "sentence": f"{wrong.deployment}: {words}, {since}.",
        "evidence": dict(leading.evidence),
    }
