"""How much more successes vary between runs of episodes and between days than chance alone would have them.

Where days differ, or neighbouring episodes resemble one another, a detector that takes each episode for a proof of
its own alarms too often. What is measured here tells how many episodes are worth one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from math import ceil, sqrt
from typing import Any

from gapwatch.statistics.estimates.rates import SessionSums

# Runs of so many episodes in a row, whatever day they are of.
RUNS = (10, 30)
# They wait to be learned from, as days do, until something that began in them would be suspected.
WAITING_EPISODES, WAITING_RUNS = 100, (10, 4)
# An alarm that is over after so many days was a matter of days.
MOST_BAD_DAYS = 3
# A day with fewer episodes says nothing of how days differ.
FEWEST_OF_DAY = 5
# So many runs or days are remembered; then the older half counts half.
MOST_CLUSTERS = 200
MOST_EFFECT = 25.0
LEAST_VARIANCE = 1e-9
# What is assumed before anything is known, as so many more runs or days: (how many, design effect).
PRIOR_RUNS = (10.0, 1.0)
PRIOR_DAYS, PRIOR_ICC, MOST_PRIOR_EFFECT = 2.5, 0.015, 2.5
# Days differ by at most so many times what one differs from the next: a level that once changed is no unrest.
STEPS_ALLOW = 1.25
# How many standard errors are taken for chance.
SOFT_RUNS, SOFT_DAYS = 1.5, 0.75
# Beyond so many standard errors runs or days differ for certain.
CERTAIN = 1.96


def pearson_dispersion(sums: SessionSums) -> float:
    """Pearson's χ² of binomial counts by cluster: Σ (kᵢ − nᵢp)²/(nᵢ p q), with p of all together.

    By its degrees of freedom it is the dispersion of McCullagh & Nelder (1989, section 4.5), 1 if chance explains
    all. Why not an ICC: it needs a size of cluster, and days have any. Smallest n: two clusters; else 0.
    """
    if sums.sessions <= 1:
        return 0.0
    p = sums.total / sums.n
    spread = p * (1 - p)
    return max(0.0, sums.parts - p * sums.total) / spread if spread > LEAST_VARIANCE else 0.0


@dataclass
class DaySums(SessionSums):
    """Sums over days, and how far each is from the one before it: Σ (pᵢ − pⱼ)²/(p q (1/nᵢ + 1/nⱼ)), p of both."""

    steps: int = 0
    step_sum: float = 0.0
    last_total: float = 0.0
    last_n: int = 0

    def add(self, total: float, n: int) -> None:
        super().add(total, n)
        if self.last_n:
            p = (total + self.last_total) / (n + self.last_n)
            spread = p * (1 - p) * (1 / n + 1 / self.last_n)
            self.steps += 1
            if spread > LEAST_VARIANCE:
                self.step_sum += (total / n - self.last_total / self.last_n) ** 2 / spread
        self.last_total, self.last_n = total, n

    def dispersion(self) -> float:
        """Pearson's χ² of the days, or what neighbours differ by if that is far less.

        Von Neumann (1941): of days around one level both estimate the same; where the level moved once, as with a
        release that helped, only one of all steps knows of it.
        """
        chi2 = pearson_dispersion(self)
        if not self.steps:
            return chi2
        return min(chi2, STEPS_ALLOW * self.step_sum / self.steps * (self.sessions - 1))


@dataclass
class OpenRun:
    """The run, or the day, that is not over; and those over, as (total, n), that wait to be learned from."""

    n: int = 0
    total: float = 0.0
    waiting: list[list[float]] = field(default_factory=list)


@dataclass
class Spread:
    """Sums over runs of ten and of thirty episodes and over days, and the design effect that follows from them."""

    runs: list[SessionSums] = field(default_factory=lambda: [SessionSums() for _ in RUNS])
    open_runs: list[OpenRun] = field(default_factory=lambda: [OpenRun() for _ in RUNS])
    days: DaySums = field(default_factory=DaySums)
    open_day: OpenRun = field(default_factory=OpenRun)
    day: int | None = None
    run_effect: float = 1.0
    day_effect: float = 1.0
    effect: float = 1.0
    # The same where something differs for certain, else 1.
    certain_effect: float = 1.0

    @classmethod
    def load(cls, stored: dict[str, Any]) -> Spread:
        nested = {
            "runs": [SessionSums(**sums) for sums in stored["runs"]],
            "open_runs": [OpenRun(**run) for run in stored["open_runs"]],
            "days": DaySums(**stored["days"]),
            "open_day": OpenRun(**stored["open_day"]),
        }
        spread = cls(**(stored | nested))
        if "run_effect" not in stored:
            # Older versions did not keep the parts of the effect.
            spread._reckon_runs()
            spread._reckon_days()
        return spread

    def dump(self) -> dict[str, Any]:
        return asdict(self)

    def add(self, y: float, day: int | None, *, is_calm: bool) -> None:
        """Add an episode. Runs and days are learned from later, runs only if nothing is suspected by then.

        Bad days raise suspicion, so days are learned from all the same: without them they would seem alike.
        """
        run = self.open_runs[0]
        run.n += 1
        run.total += y
        if run.n == RUNS[0]:
            self._end_run(is_calm)
        if day is None:
            return
        today = self.open_day
        if day != self.day:
            if today.n >= FEWEST_OF_DAY:
                self._end(self.days, today, ceil(WAITING_EPISODES / today.n), is_calm=True)
                self._reckon_days()
            today.n, today.total, self.day = 0, 0.0, day
        today.n += 1
        today.total += y

    def forget_waiting(self) -> None:
        """Something changed: what waits is not learned from, days until it is over."""
        for run in self.open_runs:
            run.n, run.total, run.waiting = 0, 0.0, []
        self.open_day.waiting = []

    def add_alarmed(self, y: float, day: int | None) -> None:
        """Add an episode while something is wrong."""
        if day is None:
            return
        if day != self.day:
            if self.open_day.n >= FEWEST_OF_DAY:
                self.open_day.waiting.append([self.open_day.total, self.open_day.n])
            self.open_day.n, self.open_day.total, self.day = 0, 0.0, day
            # What lasts is no day like others.
            self.open_day.waiting = self.open_day.waiting[: MOST_BAD_DAYS + 1]
        self.open_day.n += 1
        self.open_day.total += y

    def end_alarm(self) -> None:
        """It is over: a few bad days that pass by themselves show how days differ."""
        if len(self.open_day.waiting) <= MOST_BAD_DAYS:
            for total, n in self.open_day.waiting:
                self.days.add(total, int(n))
        else:
            self.open_day.n, self.open_day.total = 0, 0.0
        self.open_day.waiting = []
        self._reckon_days()

    def _end_run(self, is_calm: bool) -> None:
        """A longer run consists of shorter ones."""
        short, long = self.open_runs
        long.n += short.n
        long.total += short.total
        self._end(self.runs[0], short, WAITING_RUNS[0], is_calm)
        if long.n == RUNS[1]:
            self._end(self.runs[1], long, WAITING_RUNS[1], is_calm)
        self._reckon_runs()
        if not self.days.n:
            # Of the first day nobody knows whether it is like the others, the less the longer it is.
            self._reckon_days()

    def _end(self, sums: SessionSums, run: OpenRun, waits: int, is_calm: bool) -> None:
        run.waiting.append([run.total, run.n])
        run.n, run.total = 0, 0.0
        if len(run.waiting) > waits:
            total, n = run.waiting.pop(0)
            if is_calm:
                sums.add(total, int(n))
                if sums.sessions >= MOST_CLUSTERS:
                    _halve(sums)

    def _reckon_runs(self) -> None:
        self.run_effect = max(1.0, *(_effect(sums, *PRIOR_RUNS, SOFT_RUNS) for sums in self.runs))
        self._combine()

    def _reckon_days(self) -> None:
        if self.day is not None:
            prior = min(MOST_PRIOR_EFFECT, 1 + (self.usual_day_n - 1) * PRIOR_ICC)
            self.day_effect = max(1.0, _effect(self.days, PRIOR_DAYS, prior, SOFT_DAYS if self.days.n else 0.0))
        self._combine()

    def _combine(self) -> None:
        self.effect = min(MOST_EFFECT, max(self.run_effect, self.day_effect))
        self.certain_effect = 1.0 if self.clusters is None else self.effect

    @property
    def usual_day_n(self) -> float:
        """The size of the day that an episode is usually in."""
        return self.days.squares / self.days.n if self.days.n else float(self.open_day.n)

    @property
    def day_icc(self) -> float:
        """How alike episodes of one day are taken to be."""
        return (self.day_effect - 1) / max(1.0, self.usual_day_n - 1)

    @property
    def clusters(self) -> tuple[str, float] | None:
        """What differs for certain, days or runs of episodes, with its design effect; None where nothing does."""
        known = [(f"runs of {size} episodes", sums) for size, sums in zip(RUNS, self.runs, strict=True)]
        certain = [(name, _dispersion(sums)) for name, sums in [*known, ("days", self.days)] if _is_certain(sums)]
        return max(certain, key=lambda one: one[1]) if certain else None


def _chi2(sums: SessionSums) -> float:
    return sums.dispersion() if isinstance(sums, DaySums) else pearson_dispersion(sums)


def _dispersion(sums: SessionSums) -> float:
    return _chi2(sums) / max(1, sums.sessions - 1)


def _is_certain(sums: SessionSums) -> bool:
    """Fisher's approximation: √(2χ²) is normal around √(2·freedom − 1)."""
    freedom = sums.sessions - 1
    return freedom > 1 and sqrt(2 * _chi2(sums)) - sqrt(2 * freedom - 1) > CERTAIN


def _effect(sums: SessionSums, prior_n: float, prior_effect: float, errors: float) -> float:
    """The design effect to reckon with.

    Formula: (ν₀ d₀ + χ²)/(ν₀ + freedom) less some standard errors √(2/(ν₀ + freedom)), so that chance does not
    count; the dispersion itself where it is above 1 for certain.
    """
    freedom = max(0, sums.sessions - 1)
    effect = (prior_n * prior_effect + _chi2(sums)) / (prior_n + freedom)
    if _is_certain(sums):
        return max(effect, _dispersion(sums))
    return effect - errors * sqrt(2 / (prior_n + freedom))


def _halve(sums: SessionSums) -> None:
    sums.sessions //= 2
    sums.n //= 2
    sums.total, sums.squares, sums.parts = sums.total / 2, sums.squares / 2, sums.parts / 2
    if isinstance(sums, DaySums):
        sums.steps, sums.step_sum = sums.steps // 2, sums.step_sum / 2
