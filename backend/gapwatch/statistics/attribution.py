"""The evidence of one failed episode into weights over gap categories, with the sentences that say why."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import floor, fsum

from gapwatch.taxonomy import UNATTRIBUTED, Taxonomy

# Weights are whole parts of 1024: their sums and sums of squares are exact doubles, in any order, for billions of
# episodes, so a ledger adds up and a replayed rollup is the same to the last bit.
PARTS = 1024
# Fewer sim successes do not show what is usual.
FEWEST_SUCCESSES = 50

Level = str | bool | float | None


@dataclass(frozen=True)
class Strengths:
    """How much of an episode a kind of evidence may claim; a category named by a person claims all of it.

    A label decides, a phase says where it failed, a signal what was unusual, a condition only what else was so.
    """

    label: float = 1.0
    phase: float = 1.0
    signal: float = 0.8
    condition: float = 0.5


DEFAULT_STRENGTHS = Strengths()


@dataclass(frozen=True)
class UsualRange:
    """What a signal is like in sim successes: its 1 %, 50 % and 99 % quantiles, and of how many episodes."""

    low: float
    median: float
    high: float
    n: int
    share: float = 0.99


@dataclass(frozen=True)
class FailedEpisode:
    """What the record says of one failed episode."""

    category: str | None = None
    labels: Sequence[str] = ()
    phase: str | None = None
    signals: Mapping[str, float] | None = None
    conditions: Mapping[str, Level] | None = None


@dataclass(frozen=True)
class Evidence:
    """One sentence of the page, where it points, and what it claimed; 0 where something else decided."""

    sentence: str
    categories: tuple[str, ...]
    strength: float

    def __str__(self) -> str:
        return f"{self.sentence} → {', '.join(self.categories)}"


@dataclass(frozen=True)
class Attribution:
    """Weights that sum to exactly 1, `unattributed` included; categories without weight are left out."""

    weights: Mapping[str, float]
    evidence: tuple[Evidence, ...]


def attribute(
    episode: FailedEpisode,
    taxonomy: Taxonomy,
    usual: Mapping[str, UsualRange] | None = None,
    suspects: Collection[tuple[str, Level]] = (),
    strengths: Strengths = DEFAULT_STRENGTHS,
) -> Attribution:
    """Split one failure over categories.

    Rule: a person's category gets everything; else labels that point somewhere get everything, shared equally;
    else the phase claims 1, unusual signals up to 0.8 by how far out they are, suspect condition levels 0.5.
    Claims are shared out in proportion when they exceed 1; what they leave of 1 is unattributed.
    A claim that points to several categories is shared equally. Signals claim once, by the farthest of a category.
    `suspects` are (condition, level), levels written as in `episode.conditions`, whose excess of failures is
    established; other levels are no evidence.
    Assumes nothing about causes: it is bookkeeping of evidence, the same for sim and real failures.
    Smallest n: a signal's range needs 50 sim successes. Without any evidence everything is unattributed.
    """
    if episode.category is not None:
        line = Evidence(f"a person chose {episode.category}", (episode.category,), 1.0)
        return Attribution({episode.category: 1.0}, (line,))
    labels = [
        Evidence(f"label {label}", found, strengths.label)
        for label in dict.fromkeys(episode.labels)
        if (found := taxonomy.categories_of("labels", label))
    ]
    rest = _phase(episode, taxonomy, strengths.phase)
    rest += _signals(episode, taxonomy, usual or {}, strengths.signal)
    rest += _conditions(episode, taxonomy, suspects, strengths.condition)
    if labels:
        # A label decides; what else was seen is shown beside it and claims nothing.
        rest = [Evidence(line.sentence, line.categories, 0.0) for line in rest]
        labels = [Evidence(line.sentence, line.categories, line.strength / len(labels)) for line in labels]
    lines = (*labels, *rest)
    claims: dict[str, list[float]] = {}
    for line in lines:
        for category in line.categories:
            claims.setdefault(category, []).append(line.strength / len(line.categories))
    # fsum, because the order in which a sender writes its labels must not move a weight.
    return Attribution(_weights({name: fsum(parts) for name, parts in claims.items()}), lines)


def unusual(value: float, usual: UsualRange) -> tuple[float, str] | None:
    """How far a value lies outside the usual range, from 0 to 1, and on which side; None inside it.

    Formula: min(1, 2 · distance beyond the limit / distance of the limit from the median); 1 where the usual
    values are all one. For a normal signal 1 is reached at 3.5 standard deviations.
    """
    if usual.n < FEWEST_SUCCESSES:
        return None
    for side, limit, beyond in (
        ("above", usual.high, value - usual.high),
        ("below", usual.low, usual.low - value),
    ):
        if beyond > 1e-9 * max(abs(limit), abs(value)):
            room = abs(limit - usual.median)
            return (min(1.0, 2 * beyond / room) if room > 0 else 1.0), side
    return None


def _phase(episode: FailedEpisode, taxonomy: Taxonomy, strength: float) -> list[Evidence]:
    if episode.phase is None:
        return []
    found = taxonomy.categories_of("phases", episode.phase)
    return [Evidence(f"failed in phase {episode.phase}", found, strength)] if found else []


def _signals(
    episode: FailedEpisode, taxonomy: Taxonomy, usual: Mapping[str, UsualRange], most: float
) -> list[Evidence]:
    seen: list[tuple[float, str, tuple[str, ...]]] = []
    for name, value in (episode.signals or {}).items():
        found = taxonomy.categories_of("signals", name)
        far = unusual(value, usual[name]) if name in usual else None
        if found and far is not None:
            share = f"{100 * usual[name].share:g} %"
            seen.append((far[0], f"signal {name} {value:g} is {far[1]} {share} of sim successes", found))
    seen.sort(key=lambda item: (-item[0], item[1]))
    # Five force signals are one piece of evidence: the farthest of a category speaks, the others are only shown.
    farthest: dict[tuple[str, ...], float] = {}
    for far_out, _, found in seen:
        farthest.setdefault(found, far_out)
    total = sum(farthest.values())
    lines = []
    for far_out, sentence, found in seen:
        speaks = farthest.pop(found, None) is not None
        claim = most * seen[0][0] * far_out / total if speaks else 0.0
        lines.append(Evidence(sentence, found, claim))
    return lines


def _conditions(
    episode: FailedEpisode, taxonomy: Taxonomy, suspects: Collection[tuple[str, Level]], most: float
) -> list[Evidence]:
    seen = [
        (f"{name} {level}, where real fails more", found)
        for name, level in (episode.conditions or {}).items()
        if (name, level) in suspects and (found := taxonomy.categories_of("conditions", name))
    ]
    return [Evidence(sentence, found, most / len(seen)) for sentence, found in seen]


def _weights(claims: Mapping[str, float]) -> dict[str, float]:
    """Claims as whole parts of 1024 that sum to 1; what rounding leaves goes to the largest remainders."""
    total = fsum(claims.values())
    shares = {name: claim / max(total, 1.0) for name, claim in claims.items() if claim > 0}
    shares[UNATTRIBUTED] = max(0.0, 1 - total)
    parts = {name: floor(share * PARTS) for name, share in shares.items()}
    left = PARTS - sum(parts.values())
    by_remainder = sorted(shares, key=lambda name: (parts[name] - shares[name] * PARTS, name))
    for name in by_remainder[:left]:
        parts[name] += 1
    return {name: count / PARTS for name, count in parts.items() if count}
