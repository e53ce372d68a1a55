"""One failed episode: over which categories it counts and why, how its signals rank, and how many fail alike.

The weights are those that it has in its deployment's ledger. Lists of many deployments show only what people and
labels decided, which is the same whatever a failure is weighed with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gapwatch.answers.comparison_side import ComparisonSide
from gapwatch.answers.failure_weights import (
    NEEDS,
    CategoryEpisode,
    EvidenceBasis,
    basis_of,
    weigh_sides,
)
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.needs import Need
from gapwatch.answers.question import Question
from gapwatch.answers.sides import Sides
from gapwatch.answers.subjects import deployment_subject
from gapwatch.levels import MISSING, level_of
from gapwatch.statistics.causes.failed_episodes import FailedEpisode, batch_of
from gapwatch.statistics.causes.weighing import LABELS_ONLY, weigh
from gapwatch.statistics.estimates import sketches
from gapwatch.store.core.database import Connection
from gapwatch.store.read import directory
from gapwatch.store.read.sides import Domain
from gapwatch.taxonomy import UNATTRIBUTED, Taxonomy

Record = Mapping[str, Any]


@dataclass(frozen=True)
class CategoryShare:
    """How much of the failure a category has, and the sentences that say why."""

    category: str
    weight: float
    why: list[str]


@dataclass(frozen=True)
class SignalRank:
    """One signal, and the share of sim and of real episodes at or below it."""

    name: str
    value: float
    sim: float | None
    real: float | None
    categories: tuple[str, ...]


@dataclass(frozen=True)
class SimilarFailures:
    """How many attempts of either side fail with the same words."""

    real: int
    n_real: int
    sim: int
    n_sim: int


@dataclass(frozen=True)
class RankedAmong:
    """The episodes of both sides that signals are ranked among."""

    deployment: str | None
    simulator: str | None
    n_sim: int
    n_real: int


@dataclass(frozen=True)
class EpisodeEvidence:
    """`shares` is empty for an attempt that did not fail. `deployment`: in whose ledger it has these weights; None
    where it has no deployment, and only its own labels and phase were weighed.
    """

    deployment: str | None
    shares: list[CategoryShare]
    signals: list[SignalRank]
    ranked_among: RankedAmong | None
    similar: SimilarFailures | None


def read_episode_evidence(
    connection: Connection, project_id: int, record: Record, now: datetime
) -> EpisodeEvidence:
    slug = record.get("deployment")
    if slug is None or directory.find_deployment(connection, project_id, slug) is None:
        options = directory.project_options(connection, project_id)
        return explain_episode(record, EvidenceBasis(Taxonomy(options.get("taxonomy"))), None)
    subject = deployment_subject(connection, project_id, slug)
    sides = load_sides(connection, project_id, subject, Question(now), NEEDS | Need.SIGNALS)
    return explain_episode(record, basis_of(sides), sides)


def explain_episode(record: Record, basis: EvidenceBasis, sides: Sides | None) -> EpisodeEvidence:
    failed = record["outcome"] == "failure"
    return EpisodeEvidence(
        None if sides is None else sides.subject.deployment,
        _shares(_failed_episode(record, basis), basis, record["domain"]) if failed else [],
        _ranks(record.get("signals", {}), basis.taxonomy, sides),
        _ranked_among(sides),
        _similar(record.get("failure", {}), sides) if failed else None,
    )


def heaviest_episodes(sides: Sides, category: str, most: int) -> tuple[CategoryEpisode, ...]:
    """The real failures that carry weight of a category, heaviest first."""
    weighed = weigh_sides(sides)
    return weighed.real.heaviest(category, weighed.basis, most)


def decided_categories(failures: Sequence[Mapping[str, Any]], taxonomy: Taxonomy) -> list[list[str]]:
    """The categories that a person or labels gave to each failure, heaviest first; none where neither did."""
    episodes = [FailedEpisode(failure.get("category"), failure.get("labels") or ()) for failure in failures]
    weights = weigh(batch_of(episodes), taxonomy, strengths=LABELS_ONLY)
    return [[name for name in weights.row(row) if name != UNATTRIBUTED] for row in range(len(episodes))]


def _failed_episode(record: Record, basis: EvidenceBasis) -> FailedEpisode:
    failure, conditions = record.get("failure", {}), record.get("conditions", {})
    fields = basis.fields_differing(record.get("contract"))
    return FailedEpisode(
        failure.get("category"),
        failure.get("labels") or (),
        failure.get("phase"),
        {**record.get("signals", {}), **basis.contract_signal(record["domain"], fields)},
        {name: level_of(conditions[name]) if name in conditions else MISSING for name in basis.conditions},
    )


def _shares(episode: FailedEpisode, basis: EvidenceBasis, domain: Domain) -> list[CategoryShare]:
    """Heaviest first, what has no evidence last."""
    weights = basis.weigh(batch_of([episode]), domain).row(0)
    sentences = basis.sentences(episode, weights, domain)
    return [
        CategoryShare(
            category,
            weight,
            [sentence.text for sentence in sentences if category in sentence.categories]
            or ["no evidence claims it"],
        )
        for category, weight in weights.items()
    ]


def _ranks(signals: Mapping[str, float], taxonomy: Taxonomy, sides: Sides | None) -> list[SignalRank]:
    """The strangest first: the farther from the middle of sim."""
    ranks = [
        SignalRank(
            name,
            value,
            None if sides is None else _rank(sides.sim, name, value),
            None if sides is None else _rank(sides.real, name, value),
            taxonomy.categories_of("signals", name),
        )
        for name, value in signals.items()
    ]
    return sorted(ranks, key=lambda rank: -abs((0.5 if rank.sim is None else rank.sim) - 0.5))


def _rank(side: ComparisonSide, name: str, value: float) -> float | None:
    rollups = side.signals.get(name, {})
    if not rollups:
        return None
    return sketches.cdf(sketches.merge([rollup.sketch for rollup in rollups.values()]), value)


def _similar(failure: Mapping[str, Any], sides: Sides | None) -> SimilarFailures | None:
    phase, labels = failure.get("phase"), {*(failure.get("labels") or ())}
    if sides is None or not (phase or labels):
        return None
    real, sim = (
        sum(
            count.failures
            for count in side.failure_counts
            if count.signature.phase == phase and {*count.signature.labels} == labels
        )
        for side in (sides.real, sides.sim)
    )
    return SimilarFailures(real, sides.real.n, sim, sides.sim.n)


def _ranked_among(sides: Sides | None) -> RankedAmong | None:
    if sides is None or not sides.sim.n:
        return None
    base = sides.baseline
    simulator = None if base is None else f"{base.simulator} {base.version}"
    return RankedAmong(sides.subject.deployment, simulator, sides.sim.n, sides.real.n)
