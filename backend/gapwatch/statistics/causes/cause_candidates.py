"""What a model of failure may be made of: signals of causes beyond the usual, and levels of conditions.

Every candidate is zero at what is usual in sim and rises towards what may do harm, so that coefficients are sought
above zero only: a latency below sim's accuses nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gapwatch.levels import MISSING
from gapwatch.statistics.causes.failed_episodes import Array
from gapwatch.statistics.causes.side_sample import SideSample
from gapwatch.taxonomy import Taxonomy

# What two sides must agree on is evidence, too: as a signal of this name, in how many fields an episode's contract
# differs from that of the baseline, 0 for sim episodes themselves. The taxonomy knows it as interface_contract.
CONTRACT_SIGNAL = "contract_fields_differing"
Kind = Literal["above", "below", "level", "level in real"]
# Fewer successes do not show what is usual, and fewer episodes nothing about a level.
FEWEST_SUCCESSES, FEWEST_AT_LEVEL = 30, 5
FARTHEST = 40.0
HINGES = (0.0, 2.0)
# Real is sim times a thousand (or a million) to within this factor, middle and spread: milliseconds for seconds.
LIKE_AFTER_UNITS = 2.0
MOST_LEVELS = 12


@dataclass(frozen=True)
class Scale:
    """What a signal is usually like in sim successes, or in real ones where sim has none: 1, 50, 99 %, spread."""

    low: float
    median: float
    high: float
    spread: float
    simulated: bool


@dataclass(frozen=True)
class Candidate:
    """One possible cause. `level` for conditions, `beyond` (in spreads) for signals; zero where usual."""

    kind: Kind
    name: str
    categories: tuple[str, ...]
    level: str = ""
    beyond: float = 0.0
    scale: Scale | None = None
    simulated: bool = True

    @property
    def needs_being_real(self) -> bool:
        """Whether it is there in real only, so that only differences within real can speak for it."""
        return self.kind == "level in real" or not self.simulated


def quantiles(values: Array, shares: Sequence[float]) -> list[float]:
    """As `numpy.quantile` has them; a ledger asks for a hundred, and most of numpy's time goes into checking."""
    ordered = np.sort(values)
    found = []
    for share in shares:
        place = share * (len(ordered) - 1)
        below = int(place)
        low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
        found.append(low + (place - below) * (high - low))
    return found


def signal_scale(sim: Array, real: Array) -> Scale | None:
    """From successes. A signal that never varies in sim takes the spread of the real ones about sim's median."""
    values, simulated = (sim, True) if len(sim) >= FEWEST_SUCCESSES else (real, False)
    if len(values) < FEWEST_SUCCESSES:
        return None
    first, low, median, high, last = quantiles(values, (0.01, 0.16, 0.5, 0.84, 0.99))
    spread = (high - low) / 2
    if spread <= 1e-9 * max(1.0, abs(median)):
        away = np.abs(real - median)
        away = away[away > 1e-9 * max(1.0, abs(median))]
        if not len(away):
            return None
        spread = float(np.median(away)) / 2
    return Scale(first, median, last, spread, simulated)


def signal_distance(values: Array, candidate: Candidate) -> Array:
    """How far beyond, towards harm; NaN where nothing was measured."""
    if candidate.scale is None:
        return np.full(len(values), np.nan)
    z = np.clip((values - candidate.scale.median) / candidate.scale.spread, -FARTHEST, FARTHEST)
    if candidate.kind == "below":
        z = -z
    return np.maximum(z - candidate.beyond, 0.0)


def in_other_units(sim: Array, real: Array) -> bool:
    """Whether one side's numbers are the other's in thousandths or thousands: a way of writing, not a gap."""
    if min(len(sim), len(real)) < FEWEST_SUCCESSES:
        return False
    spreads = [quantiles(values, (0.16, 0.5, 0.84)) for values in (sim, real)]
    sizes = [(abs(middle), (high - low) / 2) for low, middle, high in spreads]
    if min(min(size) for size in sizes) <= 0:
        return False
    steps = np.log10([sizes[1][0] / sizes[0][0], sizes[1][1] / sizes[0][1]]) / 3
    whole = np.round(steps[0])
    return bool(whole != 0 and np.all(np.abs(steps - whole) * 3 <= np.log10(LIKE_AFTER_UNITS)))


def signals_in_other_units(sim: SideSample, real: SideSample) -> tuple[str, ...]:
    names = sorted({*sim.succeeded.signals} & {*real.succeeded.signals})
    return tuple(
        name
        for name in names
        if in_other_units(*(_measured(side.succeeded.signals, name) for side in (sim, real)))
    )


def find_candidates(
    sim: SideSample, real: SideSample, taxonomy: Taxonomy, other_units: Sequence[str]
) -> list[Candidate]:
    """All that both sides, or real alone, have written down often enough; signals in other units are left out."""
    return [*_signals(sim, real, taxonomy, other_units), *_levels(sim, real, taxonomy)]


def _signals(
    sim: SideSample, real: SideSample, taxonomy: Taxonomy, other_units: Sequence[str]
) -> Iterable[Candidate]:
    for name in sorted({*sim.succeeded.signals, *real.succeeded.signals, *real.failed.signals}):
        categories = taxonomy.categories_of("signals", name)
        if not categories or taxonomy.is_symptom(name) or name in other_units:
            continue
        in_sim, in_real = (_measured(side.succeeded.signals, name) for side in (sim, real))
        scale = signal_scale(in_sim, in_real)
        if scale is None or not len(in_real):
            continue
        for kind in taxonomy.harmful_sides(name):
            for beyond in HINGES:
                yield Candidate(kind, name, categories, beyond=beyond, scale=scale, simulated=scale.simulated)


def _levels(sim: SideSample, real: SideSample, taxonomy: Taxonomy) -> Iterable[Candidate]:
    for name in sorted({*real.succeeded.conditions, *real.failed.conditions}):
        counts: dict[str, list[int]] = {}
        for number, side in enumerate((sim, real)):
            for batch in (side.succeeded, side.failed):
                for level, n in Counter(batch.conditions.get(name, ())).items():
                    if level is not None and level != MISSING:
                        counts.setdefault(str(level), [0, 0])[number] += n
        if len(counts) <= 1:
            continue
        categories = taxonomy.categories_of("conditions", name)
        common = sorted(counts, key=lambda level: -sum(counts[level]))[:MOST_LEVELS]
        for level in sorted(common):
            in_sim, in_real = counts[level]
            if in_sim + in_real < FEWEST_AT_LEVEL or not in_real:
                continue
            yield Candidate("level", name, categories, level, simulated=in_sim > 0)
            if in_sim and in_real >= FEWEST_AT_LEVEL:
                yield Candidate("level in real", name, categories, level)


def _measured(signals: Mapping[str, Array], name: str) -> Array:
    values = signals.get(name, np.zeros(0))
    return np.asarray(values[np.isfinite(values)])
