"""How attempts fail: groups by phase, labels and category, whether sim knows them, and what they count for.

A group's weights are sums of the ledger's: over all groups they add up to the bar of each category.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from gapwatch.answers.answer import Answer, Interval
from gapwatch.answers.answer_kind import AnswerKind, AnswerTable, TableRow
from gapwatch.answers.comparison_side import ComparisonSide
from gapwatch.answers.failure_weights import NEEDS as WEIGHING_NEEDS
from gapwatch.answers.failure_weights import WeighedSides, weigh_sides
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields
from gapwatch.filters import AgainstFilter
from gapwatch.statistics.causes.slices import newcombe
from gapwatch.statistics.estimates.worst_first import surest_first
from gapwatch.store.read.sides import Signature
from gapwatch.taxonomy import UNATTRIBUTED

# Groups show the ledger's weights, so they need what the ledger weighs.
NEEDS = ANSWER_FIELDS | WEIGHING_NEEDS

MOST_GROUPS = 100
# A category with less of a group's failures is in its weights and not among what it points to.
LEAST_POINTED_TO = 0.1


@dataclass(frozen=True)
class FailureSide:
    """Failures of a group, and their share of all attempts of the side."""

    failures: int
    share: float | None


@dataclass(frozen=True)
class GroupWeight:
    """The failures of a group that count for a category, weighed as in the ledger.

    `excess` is per real attempt above sim, as the ledger's contribution is; its sum over the groups is that.
    """

    category: str
    real: float
    sim: float
    excess: float | None


@dataclass(frozen=True)
class FailureGroup:
    """`excess` is the share of real attempts lost this way above sim's; `seen` says which side fails so.

    `points_to` are the categories with a tenth or more of the group's failures.
    """

    phase: str | None
    labels: tuple[str, ...]
    category: str | None
    points_to: tuple[str, ...]
    weights: tuple[GroupWeight, ...]
    seen: str
    sim: FailureSide
    real: FailureSide
    excess: float | None
    interval: Interval | None


@dataclass(frozen=True)
class FailureWord:
    """The same for one phase or one label; a failure with two labels is in two words."""

    word: str | None
    points_to: tuple[str, ...]
    weights: tuple[GroupWeight, ...]
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


def answer_failures(sides: Sides, weighed: WeighedSides | None = None) -> FailuresAnswer:
    """`weighed`: the failures of both sides, where the caller has weighed them already."""
    grouping = _Grouping(sides.sim, sides.real, weighed or weigh_sides(sides))
    groups = [
        FailureGroup(key.phase, key.labels, key.category, *measures)
        for key, measures in grouping.measured(lambda signature: (signature,))
    ]
    phases = [
        FailureWord(phase, *measures)
        for phase, measures in grouping.measured(lambda signature: (signature.phase,))
    ]
    labels = [
        FailureWord(label, *measures)
        for label, measures in grouping.measured(lambda signature: dict.fromkeys(signature.labels))
    ]
    return FailuresAnswer(
        **answer_fields(sides, None if groups else "No attempt failed."),
        groups=tuple(groups[:MOST_GROUPS]),
        groups_left_out=max(0, len(groups) - MOST_GROUPS),
        phases=tuple(phases[:MOST_GROUPS]),
        labels=tuple(labels[:MOST_GROUPS]),
        method="share of all attempts, real minus sim, Newcombe; weights as in the ledger",
    )


class Measures(NamedTuple):
    points_to: tuple[str, ...]
    weights: tuple[GroupWeight, ...]
    seen: str
    sim: FailureSide
    real: FailureSide
    excess: float | None
    interval: Interval | None

    @property
    def surest_first(self) -> tuple[bool, bool, float]:
        return surest_first(None if self.interval is None else self.interval[0])


class _Grouping:
    """Counts and weights of every signature on both sides, to be put together by some key of the signature."""

    def __init__(self, sim: ComparisonSide, real: ComparisonSide, weighed: WeighedSides) -> None:
        self._n = (sim.n, real.n)
        self._counts = (sim.failure_counts, real.failure_counts)
        self._weights = (weighed.sim.failures_by_signature(), weighed.real.failures_by_signature())

    def measured(self, keys_of: Callable[[Signature], Iterable[Hashable]]) -> list[tuple[Any, Measures]]:
        """Every key with its measures, what real surely loses most by first."""
        counts: dict[Any, list[int]] = {}
        weights: dict[Any, dict[str, list[float]]] = {}
        for side in (0, 1):
            for count in self._counts[side]:
                for key in keys_of(count.signature):
                    counts.setdefault(key, [0, 0])[side] += count.failures
            for signature, by_category in self._weights[side].items():
                for key in keys_of(signature):
                    of_key = weights.setdefault(key, {})
                    for category, total in by_category.items():
                        of_key.setdefault(category, [0.0, 0.0])[side] += total
        measured = [
            (key, self._measure(in_sim, in_real, weights.get(key, {})))
            for key, (in_sim, in_real) in counts.items()
        ]
        return sorted(measured, key=lambda item: (item[1].surest_first, -item[1].real.failures, str(item[0])))

    def _measure(self, in_sim: int, in_real: int, by_category: dict[str, list[float]]) -> Measures:
        n_sim, n_real = self._n
        seen = "both" if in_sim and in_real else "sim only" if in_sim else "real only"
        sides = (
            FailureSide(in_sim, in_sim / n_sim if n_sim else None),
            FailureSide(in_real, in_real / n_real if n_real else None),
        )
        weights = self._group_weights(by_category)
        points_to = _points_to(weights)
        if not n_sim or not n_real:
            return Measures(points_to, weights, seen, *sides, None, None)
        # The excess of failures is the drop of attempts that do not fail so. Where a caller's transaction lets a
        # fold in between two reads, a group may have more failures than the cells have attempts.
        excess, interval = newcombe(max(0, n_sim - in_sim), n_sim, max(0, n_real - in_real), n_real)
        return Measures(points_to, weights, seen, *sides, excess, interval)

    def _group_weights(self, by_category: dict[str, list[float]]) -> tuple[GroupWeight, ...]:
        """Heaviest first, what has no evidence last."""
        n_sim, n_real = self._n
        weights = [
            GroupWeight(category, real, sim, real / n_real - sim / n_sim if n_sim and n_real else None)
            for category, (sim, real) in by_category.items()
        ]
        return tuple(
            sorted(weights, key=lambda w: (w.category == UNATTRIBUTED, -w.real, -w.sim, w.category)),
        )


def _points_to(weights: Iterable[GroupWeight]) -> tuple[str, ...]:
    """By the real failures of the group, or the sim ones where real has none."""
    kept = [(weight.category, weight.real) for weight in weights]
    if not any(failures for _, failures in kept):
        kept = sorted(((weight.category, weight.sim) for weight in weights), key=lambda pair: -pair[1])
    least = LEAST_POINTED_TO * sum(failures for _, failures in kept)
    return tuple(name for name, failures in kept if name != UNATTRIBUTED and failures and failures >= least)


def table_rows(answer: FailuresAnswer) -> list[TableRow]:
    return [
        ["phase", "labels", "points_to", "seen", "real", "sim", "excess", "low", "high"],
        *(
            [
                group.phase,
                " ".join(group.labels),
                " ".join(group.points_to),
                group.seen,
                group.real.failures,
                group.sim.failures,
                group.excess,
                *(group.interval or (None, None)),
            ]
            for group in answer.groups
        ),
    ]


KIND = AnswerKind(
    name="failures",
    answer_type=FailuresAnswer,
    answer=answer_failures,
    needs=NEEDS,
    summary="How attempts fail",
    gives="Failures in groups.",
    description=(
        "Failures by phase, labels and category, with their share of all attempts, and which side knows them; the "
        "surest loss first, by the lower end of `interval`."
    ),
    filter=AgainstFilter,
    table=AnswerTable("failures", table_rows),
)
