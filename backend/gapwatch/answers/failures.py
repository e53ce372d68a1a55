"""How attempts fail: groups by phase, labels and category, and whether sim knows them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from gapwatch.answers.answer import Answer, Interval
from gapwatch.answers.comparison_side import ComparisonSide
from gapwatch.answers.needs import Need
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields
from gapwatch.statistics.causes.slices import newcombe
from gapwatch.store.read.sides import Signature
from gapwatch.taxonomy import Taxonomy

NEEDS = ANSWER_FIELDS | Need.FAILURE_COUNTS

MOST_GROUPS = 100


@dataclass(frozen=True)
class FailureSide:
    """Failures of a group, and their share of all attempts of the side."""

    failures: int
    share: float | None


@dataclass(frozen=True)
class FailureGroup:
    """`excess` is the share of real attempts lost this way above sim's; `seen` says which side fails so."""

    phase: str | None
    labels: tuple[str, ...]
    category: str | None
    points_to: tuple[str, ...]
    seen: str
    sim: FailureSide
    real: FailureSide
    excess: float | None
    interval: Interval | None


@dataclass(frozen=True)
class FailureWord:
    """The same for one phase or one label."""

    word: str | None
    points_to: tuple[str, ...]
    seen: str
    sim: FailureSide
    real: FailureSide
    excess: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class FailuresAnswer(Answer):
    groups: tuple[FailureGroup, ...]
    groups_left_out: int
    phases: tuple[FailureWord, ...]
    labels: tuple[FailureWord, ...]
    method: str


def answer_failures(sides: Sides) -> FailuresAnswer:
    sim, real, taxonomy = sides.sim, sides.real, sides.taxonomy
    groups = [
        FailureGroup(key.phase, key.labels, key.category, _points_to(key, taxonomy), *measures)
        for key, measures in _measured(sim, real, lambda signature: (signature,))
    ]
    phases = [
        FailureWord(phase, () if phase is None else taxonomy.categories_of("phases", phase), *measures)
        for phase, measures in _measured(sim, real, lambda signature: (signature.phase,))
    ]
    labels = [
        FailureWord(label, taxonomy.categories_of("labels", label), *measures)
        for label, measures in _measured(sim, real, lambda signature: dict.fromkeys(signature.labels))
    ]
    return FailuresAnswer(
        **answer_fields(sides, None if groups else "No attempt failed."),
        groups=tuple(groups[:MOST_GROUPS]),
        groups_left_out=max(0, len(groups) - MOST_GROUPS),
        phases=tuple(phases[:MOST_GROUPS]),
        labels=tuple(labels[:MOST_GROUPS]),
        method="share of all attempts, real minus sim, Newcombe",
    )


Measures = tuple[str, FailureSide, FailureSide, float | None, Interval | None]


def _measured(
    sim: ComparisonSide, real: ComparisonSide, keys_of: Callable[[Signature], Iterable[Hashable]]
) -> list[tuple[Any, Measures]]:
    """Every key with its measures, what real loses most by first."""
    counts: dict[Any, list[int]] = {}
    for index, half in enumerate((sim, real)):
        for count in half.failure_counts:
            for key in keys_of(count.signature):
                counts.setdefault(key, [0, 0])[index] += count.failures
    found = [(key, _measure(in_sim, sim.n, in_real, real.n)) for key, (in_sim, in_real) in counts.items()]
    return sorted(found, key=lambda item: (-(item[1][3] or 0.0), -item[1][2].failures, str(item[0])))


def _measure(in_sim: int, n_sim: int, in_real: int, n_real: int) -> Measures:
    seen = "both" if in_sim and in_real else "sim only" if in_sim else "real only"
    sides = (
        FailureSide(in_sim, in_sim / n_sim if n_sim else None),
        FailureSide(in_real, in_real / n_real if n_real else None),
    )
    if not n_sim or not n_real:
        return seen, *sides, None, None
    # The excess of failures is the drop of attempts that do not fail so. Where a caller's transaction lets a fold
    # in between two reads, a group may have more failures than the cells have attempts.
    excess, interval = newcombe(max(0, n_sim - in_sim), n_sim, max(0, n_real - in_real), n_real)
    return seen, *sides, excess, interval


def _points_to(signature: Signature, taxonomy: Taxonomy) -> tuple[str, ...]:
    """Where a person, else the labels, else the phase point: the rule by which the ledger weighs."""
    if signature.category is not None:
        return (signature.category,)
    by_label = [c for label in signature.labels for c in taxonomy.categories_of("labels", label)]
    if by_label or signature.phase is None:
        return tuple(dict.fromkeys(by_label))
    return taxonomy.categories_of("phases", signature.phase)
