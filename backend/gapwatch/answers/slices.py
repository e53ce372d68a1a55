"""Where it is lost: the drop at each level of each condition and at pairs of levels, false discoveries bounded."""

from __future__ import annotations

from dataclasses import dataclass

from gapwatch.answers.answer import Answer, Interval
from gapwatch.answers.answer_kind import AnswerKind, AnswerTable, TableRow
from gapwatch.answers.cell_table import CellTable
from gapwatch.answers.needs import Need
from gapwatch.answers.populations import Population
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields
from gapwatch.answers.strata import pair_counts
from gapwatch.filters import SlicesFilter
from gapwatch.levels import MISSING
from gapwatch.statistics.causes.slices import (
    Counts,
    Crowding,
    Slice,
    slice_drops,
)
from gapwatch.statistics.estimates.rates import wilson
from gapwatch.statistics.estimates.worst_first import FEWEST_LEADING
from gapwatch.taxonomy import Taxonomy

NEEDS = ANSWER_FIELDS | Need.CELLS | Need.SESSIONS | Need.PLACES

Crowded = tuple[Crowding | None, Crowding | None]

# Pairs of so many conditions, the most telling first, and levels that both sides have tried so often.
MOST_PAIRED = 4
FEWEST_IN_A_PAIR = 10
MOST_PAIRS = 24


@dataclass(frozen=True)
class SliceSide:
    """Success at a level on one side, with Wilson's interval of as many episodes as it is worth."""

    n: int
    successes: int
    value: float | None
    interval: Interval | None


@dataclass(frozen=True)
class SliceAnswer:
    """One level. `excess` is its drop minus the drop at the other levels; a suspect is worse and stands out.

    One that stands out only because it comes with a suspect of another condition `goes_with` that, and is none.
    `sure_loss` is the lower end of the drop, or where sim never tried the level, of the drop from all of sim.
    Levels are ordered by it, except that those with `few` episodes (under 20 on a side that tried it) and those
    that are `shared` by nearly all episodes come last.
    """

    condition: str
    level: str
    sim: SliceSide
    real: SliceSide
    seen: str
    drop: float | None
    interval: Interval | None
    q_value: float | None
    verdict: str
    excess: float | None
    excess_interval: Interval | None
    suspect: bool
    categories: tuple[str, ...]
    reason: str | None
    sure_loss: float | None = None
    few: bool = False
    shared: bool = False
    goes_with: str | None = None


@dataclass(frozen=True, kw_only=True)
class SlicesAnswer(Answer):
    slices: tuple[SliceAnswer, ...]
    pairs: tuple[SliceAnswer, ...]
    left_out: int
    pooled: tuple[str, ...]
    # Whom the intervals and verdicts speak for.
    population: Population
    method: str
    # A level with fewer episodes is marked as having `few`.
    fewest: int = FEWEST_LEADING


def answer_slices(sides: Sides, *, level_pairs: bool = True) -> SlicesAnswer:
    """`level_pairs`: also look at pairs of levels, which a page does not show."""
    counts, drops = sides.level_counts, sides.level_drops
    crowding = (sides.sim.crowding, sides.real.crowding)
    pairs, pair_counts = _pairs(sides.table, drops, crowding) if level_pairs else ([], {})
    method = "Newcombe per level; exact or score test, Benjamini–Hochberg over all levels"
    population = sides.real.describe(sides.real.population)
    if crowding != (None, None):
        method += f", clustered by {population.by or 'session'}"
    return SlicesAnswer(
        **answer_fields(sides, None if counts else "No episode names a condition."),
        slices=tuple(_slice(sides.taxonomy, drop, counts[drop.condition, drop.level], crowding) for drop in drops),
        pairs=tuple(
            _slice(sides.taxonomy, drop, pair_counts[drop.condition, drop.level], crowding) for drop in pairs
        ),
        left_out=max(0, len(counts) - len(drops)),
        pooled=tuple(sorted(sides.pooled)),
        population=population,
        method=f"{method}; suspects adjusted for one another",
    )


def suspects_of(sides: Sides) -> list[tuple[str, str]]:
    """The levels where real fails more than elsewhere, established; the ledger takes them as evidence."""
    return [(drop.condition, drop.level) for drop in sides.level_drops if drop.is_suspect]


def _pairs(
    table: CellTable, singles: list[Slice], crowding: Crowded
) -> tuple[list[Slice], dict[tuple[str, str], Counts]]:
    shared = [drop for drop in singles if drop.drop is not None and drop.level != MISSING]
    names = list(dict.fromkeys(drop.condition for drop in shared))[:MOST_PAIRED]
    counts = {key: c for key, c in pair_counts(table, names).items() if min(c[1], c[3]) >= FEWEST_IN_A_PAIR}
    most = sorted(counts, key=lambda key: (-counts[key][3], key))[:MOST_PAIRS]
    kept = {key: counts[key] for key in most}
    return slice_drops(kept, crowding=crowding), kept


def _slice(taxonomy: Taxonomy, drop: Slice, c: Counts, crowding: Crowded) -> SliceAnswer:
    names = drop.condition.split(" × ")
    categories = [category for name in names for category in taxonomy.categories_of("conditions", name)]
    return SliceAnswer(
        drop.condition,
        drop.level,
        _side(c[0], c[1], crowding[0]),
        _side(c[2], c[3], crowding[1]),
        "both" if c[1] and c[3] else "sim only" if c[1] else "real only",
        drop.drop,
        drop.interval,
        drop.q_value,
        drop.verdict,
        drop.excess,
        drop.excess_interval,
        drop.is_suspect,
        tuple(dict.fromkeys(categories)),
        drop.reason,
        drop.sure_loss,
        drop.is_few,
        drop.is_shared,
        drop.goes_with,
    )


def _side(successes: int, n: int, crowding: Crowding | None) -> SliceSide:
    if not n:
        return SliceSide(0, 0, None, None)
    effect = 1.0 if crowding is None else crowding.effect(n)
    return SliceSide(n, successes, successes / n, wilson(successes / effect, n / effect))


def table_rows(answer: SlicesAnswer) -> list[TableRow]:
    return [
        [
            "condition",
            "level",
            "seen",
            "n_sim",
            "sim",
            "n_real",
            "real",
            "drop",
            "low",
            "high",
            "q_value",
            "verdict",
            "suspect",
            "few",
            "shared",
            "population",
        ],
        *(
            [
                level.condition,
                level.level,
                level.seen,
                level.sim.n,
                level.sim.value,
                level.real.n,
                level.real.value,
                level.drop,
                *(level.interval or (None, None)),
                level.q_value,
                level.verdict,
                level.suspect,
                level.few,
                level.shared,
                answer.population.words,
            ]
            for level in answer.slices
        ),
    ]


KIND = AnswerKind(
    name="slices",
    answer_type=SlicesAnswer,
    answer=answer_slices,
    needs=NEEDS,
    summary="Where it is lost",
    gives="The drop per condition level.",
    description=(
        "The drop at each level of each condition and at pairs of levels, false discoveries bounded at 5 %.\n\n"
        "The surest loss first: by `sure_loss`, the lower end of the drop. Levels with `few` episodes, under 20 "
        "on a side that tried it, and levels that are `shared` by nearly all episodes come last.\n\n"
        "Conditions that come together are told apart: a level that is worse only as far as another one explains "
        "it `goes_with` that one and is no suspect."
    ),
    filter=SlicesFilter,
    table=AnswerTable("conditions", table_rows),
)
