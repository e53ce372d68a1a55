"""How far a deployment has come, and what stands between it and the next stage."""

from __future__ import annotations

from dataclasses import dataclass

from gapwatch.answers.drop import EPISODES_TO_START, DropAnswer, SideValue
from gapwatch.pages.words import plural

STAGES = ("offline", "shadow", "supervised", "full")


@dataclass(frozen=True)
class Rung:
    """A stage of the ladder; `place` is done, current or ahead."""

    name: str
    place: str


@dataclass(frozen=True)
class Check:
    text: str
    is_met: bool


def ladder(stage: str | None) -> list[Rung]:
    """All stages in order. Where none is said, all lie ahead."""
    reached = STAGES.index(stage) if stage in STAGES else -1
    return [
        Rung(name, "done" if place < reached else "current" if place == reached else "ahead")
        for place, name in enumerate(STAGES)
    ]


def checks(real: SideValue, drop: DropAnswer, contract_verdict: str) -> list[Check]:
    """Enough episodes, no drop, the same contract."""
    enough = real.n >= EPISODES_TO_START
    too_few = "" if enough else f", fewer than the {EPISODES_TO_START} that pin a rate to ± 10 points"
    contracts = {"comparable": "Contracts agree", "differs": "Contracts differ"}
    return [
        Check(f"{plural(real.n, 'real episode')}{too_few}", enough),
        Check(_drop_words(drop.verdict), drop.verdict == "none"),
        Check(contracts.get(contract_verdict, "A side sends no contract"), contract_verdict == "comparable"),
    ]


def _drop_words(verdict: str) -> str:
    words = {"none": "No drop that matters", "too few episodes": "Whether there is a drop is not settled"}
    return words.get(verdict, f"The drop is {verdict}")
