"""How an open alert stands today, and whether it is worse than when it fired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# A rate that is this much worse than at the alarm, over at least so many episodes, is getting worse.
WORSE_BY = 0.1
FEWEST = 20


@dataclass(frozen=True)
class AlertStanding:
    facts: dict[str, Any]
    is_worse: bool


def standing_now(state: Mapping[str, Any], evidence: Mapping[str, Any]) -> AlertStanding | None:
    """From what a detector has stored; None where it keeps nothing to say."""
    detector = state.get("detector") or {}
    climb = detector.get("climb")
    if climb is not None:
        rate = climb["total"] / climb["n"]
        reference = (evidence.get("reference") or {}).get("value")
        then = (evidence.get("since") or {}).get("value")
        # Detectors count the good side; what is shown may be the bad one.
        upside_down = reference is not None and then is not None and then > reference
        value = 1 - rate if upside_down else rate
        worse_by = 0.0 if then is None else (value - then if upside_down else then - value)
        return AlertStanding({"n": climb["n"], "value": value}, climb["n"] >= FEWEST and worse_by >= WORSE_BY)
    if "seen" in detector and detector.get("alarmed"):
        return AlertStanding({"seen": detector["seen"]}, detector["seen"] > 1)
    return None
