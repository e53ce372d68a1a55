"""What is usual under which circumstances: robots, and levels of conditions, whose success differs for certain.

A robot of 78 % that takes over from one of 95 % is no change, nor are more hard cases than last week.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import sqrt
from typing import Any

MOST_KEYS = 32
# A stratum is known from so many episodes, and learned from so many.
FEWEST, MOST = 30, 200
LEARN_EVERY = 50
# Levels known from fewer episodes are expected where sim has them.
FEWEST_OF_LEVELS = 100
# A robot is judged by itself once it is known from so many episodes.
FEWEST_OF_ROBOT, ROBOT_PRIOR_N = 60, 100.0
# With this chance at most equal strata are taken for different.
CERTAIN = 0.01
# A rate is drawn towards the common one as if so many more episodes had it.
PRIOR_N = 10.0


@dataclass(frozen=True, slots=True)
class Circumstance:
    """Of one episode: its day, and its stratum by each factor (its robot, its levels), None where it has none.

    `sim_shift` is by how much sim lies above its mean under its levels: all that is known of levels that are new.
    """

    day: int
    strata: tuple[str | None, ...] = ()
    sim_shift: float = 0.0


@dataclass
class Factor:
    """Episodes and successes by stratum. `shifts`, by how much each differs, are empty while they may be equal."""

    counts: dict[str, list[float]] = field(default_factory=dict)
    shifts: dict[str, float] = field(default_factory=dict)

    def learn(self, stratum: str | None, y: float) -> None:
        if stratum is None:
            return
        count = self.counts.get(stratum)
        if count is None:
            if len(self.counts) >= MOST_KEYS:
                return
            count = self.counts[stratum] = [0, 0.0]
        count[0] += 1
        count[1] += y

    def compare(self, reference: float | None, design_effect: float) -> None:
        """Pearson's χ² of equal rates, by the design effect; the shifts from the reference where they are not."""
        from scipy.special import chdtrc

        known = {name: (n, total) for name, (n, total) in self.counts.items() if n >= FEWEST}
        all_n, all_total = sum(n for n, _ in known.values()), sum(total for _, total in known.values())
        self.shifts = {}
        if len(known) <= 1:
            return
        p = all_total / all_n
        spread = p * (1 - p)
        if spread <= 0:
            return
        chi2 = sum((total - n * p) ** 2 / n for n, total in known.values()) / spread / design_effect
        if chdtrc(len(known) - 1, chi2) < CERTAIN:
            base = p if reference is None else reference
            # What is hardly known is taken a standard error lower.
            errors = {name: sqrt(spread / n) * max(0.0, 1 - n / MOST) for name, (n, _) in known.items()}
            self.shifts = {
                name: (total + PRIOR_N * p) / (n + PRIOR_N) - base - errors[name]
                for name, (n, total) in known.items()
            }


@dataclass
class KnownStrata:
    """The factors of a series. What each adds is added up: strata of two factors are not crossed."""

    factors: list[Factor] = field(default_factory=list)
    learned: int = 0

    @classmethod
    def load(cls, stored: dict[str, Any]) -> KnownStrata:
        return cls([Factor(**factor) for factor in stored["factors"]], stored["learned"])

    def dump(self) -> dict[str, Any]:
        return asdict(self)

    def learn(
        self,
        strata: Sequence[str | None],
        y: float,
        reference: float | None,
        design_effect: float,
        *,
        is_complete: bool,
    ) -> None:
        """Learn from an episode; once the reference is complete only of strata that are not well known."""
        while len(self.factors) < len(strata):
            self.factors.append(Factor())
        for factor, stratum in zip(self.factors, strata, strict=False):
            if not is_complete or factor.counts.get(stratum or "", [0])[0] < MOST:
                factor.learn(stratum, y)
        self.learned += 1
        if self.learned % LEARN_EVERY == 0:
            for factor in self.factors:
                factor.compare(reference, design_effect)

    def robot_shift(self, here: Circumstance, reference: float) -> float | None:
        """By how much a robot, the first of the strata, is expected above the reference; None if it is new.

        Its own rate where that is lower, drawn towards the reference as if ROBOT_PRIOR_N episodes had had that,
        whether or not robots differ for certain; and what the other factors add.
        """
        count = self.factors[0].counts.get(here.strata[0] or "") if self.factors else None
        if count is None or count[0] < FEWEST_OF_ROBOT:
            return None
        n, total = count
        own = (total - n * reference) / (n + ROBOT_PRIOR_N)
        return min(0.0, own) + self._levels_shift(here)

    def shift_at(self, here: Circumstance) -> float:
        """By how much an episode is expected above or below the reference; 0 where nothing is known."""
        if here.sim_shift < 0:
            return self.shift(here.strata[:1]) + self._levels_shift(here)
        return self.shift(here.strata)

    def _levels_shift(self, here: Circumstance) -> float:
        """What the factors after the robot add. Of levels that are new only sim knows."""
        if here.sim_shift < 0 and len(self.factors) > 1:
            cell, known = here.strata[1] or "", self.factors[1]
            if cell not in known.shifts and known.counts.get(cell, (0,))[0] < FEWEST_OF_LEVELS:
                return here.sim_shift
        return self.shift((None, *here.strata[1:]))

    def shift(self, strata: Sequence[str | None]) -> float:
        """By how much an episode of these strata is expected above or below the reference; 0 for unknown ones."""
        total = 0.0
        for factor, stratum in zip(self.factors, strata, strict=False):
            if factor.shifts and stratum is not None:
                total += factor.shifts.get(stratum, 0.0)
        return total
