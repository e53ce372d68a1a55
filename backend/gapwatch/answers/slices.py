"""Where it is lost: the drop at each level of each condition and at pairs of levels, false discoveries bounded."""

from __future__ import annotations

from dataclasses import dataclass

from gapwatch.answers.answer import Answer, Interval
from gapwatch.answers.comparison import Comparison
from gapwatch.answers.strata import level_counts, pair_counts
from gapwatch.levels import MISSING
from gapwatch.statistics.causes.slices import (
    Counts,
    Slice,
    slice_drops,
)

MOST_SLICES = 200
# Pairs of so many conditions, the most telling first, and levels that both sides have tried so often.
MOST_PAIRED = 4
FEWEST_IN_A_PAIR = 10
MOST_PAIRS = 24


@dataclass(frozen=True)
class SliceSide:
    n: int
    successes: int
    value: float | None


@dataclass(frozen=True)
class SliceAnswer:
    """One level. `excess` is its drop minus the drop at the other levels; a suspect is worse and stands out."""

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


@dataclass(frozen=True, kw_only=True)
class SlicesAnswer(Answer):
    slices: tuple[SliceAnswer, ...]
    pairs: tuple[SliceAnswer, ...]
    left_out: int
    pooled: tuple[str, ...]
    method: str


def answer_slices(comparison: Comparison) -> SlicesAnswer:
    counts = _counted(comparison)
    found = _singles(comparison)
    pairs = ([], {}) if comparison.brief else _pairs(comparison, found)
    return SlicesAnswer(
        **comparison.told(None if counts else "No episode names a condition."),
        slices=tuple(_told(comparison, one, counts[one.condition, one.level]) for one in found),
        pairs=tuple(_told(comparison, one, pairs[1][one.condition, one.level]) for one in pairs[0]),
        left_out=max(0, len(counts) - len(found)),
        pooled=tuple(sorted(comparison.pooled)),
        method="Newcombe per level; exact or score test, Benjamini–Hochberg over all levels",
    )


def suspects_of(comparison: Comparison) -> list[tuple[str, str]]:
    """The levels where real fails more than elsewhere, established; the ledger takes them as evidence."""
    return [(one.condition, one.level) for one in _singles(comparison) if one.is_suspect]


def _counted(comparison: Comparison) -> dict[tuple[str, str], Counts]:
    return comparison.once("levels", lambda: level_counts(comparison.sim.read.table))


def _singles(comparison: Comparison) -> list[Slice]:
    """Of more levels than can be read, the most tried ones: a level of three episodes settles nothing."""
    return comparison.once("slices", lambda: _most_tried(_counted(comparison)))


def _most_tried(counts: dict[tuple[str, str], Counts]) -> list[Slice]:
    most = sorted(counts, key=lambda key: (-counts[key][3], -counts[key][1], key))[:MOST_SLICES]
    return slice_drops({key: counts[key] for key in most})


def _pairs(comparison: Comparison, singles: list[Slice]) -> tuple[list[Slice], dict[tuple[str, str], Counts]]:
    shared = [one for one in singles if one.drop is not None and one.level != MISSING]
    names = list(dict.fromkeys(one.condition for one in shared))[:MOST_PAIRED]
    counts = {
        key: c
        for key, c in pair_counts(comparison.sim.read.table, names).items()
        if min(c[1], c[3]) >= FEWEST_IN_A_PAIR
    }
    most = sorted(counts, key=lambda key: (-counts[key][3], key))[:MOST_PAIRS]
    kept = {key: counts[key] for key in most}
    return slice_drops(kept), kept


def _told(comparison: Comparison, one: Slice, c: Counts) -> SliceAnswer:
    names = one.condition.split(" × ")
    found = [category for name in names for category in comparison.taxonomy.categories_of("conditions", name)]
    return SliceAnswer(
        one.condition,
        one.level,
        SliceSide(c[1], c[0], c[0] / c[1] if c[1] else None),
        SliceSide(c[3], c[2], c[2] / c[3] if c[3] else None),
        "both" if c[1] and c[3] else "sim only" if c[1] else "real only",
        one.drop,
        one.interval,
        one.q_value,
        one.verdict,
        one.excess,
        one.excess_interval,
        one.is_suspect,
        tuple(dict.fromkeys(found)),
        one.reason,
    )
