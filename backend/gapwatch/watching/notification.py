"""What a page says: a plain dictionary made from facts, whose first words can be read on a locked phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gapwatch.taxonomy import BY_ID
from gapwatch.watching.changes import Affected, slice_words
from gapwatch.watching.notify_policy import rank

HEADLINE_LENGTH = 100
SUMMARY_LENGTH = 1024
PERCENT_SERIES = {"success", "interventions", "violations", "overrides"}


@dataclass(frozen=True)
class Reason:
    """One alert of an incident."""

    rule: str
    kind: str
    severity: str
    series: str
    evidence: Mapping[str, Any]
    opened_at: datetime
    regressed: bool = False
    escalating: bool = False


@dataclass(frozen=True)
class Facts:
    """Everything known when a page is written."""

    deployment: str
    policy: str
    version: str
    task: str
    site: str | None
    stage: str | None
    link: str
    reasons: Sequence[Reason]
    category: Mapping[str, Any] | None = None
    slices: Sequence[Mapping[str, Any]] = ()
    changes: Sequence[Mapping[str, Any]] = ()
    robots: Affected = field(default_factory=lambda: Affected((), ()))


def build(facts: Facts) -> dict[str, Any]:
    """The content of a page. Headline first: what fell, from what to what, since when."""
    reasons = sorted(facts.reasons, key=lambda r: (-rank(r.severity), _order(r.kind), r.opened_at, r.series))
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
        "worst_slices": [dict(one) for one in facts.slices],
        "changes": [dict(change) for change in facts.changes],
        "robots": {"affected": list(facts.robots.affected), "unaffected": list(facts.robots.unaffected)},
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
    """The page as lines of plain text, for mail, chat and anything without fields of its own."""
    found = [reason["sentence"] for reason in content["reasons"]]
    category = content.get("category")
    if category:
        points = f"{100 * category['contribution']:.0f} points"
        found.append(f"Leading gap category: {_category(category['category'])} ({points}).")
    if content.get("worst_slices"):
        found.append("Worst: " + "; ".join(slice_words(content["worst_slices"])) + ".")
    for change in content.get("changes", ()):
        found.append(f"Before it: {change['title']} ({change['kind']}, {clock(change['at'])}).")
    affected = content.get("robots", {}).get("affected")
    if affected:
        spared = content["robots"]["unaffected"]
        found.append(f"Robots affected: {_listed(affected)}" + (f"; not: {_listed(spared)}." if spared else "."))
    return found


def phrase(reason: Reason) -> str:
    """What happened in a few words, the numbers first."""
    evidence = reason.evidence
    since, reference = evidence.get("since") or {}, evidence.get("reference") or {}
    start = evidence.get("change_point", {}).get("at")
    when = f", since {clock(start)}" if start else ""
    name = reason.series.partition("@")[0]
    if reason.kind == "no_data":
        return f"{evidence.get('robot', 'no robot')} silent since {clock(evidence.get('heard_at'))}"
    if reason.kind == "category":
        costs = 100 * evidence.get("contribution", 0)
        return f"{_category(evidence.get('category'))} costs {costs:.0f} points of success"
    if evidence.get("statistic") == "single episode":
        return f"{since.get('value', 1):.0f} safety {name.partition(' ')[0]} in one episode{when}"
    if name in PERCENT_SERIES and since.get("value") is not None:
        of = "gate " if reason.kind == "stage_gate" else ""
        side = " in sim" if reference.get("side") == "sim" and not of else ""
        before = reference.get("value")
        from_ = "" if before is None else f"{of}{100 * before:.0f} %{side} → "
        return f"{name} {from_}{100 * since['value']:.0f} % (n {since.get('n')}){when}"
    direction = since.get("direction")
    moved = {"higher": "rose", "lower": "fell"}.get(str(direction), "changed shape")
    return f"{name.partition(':')[2] or name} {moved}{when}"


def sentence(reason: Reason) -> str:
    """The whole of one reason: numbers, interval, how sure, and which rule says so."""
    evidence = reason.evidence
    told = phrase(reason)
    drop = evidence.get("drop")
    if drop and drop.get("value") is not None:
        low, high = drop["interval"]
        told += f"; drop {100 * drop['value']:.0f} points [{100 * low:.0f}, {100 * high:.0f}]"
    interval = (evidence.get("since") or evidence).get("interval")
    if interval and not drop:
        told += f" [{100 * interval[0]:.0f}, {100 * interval[1]:.0f}]"
    promise = ""
    if evidence.get("arl"):
        promise = f", at most one false alarm in {evidence['arl']:,.0f} episodes"
    flags = "".join(f", {flag}" for flag in ("regressed", "escalating") if getattr(reason, flag))
    return f"{told} ({reason.rule}{promise}{flags})."


def clock(at: str | None) -> str:
    """Day and time as a person on call reads them: `16 Nov 09:14 UTC`."""
    if not at:
        return "an unknown time"
    moment = datetime.fromisoformat(at)
    return f"{moment:%d %b %H:%M} UTC"


def cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _since(reason: Reason) -> str | None:
    found = reason.evidence.get("change_point", {}).get("at") or reason.evidence.get("heard_at")
    return None if found is None else str(found)


def _category(name: Any) -> str:
    """As people say it: `contact dynamics`. A project's own categories keep their names."""
    return BY_ID[name].name.lower() if name in BY_ID else str(name)


def _order(kind: str) -> int:
    """Of equally severe reasons the one that tells most leads."""
    return ("safety", "drop", "drift", "stage_gate", "category", "no_data").index(kind)


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
