"""Kinds of reasons: what a person on call has to tell apart, however many rules say it.

A drop of success, of reward and a costly category are the same news in other words; a silent robot is another.
"""

from __future__ import annotations

from typing import Literal

ReasonKind = Literal["silence", "safety", "performance", "gate", "signals"]

# In the order in which one leads another of the same severity.
REASON_KINDS: tuple[ReasonKind, ...] = ("safety", "performance", "gate", "silence", "signals")

_OF_RULE_KINDS: dict[str, ReasonKind] = {
    "no_data": "silence",
    "range": "signals",
    "safety": "safety",
    "stage_gate": "gate",
}


def reason_kind(rule_kind: str, series: str) -> ReasonKind:
    """The kind of reason that an alert of a rule on a series is; everything else is performance."""
    if rule_kind == "drift" and (series == "signals" or series.startswith("signal:")):
        return "signals"
    return _OF_RULE_KINDS.get(rule_kind, "performance")
