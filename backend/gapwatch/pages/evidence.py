"""What one episode is held against: the project's words for failures, and what is usual at its deployment.

The same evidence as the ledger's, so that an episode's shares here are those it has in the bars.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gapwatch.answers.comparison_side import ComparisonSide
from gapwatch.answers.failure_weights import (
    Behind,
    Evidence,
    usual_of,
    weigh_sides,
)
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.needs import Need
from gapwatch.answers.question import Question
from gapwatch.answers.sides import Sides
from gapwatch.answers.slices import suspects_of
from gapwatch.answers.subjects import deployment_subject
from gapwatch.levels import MISSING, level_of
from gapwatch.pages.words import count
from gapwatch.statistics.causes.attribution import (
    Attribution,
    FailedEpisode,
    attribute,
)
from gapwatch.statistics.causes.weighing import CONTRACT_SIGNAL
from gapwatch.statistics.estimates import sketches
from gapwatch.store.people.access import Transaction
from gapwatch.store.read import directory
from gapwatch.taxonomy import Taxonomy

NEEDS = Need.CELLS | Need.CONTRACTS | Need.FAILURE_COUNTS | Need.SIGNALS


@dataclass(frozen=True)
class SignalRank:
    """One signal, and the share of sim and of real episodes at or below it."""

    name: str
    value: float
    sim: float | None
    real: float | None
    categories: tuple[str, ...]


@dataclass(frozen=True)
class Alike:
    """How many attempts of either side fail with the same words."""

    real: int
    n_real: int
    sim: int
    n_sim: int


@dataclass(frozen=True)
class Held:
    # None for an attempt that did not fail.
    attribution: Attribution | None
    signals: list[SignalRank]
    # What it was held against, in words; None without a deployment.
    compared_with: str | None
    alike: Alike | None
    differing: int


def held_against(transaction: Transaction, project_id: int, record: dict[str, Any]) -> Held:
    slug = record.get("deployment")
    if slug is None or directory.find_deployment(transaction, project_id, slug) is None:
        options = directory.project_options(transaction, project_id)
        return _held(record, Evidence(Taxonomy(options.get("taxonomy")), {}, ()), None)
    subject = deployment_subject(transaction, project_id, slug)
    sides = load_sides(transaction, project_id, subject, Question(datetime.now(UTC)), NEEDS)
    return _held(record, evidence_of(sides), sides)


def evidence_of(sides: Sides) -> Evidence:
    sim, real, differing = sides.sim, sides.real, sides.contract.differing
    return Evidence(sides.taxonomy, usual_of(sim, real, differing), suspects_of(sides), differing)


def episodes_behind(sides: Sides, category: str, most: int) -> tuple[Behind, ...]:
    """The real failures that carry weight of a category, heaviest first."""
    evidence = evidence_of(sides)
    _, in_real, _ = weigh_sides(sides.sim, sides.real, evidence)
    return in_real.behind(category, evidence, most)


def _held(record: dict[str, Any], evidence: Evidence, sides: Sides | None) -> Held:
    failure = record.get("failure", {})
    conditions = record.get("conditions", {})
    suspected = {name for name, _ in evidence.suspects}
    said = FailedEpisode(
        failure.get("category"),
        failure.get("labels") or (),
        failure.get("phase"),
        record.get("signals", {}) | _contract(record, evidence),
        {name: level_of(conditions[name]) if name in conditions else MISSING for name in suspected},
    )
    failed = record["outcome"] == "failure"
    signals = [
        SignalRank(
            name,
            value,
            None if sides is None else _rank(sides.sim, name, value),
            None if sides is None else _rank(sides.real, name, value),
            evidence.taxonomy.categories_of("signals", name),
        )
        for name, value in record.get("signals", {}).items()
    ]
    # The strangest first: the farther from the middle of sim.
    signals.sort(key=lambda one: -abs((0.5 if one.sim is None else one.sim) - 0.5))
    found = attribute(said, evidence.taxonomy, evidence.usual, evidence.suspects) if failed else None
    return Held(found, signals, _words(sides), _alike(said, sides) if failed else None, evidence.differing)


def _contract(record: dict[str, Any], evidence: Evidence) -> dict[str, float]:
    """The contract as the ledger sees it: a signal, the number of fields in which the side differs."""
    if not evidence.differing:
        return {}
    return {CONTRACT_SIGNAL: float(evidence.differing) if record["domain"] == "real" else 0.0}


def in_words(sentence: str, differing: int) -> str:
    if not sentence.startswith(f"signal {CONTRACT_SIGNAL} "):
        return sentence
    return f"the contract differs in {differing} {'field' if differing == 1 else 'fields'}"


def _alike(said: FailedEpisode, sides: Sides | None) -> Alike | None:
    if sides is None or not (said.phase or said.labels):
        return None

    def failures(half: ComparisonSide) -> int:
        return sum(
            one.failures
            for one in half.failure_counts
            if one.signature.phase == said.phase and set(one.signature.labels) == set(said.labels)
        )

    return Alike(failures(sides.real), sides.real.n, failures(sides.sim), sides.sim.n)


def _rank(half: ComparisonSide, name: str, value: float) -> float | None:
    rollups = half.signals.get(name, {})
    if not rollups:
        return None
    return sketches.cdf(sketches.merge([rollup.sketch for rollup in rollups.values()]), value)


def _words(sides: Sides | None) -> str | None:
    if sides is None or not sides.sim.n:
        return None
    base = sides.baseline
    name = "" if base is None else f" of {base.simulator} {base.version}"
    return (
        f"Rank among {count(sides.sim.n)} sim episodes{name} and {count(sides.real.n)} real ones "
        f"of {sides.subject.deployment}."
    )
