"""What is said of rollouts: what drives, how the gate stands, what a plan costs, and the list of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gapwatch.notation import count
from gapwatch.pages.words import plural
from gapwatch.store.rollout.rollouts import PolicyVersion


def gate_sentence(stage: str, above: str | None, gate: Mapping[str, Any] | None) -> str:
    where = f"The gate from {stage} to {above}" if above else "The watch of full deployment"
    if gate is None:
        return f"{where} is not judged yet."
    if gate["verdict"] == "pass":
        return f"{where} is passed: every claim of this stage is supported."
    wanting = [criterion for criterion in gate["criteria"] if criterion["verdict"] != "pass"]
    if gate["verdict"] == "fail":
        failed = [criterion["id"] for criterion in wanting if criterion["verdict"] == "fail"]
        if any(criterion["breached"] for criterion in wanting):
            return f"{where} is open again: {', '.join(failed)} had passed and is breached."
        return f"{where} fails on {', '.join(failed)}."
    return f"{where} has not enough evidence: {'; '.join(missing_words(gate))}."


def missing_words(gate: Mapping[str, Any]) -> list[str]:
    """What each criterion that is not passed still wants."""
    return [
        f"{criterion['id']}: {criterion['note']}"
        for criterion in gate["criteria"]
        if criterion["verdict"] != "pass"
    ]


def state_sentence(state: str, driver: PolicyVersion | None, candidate: PolicyVersion) -> str:
    if state == "stop":
        return "Stopped: nothing may drive there."
    if driver is None:
        return "The candidate does not drive, and no fallback is named."
    words = f"{driver.name} {driver.version} may drive."
    if driver == candidate:
        return words
    return f"{words} The candidate {candidate.name} {candidate.version} does not."


def criterion_measured(found: Mapping[str, Any]) -> str:
    """The value with its interval and n; shares as percent, drops in points, counts as they are."""
    measured, interval, kind = found["measured"], found["interval"], found["kind"]
    if measured is None:
        return f"{plural(found['n'], 'episode')}"
    if kind in ("min_episodes", "drift_free"):
        return plural(int(measured), "episode")
    if kind == "min_days":
        return plural(int(measured), "day")
    if kind == "contract_equal":
        return "equal" if found["verdict"] == "pass" else f"{plural(int(measured), 'field')} differ"
    if kind == "no_open_incident":
        return "none open" if not measured else f"{plural(int(measured), 'alert')} open"
    unit = " points" if kind == "max_drop" else " %"
    words = f"{100 * measured:.1f}{unit}".replace("-", "−")
    if interval is not None:
        words += f" [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]".replace("-", "−")
    return f"{words}, n {found['n']}"


def power_words(plan: Mapping[str, Any]) -> list[str]:
    """The power card: what the drop of this plan takes."""
    words = []
    for row in plan.get("power", ()):
        median = row["median_episodes"]
        at = f"a true drop of {100 * row['true_drop']:g} points" if row["true_drop"] else "no drop"
        words.append(f"{count(median) if median is not None else 'more than 5 000'} at {at}")
    return words


def gate_words(gate: str) -> str:
    """How a gate stands, in a corner of the fleet."""
    return {"pass": "gate passed", "fail": "gate fails", "not enough evidence": "gate open"}.get(gate, gate)


def list_headline(waiting: int, overdue: int, total: int) -> str:
    """The first line of the list of rollouts."""
    if not total:
        return "No deployment yet."
    if overdue:
        return f"{plural(overdue, 'rollout')} {'waits' if overdue == 1 else 'wait'} too long for a decision."
    if waiting:
        verbs = "is passed and waits" if waiting == 1 else "are passed and wait"
        return f"{plural(waiting, 'gate')} {verbs} for somebody to promote."
    return "Nothing waits for a decision."
