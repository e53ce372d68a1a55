"""What a notification says: a plain dictionary made from facts, whose first words fit a locked phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gapwatch.notation import count
from gapwatch.watching.changes import AffectedRobots, slice_words
from gapwatch.watching.kinds import RULE_KINDS
from gapwatch.watching.notify_policy import KNOWN_BEFORE, rank
from gapwatch.watching.phrases import AlertReason, category_name, clock, series_phrase
from gapwatch.watching.reason_kinds import REASON_KINDS, ReasonKind, reason_kind
from gapwatch.watching.series import time_words

HEADLINE_LENGTH = 100
SUMMARY_LENGTH = 1024


@dataclass(frozen=True)
class IncidentFacts:
    """Everything known when a notification is written.

    `headlines` are what the table of `notify_policy` says for each kind of reason that is news; without any, all
    are. `known` are the kinds that people were told of before, and `acknowledged_by` took them on.
    """

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
    # Who stands out since the change, in the words of the deployment's page.
    odd_one: str | None = None
    # Whose contract differs from that of sim, and in which field.
    contract: str | None = None
    runbooks: Sequence[str] = ()
    headlines: Mapping[ReasonKind, str] = field(default_factory=dict)
    known: Sequence[ReasonKind] = ()
    acknowledged_by: str | None = None


def build(facts: IncidentFacts) -> dict[str, Any]:
    """The content of a notification. Headline first: what fell, from what to what, since when; and in it, and in
    the reasons, what is news first.
    """

    headlines = facts.headlines or {_kind_of(reason): "{what}" for reason in facts.reasons}

    def is_new(reason: AlertReason) -> bool:
        return _kind_of(reason) in headlines

    reasons = sorted(_ranked(facts.reasons), key=is_new, reverse=True)
    leading = reasons[0]
    leading_kind = _kind_of(leading)
    known = [KNOWN_BEFORE[kind] for kind in REASON_KINDS if kind in facts.known and kind != leading_kind]
    headline = headlines[leading_kind].format(
        what=phrase(leading), known=", ".join(known[:1]), severity=leading.severity
    )
    return {
        "headline": cut(f"{facts.deployment}: {headline}", HEADLINE_LENGTH),
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
                "reason_kind": _kind_of(reason),
                "is_new": is_new(reason),
                "severity": reason.severity,
                "series": reason.series,
                "sentence": sentence(reason),
                "evidence": dict(reason.evidence),
                "regressed": reason.regressed,
                "escalating": reason.escalating,
            }
            for reason in reasons
        ],
        "tells": _tells([reason for reason in reasons if is_new(reason)]),
        "known": [kind for kind in facts.known if kind not in headlines],
        "reopened_from": facts.acknowledged_by,
        "category": None if facts.category is None else dict(facts.category),
        "worst_slices": [dict(worst) for worst in facts.slices],
        "changes": [dict(change) for change in facts.changes],
        "robots": {
            "affected": list(facts.robots.affected),
            "unaffected": list(facts.robots.unaffected),
            "verdict": facts.robots.verdict,
        },
        "odd_one": facts.odd_one,
        "contract": facts.contract,
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
    reasons = content["reasons"]
    paragraphs = [reason["sentence"] for reason in reasons if reason.get("is_new", True)]
    paragraphs += [f"Known before: {reason['sentence']}" for reason in reasons if not reason.get("is_new", True)]
    if content.get("reopened_from"):
        paragraphs.append(
            f"{content['reopened_from']} acknowledged what was known before; this is to be taken on again."
        )
    questions = {question for reason in reasons if (question := _question(reason["kind"]))}
    paragraphs += [f"{question} One answer teaches it: {content['link']}" for question in sorted(questions)]
    category = content.get("category")
    if category:
        points = f"{100 * category['contribution']:.0f} points"
        paragraphs.append(f"Leading gap category: {category_name(category['category'])} ({points}).")
    if content.get("worst_slices"):
        paragraphs.append("Worst: " + "; ".join(slice_words(content["worst_slices"])) + ".")
    for change in content.get("changes", ()):
        paragraphs.append(f"Before it: {change['title']} ({change['kind']}, {clock(change['at'])}).")
    if content.get("contract"):
        paragraphs.append(f"Contract: {content['contract']}")
    if content.get("odd_one"):
        paragraphs.append(f"Since the change {content['odd_one']}")
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
        promise = f", at most one false alarm in {count(round(evidence['arl']))} episodes"
    flags = "".join(f", {flag}" for flag in ("regressed", "escalating") if getattr(reason, flag))
    return f"{words} ({reason.rule}{promise}{flags})."


def leading_reason(reasons: Sequence[AlertReason]) -> AlertReason:
    return _ranked(reasons)[0]


def dates_by(kind: str, series: str, severity: str) -> tuple[bool, bool, int, int]:
    """How much an alert says about when its incident changed; that of the greatest does.

    What is merely worth knowing comes last and a fall of success first; then the one that messages lead with.
    """
    known = RULE_KINDS.get(kind)
    order = 0 if known is None else -known.order
    return severity != "info", series.partition("@")[0] == "success", rank(severity), order


def _ranked(reasons: Sequence[AlertReason]) -> list[AlertReason]:
    return sorted(reasons, key=lambda r: (-rank(r.severity), _order(r), r.opened_at, r.series))


def _question(kind: str) -> str:
    known = RULE_KINDS.get(kind)
    return "" if known is None else known.question


def cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _tells(reasons: Sequence[AlertReason]) -> list[dict[str, str]]:
    """Each kind of reason that is news, with its worst severity and since when it holds."""
    by_kind: dict[ReasonKind, list[AlertReason]] = {}
    for reason in reasons:
        by_kind.setdefault(_kind_of(reason), []).append(reason)
    return [
        {
            "kind": kind,
            "severity": max((reason.severity for reason in of_kind), key=rank),
            "since": time_words(min(reason.opened_at for reason in of_kind)),
        }
        for kind, of_kind in by_kind.items()
    ]


def _kind_of(reason: AlertReason) -> ReasonKind:
    return reason_kind(reason.kind, reason.series)


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
