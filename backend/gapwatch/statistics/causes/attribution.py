"""The evidence of one failed episode into weights over gap categories, with the sentences that say why."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gapwatch.taxonomy import UNATTRIBUTED, Taxonomy

# Weights are whole parts of 1024: their sums and sums of squares are exact doubles, in any order, for billions of
# episodes, so a ledger adds up and a replayed rollup is the same to the last bit.
PARTS = 1024
# Claims are whole numbers of this size before they are shared out, so that no order of adding can move a weight.
UNIT = 2**20
# Fewer sim successes do not show what is usual.
FEWEST_SUCCESSES = 50
UNMEASURED_CREDIT = 0.8

Level = str | bool | float | None


@dataclass(frozen=True)
class Strengths:
    """How much of what is left of an episode a kind of evidence may claim; a person's category claims all of it.

    A label decides, a signal says what was unusual, a condition what else was so, a phase only where it failed.
    """

    label: float = 1.0
    phase: float = 1.0
    signal: float = 1.0
    condition: float = 0.5


DEFAULT_STRENGTHS = Strengths()


@dataclass(frozen=True)
class UsualRange:
    """What a signal is like in sim successes: its 1 %, 50 % and 99 % quantiles, and of how many episodes.

    `above` and `below` are the credit of values outside, from 0 to 1: the share of failures with such values that
    the values can be blamed for, as `signal_ranges.usual_ranges` measures it; 0.8 where nobody has.
    """

    low: float
    median: float
    high: float
    n: int
    share: float = 0.99
    above: float = UNMEASURED_CREDIT
    below: float = UNMEASURED_CREDIT


class FailedEpisode(NamedTuple):
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

    Rule: a person's category gets everything; else labels that point somewhere get everything, shared equally.
    Else unusual signals of what the robot met claim as much as the farthest out of them is far out, times its
    credit, shared by that; unusual symptoms (`Taxonomy.is_symptom`) the same of what is left; suspect condition
    levels half of the rest; the phase what then remains. Without a phase that is unattributed.
    A claim that points to several categories is shared equally. Signals claim once, by the farthest of a category.
    `suspects` are (condition, level), levels written as in `episode.conditions`, whose excess of failures is
    established; other levels are no evidence.
    Assumes that a measured surprise says more about the cause than the place where it showed: grasps fail for
    dim light, too. It is bookkeeping of evidence, the same for sim and real failures. `bench/attribution.py`
    measures how often it finds the cause in a world where that is known; with the phase first it found a third.
    Smallest n: a signal's range needs 50 sim successes. Without any evidence everything is unattributed.
    """
    if episode.category is not None:
        line = Evidence(f"a person chose {episode.category}", (episode.category,), 1.0)
        return Attribution({episode.category: 1.0}, (line,))
    labels = [label for label in dict.fromkeys(episode.labels) if taxonomy.categories_of("labels", label)]
    if labels:
        # A label decides; what else was seen is shown beside it and claims nothing.
        strengths = Strengths(strengths.label, 0.0, 0.0, 0.0)
    claims = _labels(labels, taxonomy, strengths.label)
    claims += _signals(episode, taxonomy, usual or {}, strengths.signal)
    left = UNIT - sum(claim.units for claim in claims)
    claims += _conditions(episode, taxonomy, suspects, int(left * strengths.condition))
    left = UNIT - sum(claim.units for claim in claims)
    claims += _phase(episode, taxonomy, int(left * strengths.phase))
    sums: dict[str, int] = {}
    for claim in claims:
        for category in claim.categories:
            sums[category] = sums.get(category, 0) + claim.units // len(claim.categories)
    return Attribution(_weights(sums), tuple(c.line() for c in claims))


@dataclass(frozen=True)
class _Claim:
    sentence: str
    categories: tuple[str, ...]
    units: int

    def line(self) -> Evidence:
        return Evidence(self.sentence, self.categories, self.units / UNIT)


