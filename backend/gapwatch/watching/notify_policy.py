"""When people are told: kind of reason by kind of reason, so that none swallows another, and none twice.

`NOTIFY_TABLE` has a cell for every kind of reason, state of its incident and what people know of the kind there.
Every cell that is a message waits for `flap_minutes` after the last message about the same kind that was at least
as severe; a message about another kind holds nothing back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from gapwatch.watching.reason_kinds import REASON_KINDS, ReasonKind

SEVERITIES = ("info", "warning", "critical")

# `unknown`: nobody was told of the incident yet.
KnownState = Literal["unknown", "firing", "acknowledged"]
# `same`: untold, but its fall was told as another kind; `worse`: told, and more severe now; `over`: told, and it
# had recovered before it came back.
Knowledge = Literal["untold", "same", "told", "worse", "over"]

# Kinds that may be one fall in other words: success that falls, and the gate that it falls below.
SAME_FALL: dict[ReasonKind, ReasonKind] = {"performance": "gate", "gate": "performance"}

# What is said of a kind that people know already, when another one joins it.
KNOWN_BEFORE: dict[ReasonKind, str] = {
    "safety": "it was unsafe before",
    "performance": "it did worse before",
    "gate": "it missed its gate before",
    "silence": "it was silent before",
    "signals": "its signals moved before",
}
# What is said of a kind that recovered and came back while its incident stayed open.
BACK: dict[ReasonKind, str] = {
    "safety": "unsafe again",
    "performance": "worse again",
    "gate": "below its gate again",
    "silence": "silent again",
    "signals": "moved again",
}

QUIET = None


def _cells(kind: ReasonKind) -> dict[tuple[KnownState, Knowledge], str | None]:
    joins, worse, back = "{what}; {known}", "{what}; {severity} now", f"{{what}}; {BACK[kind]}"
    same: dict[tuple[KnownState, Knowledge], str | None] = {}
    if kind in SAME_FALL:
        same = {("firing", "same"): QUIET, ("acknowledged", "same"): QUIET}
    return {
        **same,
        ("unknown", "untold"): "{what}",
        ("firing", "untold"): joins,
        ("firing", "told"): QUIET,
        ("firing", "worse"): worse,
        ("firing", "over"): back,
        # Who took on what was known then did not take on this: the incident is firing again.
        ("acknowledged", "untold"): joins,
        ("acknowledged", "told"): QUIET,
        ("acknowledged", "worse"): worse,
        ("acknowledged", "over"): back,
    }


# The headline of the message, after the name of the deployment; None is no message.
NOTIFY_TABLE: dict[tuple[ReasonKind, KnownState, Knowledge], str | None] = {
    (kind, *situation): message for kind in REASON_KINDS for situation, message in _cells(kind).items()
}


def rank(severity: str) -> int:
    return SEVERITIES.index(severity)


def worst(severities: Sequence[str]) -> str:
    return max(severities, key=rank)


@dataclass(frozen=True)
class Telling:
    """People were told of a kind of reason. `standing` is how severe what they were told is by now.

    One that is over has recovered, or a later telling took its place.
    """

    kind: ReasonKind
    severity: str
    standing: str
    at: datetime
    is_over: bool
    is_of_this_incident: bool


@dataclass(frozen=True)
class OpenReason:
    """A kind of reason that holds now: its worst severity, and how long it may have to wait.

    `fell_at`: when success fell, of a kind that is about nothing else and whose channels were all told of the
    incident.
    """

    severity: str
    flap_minutes: float
    fell_at: datetime | None = None


@dataclass(frozen=True)
class ReasonDecision:
    """What is told of one kind of reason, and not before when; without a headline nothing is."""

    headline: str | None
    at: datetime
    knowledge: Knowledge


def knowledge_of(kind: ReasonKind, severity: str, tellings: Sequence[Telling]) -> Knowledge:
    """What people know of a kind of reason that is now of this severity."""
    here = [telling for telling in tellings if telling.is_of_this_incident and telling.kind == kind]
    standing = [telling.standing for telling in here if not telling.is_over]
    if standing:
        return "worse" if rank(severity) > rank(worst(standing)) else "told"
    return "over" if here else "untold"


def is_same_fall(kind: ReasonKind, reasons: Mapping[ReasonKind, OpenReason], tellings: Sequence[Telling]) -> bool:
    """Whether people know the fall of a kind as another kind, as severe; it began before they were told."""
    other, fell_at = SAME_FALL.get(kind), reasons[kind].fell_at
    if other is None or other not in reasons or reasons[other].fell_at is None or fell_at is None:
        return False
    return any(
        telling.is_of_this_incident
        and not telling.is_over
        and telling.kind == other
        and rank(telling.standing) >= rank(reasons[kind].severity)
        and fell_at <= telling.at
        for telling in tellings
    )


def notification_for(
    reasons: Mapping[ReasonKind, OpenReason],
    tellings: Sequence[Telling],
    *,
    is_acknowledged: bool,
    now: datetime,
) -> dict[ReasonKind, ReasonDecision]:
    """What to tell of an incident, one decision for each kind of reason that is open.

    `tellings` are those of this incident and what was last told of each kind in earlier ones of the deployment.
    """
    is_known = any(telling.is_of_this_incident for telling in tellings)
    state: KnownState = "unknown" if not is_known else "acknowledged" if is_acknowledged else "firing"
    decisions = {}
    for kind, reason in reasons.items():
        knowledge = knowledge_of(kind, reason.severity, tellings)
        if knowledge == "untold" and is_same_fall(kind, reasons, tellings):
            knowledge = "same"
        headline = NOTIFY_TABLE[kind, state, knowledge]
        if reason.severity == "info" and is_known:
            # Worth knowing, not worth a message: it is listed in the next one.
            headline = QUIET
        as_severe = [t.at for t in tellings if t.kind == kind and rank(t.severity) >= rank(reason.severity)]
        held_until = max(as_severe, default=None)
        at = now if held_until is None else max(now, held_until + timedelta(minutes=reason.flap_minutes))
        decisions[kind] = ReasonDecision(headline, at, knowledge)
    return decisions


def standing_after(telling: Telling, reasons: Mapping[ReasonKind, str]) -> str | None:
    """How severe what people were told is now, given the worst open severity of each kind; None when it is over.

    It only falls: what gets worse is told anew.
    """
    severity = reasons.get(telling.kind)
    if severity is None:
        return None
    return min(severity, telling.standing, key=rank)


def is_over(severities: list[str], notified_severity: str | None) -> bool:
    """Whether an incident is over, by the severities of its alerts that are still open.

    Something that is merely worth knowing does not keep open what people were told of as a warning.
    """
    return all(severity == "info" and notified_severity not in {None, "info"} for severity in severities)
