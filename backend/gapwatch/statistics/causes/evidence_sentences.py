"""Sentences that say why a failed episode's weight lies where `weighing.weigh` put it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from gapwatch.statistics.causes.evidence_claims import deciding_labels, far_out
from gapwatch.statistics.causes.failed_episodes import FailedEpisode, Level
from gapwatch.statistics.causes.label_balance import LabelBalance
from gapwatch.statistics.causes.signal_ranges import CONTRACT_SIGNAL, UsualRange, unusual_side
from gapwatch.taxonomy import Taxonomy


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
    taxonomy: Taxonomy,
    usual: Mapping[str, UsualRange] | None = None,
    suspects: Collection[tuple[str, Level]] = (),
    balance: LabelBalance | None = None,
) -> tuple[EvidenceSentence, ...]:
    """Say for each category of `weights` what in the record points to it.

    `weights` are the episode's row of `weigh`, with the same taxonomy, ranges and suspects; `balance` is what its
    side was evened out with, if it was. Every category with weight has a sentence, and no other category has one:
    nothing is weighed here. Where a label decided, a signal that points to the same category is said as well.
    """
    return tuple(
        EvidenceSentence(text, carried)
        for text, categories in _pointing(episode, taxonomy, usual or {}, suspects, balance)
        if (carried := tuple(category for category in categories if weights.get(category, 0.0) > 0))
    )


Pointing = Iterator[tuple[str, tuple[str, ...]]]


def _pointing(
    episode: FailedEpisode,
    taxonomy: Taxonomy,
    usual: Mapping[str, UsualRange],
    suspects: Collection[tuple[str, Level]],
    balance: LabelBalance | None,
) -> Pointing:
    """What the record has that points anywhere, the strongest kind of evidence first."""
    if episode.category is not None:
        yield f"a person chose {episode.category}", (episode.category,)
        return
    labels = deciding_labels(episode.labels, taxonomy)
    for label, categories in labels.items():
        yield f"label {label}", categories
    yield from _unusual_signals(episode.signals or {}, taxonomy, usual)
    for name, level in (episode.conditions or {}).items():
        if (name, level) in suspects:
            yield f"{name} {level}, where real fails more", taxonomy.categories_of("conditions", name)
    if episode.phase is None:
        return
    yield f"failed in phase {episode.phase}", taxonomy.categories_of("phases", episode.phase)
    if balance is not None and not labels and episode.phase in balance.phases:
        typical = tuple(balance.phases[episode.phase].typical)
        yield f"no label; labelled failures of {balance.other} in phase {episode.phase} are of this kind", typical


def _unusual_signals(
    signals: Mapping[str, float], taxonomy: Taxonomy, usual: Mapping[str, UsualRange]
) -> Pointing:
    """Causes before symptoms, the farthest out first."""
    unusual = []
    for name, value in signals.items():
        side = unusual_side(value, usual[name]) if name in usual else None
        if side is not None:
            distance = int(far_out(np.array([value]), usual[name])[0])
            text = _signal_words(name, value, side, usual[name])
            unusual.append((taxonomy.is_symptom(name), -distance, text, taxonomy.categories_of("signals", name)))
    for _, _, text, categories in sorted(unusual):
        yield text, categories


def _signal_words(name: str, value: float, side: str, usual: UsualRange) -> str:
    if name == CONTRACT_SIGNAL:
        return f"the contract differs in {value:g} {'field' if value == 1 else 'fields'}"
    return f"signal {name} {value:g} is {side} {100 * usual.share:g} % of sim successes"