def unusual(value: float, usual: UsualRange) -> tuple[float, str] | None:
    """How far a value lies outside the usual range, from 0 to its credit, and on which side; None inside it.

    Formula: min(1, 2 · distance beyond the limit / distance of the limit from the median), 1 where the usual
    values are all one; times the credit of that side. For a normal signal 1 is reached at 3.5 standard deviations.
    """
    if usual.n < FEWEST_SUCCESSES:
        return None
    for side, limit, beyond, credit in (
        ("above", usual.high, value - usual.high, usual.above),
        ("below", usual.low, usual.low - value, usual.below),
    ):
        if beyond > 1e-9 * max(abs(limit), abs(value)):
            room = abs(limit - usual.median)
            return (min(1.0, 2 * beyond / room) if room > 0 else 1.0) * credit, side
    return None


def _labels(labels: Sequence[str], taxonomy: Taxonomy, strength: float) -> list[_Claim]:
    units = int(UNIT * strength) // max(1, len(labels))
    return [_Claim(f"label {label}", taxonomy.categories_of("labels", label), units) for label in labels]


def _signals(
    episode: FailedEpisode, taxonomy: Taxonomy, usual: Mapping[str, UsualRange], strength: float
) -> list[_Claim]:
    seen: list[tuple[bool, int, str, tuple[str, ...]]] = []
    for name, value in (episode.signals or {}).items():
        found = taxonomy.categories_of("signals", name)
        far = unusual(value, usual[name]) if name in usual else None
        if found and far is not None:
            share = f"{100 * usual[name].share:g} %"
            sentence = f"signal {name} {value:g} is {far[1]} {share} of sim successes"
            seen.append((taxonomy.is_symptom(name), int(UNIT * far[0]), sentence, found))
    seen.sort(key=lambda item: (item[0], -item[1], item[2]))
    lines, left = [], int(UNIT * strength)
    for is_symptom in (False, True):
        rank = [item[1:] for item in seen if item[0] is is_symptom]
        # Five force signals are one piece of evidence: the farthest of a category speaks, others are only shown.
        farthest: dict[tuple[str, ...], int] = {}
        for far_out, _, found in rank:
            farthest.setdefault(found, far_out)
        total = max(1, sum(farthest.values()))
        together = left * (rank[0][0] if rank else 0) // UNIT
        for far_out, sentence, found in rank:
            speaks = farthest.pop(found, None) is not None
            lines.append(_Claim(sentence, found, together * far_out // total if speaks else 0))
        left -= together
    return lines


def _conditions(
    episode: FailedEpisode, taxonomy: Taxonomy, suspects: Collection[tuple[str, Level]], most: int
) -> list[_Claim]:
    seen = [
        (f"{name} {level}, where real fails more", found)
        for name, level in (episode.conditions or {}).items()
        if (name, level) in suspects and (found := taxonomy.categories_of("conditions", name))
    ]
    return [_Claim(sentence, found, most // len(seen)) for sentence, found in seen]


def _phase(episode: FailedEpisode, taxonomy: Taxonomy, most: int) -> list[_Claim]:
    found = taxonomy.categories_of("phases", episode.phase) if episode.phase is not None else ()
    return [_Claim(f"failed in phase {episode.phase}", found, most)] if found else []


def _weights(claims: Mapping[str, int]) -> dict[str, float]:
    """Claims as whole parts of 1024 that sum to 1; what rounding leaves goes to the largest remainders."""
    total = sum(claims.values())
    whole = max(total, UNIT)
    shares = {name: claim * PARTS for name, claim in claims.items() if claim > 0}
    shares[UNATTRIBUTED] = (whole - total) * PARTS
    parts = {name: share // whole for name, share in shares.items()}
    left = PARTS - sum(parts.values())
    for name in sorted(shares, key=lambda name: (-(shares[name] % whole), name))[:left]:
        parts[name] += 1
    return {name: count / PARTS for name, count in parts.items() if count}
