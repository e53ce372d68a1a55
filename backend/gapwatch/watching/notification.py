"""What a notification says: a plain dictionary made from facts, whose first words fit a locked phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gapwatch.watching.changes import AffectedRobots, slice_words
from gapwatch.watching.kinds import RULE_KINDS
from gapwatch.watching.notify_policy import rank
from gapwatch.watching.phrases import AlertReason, category_name, clock, series_phrase

HEADLINE_LENGTH = 100
SUMMARY_LENGTH = 1024


@dataclass(frozen=True)
class IncidentFacts:
    """Everything known when a notification is written."""

    deployment: str
    policy: str
    version: str
    task: str
    site: str | None
    stage: str | None
    link: str
    reasons: Sequence[AlertReason]
    category: Mapping[str, Any] | None = None
    slices: Sequence[Mapping[str, Any]] = ()
    changes: Sequence[Mapping[str, Any]] = ()
    robots: AffectedRobots = field(default_factory=lambda: AffectedRobots((), ()))
    runbooks: Sequence[str] = ()


def build(facts: IncidentFacts) -> dict[str, Any]:
    """The content of a notification. Headline first: what fell, from what to what, since when."""
    reasons = sorted(facts.reasons, key=lambda r: (-rank(r.severity), _order(r), r.opened_at, r.series))
    leading = reasons[0]
    return {
        "headline": cut(f"{facts.deployment}: {phrase(leading)}", HEADLINE_LENGTH),
        "severity": leading.severity,
        "deployment": facts.deployment,
        "policy": {"name": facts.policy, "version": facts.version},
        "task": facts.task,
        "site": facts.site,
        "stage": facts.stage,
        "since": _since(leading),
        "reasons": [
            {
                "rule": reason.rule,
                "kind": reason.kind,
                "severity": reason.severity,
                "series": reason.series,
                "sentence": sentence(reason),
                "evidence": dict(reason.evidence),
                "regressed": reason.regressed,
                "escalating": reason.escalating,
            }
            for reason in reasons
        ],
        "category": None if facts.category is None else dict(facts.category),
        "worst_slices": [dict(worst) for worst in facts.slices],
        "changes": [dict(change) for change in facts.changes],
        "robots": {
            "affected": list(facts.robots.affected),
            "unaffected": list(facts.robots.unaffected),
            "verdict": facts.robots.verdict,
        },
        "runbooks": list(facts.runbooks),
        "link": facts.link,
    }


def test_content(channel: str) -> dict[str, Any]:
    """What a channel is tried with."""
    return {
        "headline": f"Test from Gapwatch to the channel {channel}",
        "severity": "info",
        "reasons": [],
        "deployment": "test",
        "link": "",
    }


def lines(content: Mapping[str, Any]) -> list[str]:
    """The notification as lines of plain text, for mail, chat and anything without fields of its own."""
    paragraphs = [reason["sentence"] for reason in content["reasons"]]
    category = content.get("category")
    if category:
        points = f"{100 * category['contribution']:.0f} points"
        paragraphs.append(f"Leading gap category: {category_name(category['category'])} ({points}).")
    if content.get("worst_slices"):
        paragraphs.append("Worst: " + "; ".join(slice_words(content["worst_slices"])) + ".")
    for change in content.get("changes", ()):
        paragraphs.append(f"Before it: {change['title']} ({change['kind']}, {clock(change['at'])}).")
    affected = content.get("robots", {}).get("affected")
    if affected:
        spared = content["robots"]["unaffected"]
        paragraphs.append(
            f"Robots affected: {_listed(affected)}" + (f"; not: {_listed(spared)}." if spared else ".")
        )
    paragraphs += [f"Runbook: {address}" for address in content.get("runbooks", ())]
    return paragraphs


def phrase(reason: AlertReason) -> str:
    """What happened in a few words, the numbers first."""
    kind = RULE_KINDS.get(reason.kind)
    return series_phrase(reason) if kind is None else kind.phrase(reason)


def sentence(reason: AlertReason) -> str:
    """The whole of one reason: numbers, interval, how sure, and which rule says so."""
    evidence = reason.evidence
    words = phrase(reason)
    drop = evidence.get("drop")
    if drop and drop.get("value") is not None:
        low, high = drop["interval"]
        words += f"; drop {100 * drop['value']:.0f} points [{100 * low:.0f}, {100 * high:.0f}]"
    interval = (evidence.get("since") or evidence).get("interval")
    if interval and not drop:
        words += f" [{100 * interval[0]:.0f}, {100 * interval[1]:.0f}]"
    promise = ""
    if evidence.get("arl"):
        promise = f", at most one false alarm in {evidence['arl']:,.0f} episodes"
    flags = "".join(f", {flag}" for flag in ("regressed", "escalating") if getattr(reason, flag))
    return f"{words} ({reason.rule}{promise}{flags})."


def cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _since(reason: AlertReason) -> str | None:
    start = reason.evidence.get("change_point", {}).get("at") or reason.evidence.get("heard_at")
    return None if start is None else str(start)


def _order(reason: AlertReason) -> int:
    """Of equally severe reasons the one that tells most leads; one of an unknown kind comes last."""
    kind = RULE_KINDS.get(reason.kind)
    return max(known.order for known in RULE_KINDS.values()) + 1 if kind is None else kind.order


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
