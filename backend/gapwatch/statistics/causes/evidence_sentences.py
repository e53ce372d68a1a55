"""Sentences that say why a failed episode's weight lies where `responsibility.weigh_failures` put it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gapwatch.statistics.causes.cause_candidates import CONTRACT_SIGNAL, Scale
from gapwatch.statistics.causes.evidence_claims import deciding_labels
from gapwatch.statistics.causes.failed_episodes import FailedEpisode, batch_of
from gapwatch.statistics.causes.responsibility import Domain, Responsibility, joint_name
from gapwatch.statistics.causes.term_facts import TermFact
from gapwatch.taxonomy import Taxonomy

Pointing = Iterator[tuple[str, tuple[str, ...]]]


@dataclass(frozen=True)
class EvidenceSentence:
    """One piece of evidence in words, and the categories of the episode's weight that it speaks for."""

    text: str
    categories: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.text} → {', '.join(self.categories)}"


def evidence_sentences(
    episode: FailedEpisode,
    weights: Mapping[str, float],
    domain: Domain,
    basis: Responsibility,
    facts: Sequence[TermFact],
) -> tuple[EvidenceSentence, ...]:
    """Say for each category of `weights` what in the record points to it.

    `weights` are the episode's row of `weigh_failures` with the same basis, and `facts` those of its model. Every
    category with weight has a sentence, and no other category has one: nothing is weighed here.
    """
    pointing = [*_words(episode, basis.taxonomy), *_seen(episode, domain, basis, facts)]
    return tuple(
        EvidenceSentence(text, carried)
        for text, categories in pointing
        if (carried := tuple(category for category in categories if weights.get(category, 0.0) > 0))
    )


def word_sentences(
    episode: FailedEpisode, weights: Mapping[str, float], taxonomy: Taxonomy
) -> tuple[EvidenceSentence, ...]:
    """The same where only words were weighed, because the episode belongs to no deployment."""
    pointing = [*_words(episode, taxonomy)]
    if episode.phase is not None:
        pointing.append((f"failed in phase {episode.phase}", taxonomy.categories_of("phases", episode.phase)))
    return tuple(
        EvidenceSentence(text, carried)
        for text, categories in pointing
        if (carried := tuple(category for category in categories if weights.get(category, 0.0) > 0))
    )


def _words(episode: FailedEpisode, taxonomy: Taxonomy) -> Pointing:
    """What people wrote."""
    if episode.category is not None:
        yield f"a person chose {episode.category}", (episode.category,)
        return
    for label, categories in deciding_labels(episode.labels, taxonomy).items():
        yield f"label {label}", categories


def _seen(episode: FailedEpisode, domain: Domain, basis: Responsibility, facts: Sequence[TermFact]) -> Pointing:
    """Causes that the episode met, what costs most first; then symptoms, then the phase."""
    if episode.category is not None:
        return
    met = basis.model.values(batch_of([episode]), domain)[0]
    added = [term.effect * value for term, value in zip(basis.model.terms, met.tolist(), strict=True)]
    for number in np.argsort(-np.array(added), kind="stable").tolist():
        if added[number] > 0:
            term = basis.model.terms[number]
            categories = (joint_name(term.categories),) if term.is_joint else term.categories
            yield _met(facts[number], term.candidate.scale, episode), categories
    if domain == "sim":
        return
    for symptom in basis.symptoms:
        value = (episode.signals or {}).get(symptom.name)
        if value is not None:
            text = f"signal {symptom.name} {value:g}: real's failures show more of it than sim's in the same phase"
            yield text, symptom.categories
    if episode.phase is not None:
        text = f"failed in phase {episode.phase}, where real fails more than its causes explain"
        yield text, basis.taxonomy.categories_of("phases", episode.phase)


def _met(fact: TermFact, scale: Scale | None, episode: FailedEpisode) -> str:
    value = (episode.signals or {}).get(fact.name)
    if fact.name == CONTRACT_SIGNAL and value is not None:
        return f"the contract differs in {value:g} {'field' if value == 1 else 'fields'}"
    if scale is None:
        return fact.sentence
    if value is None:
        return f"signal {fact.name} was not logged; {fact.sentence}"
    beyond = "above" if value > scale.high else "below" if value < scale.low else None
    if beyond is None:
        return f"signal {fact.name} {value:g}; {fact.sentence}"
    of = "sim" if scale.simulated else "real"
    return f"signal {fact.name} {value:g} is {beyond} 99 % of {of} successes; {fact.sentence}"
