"""A detector at work: what is stored of it, the episodes it may have to name, and its evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gapwatch.statistics.change.drift import Crossing, RobotLimit
from gapwatch.statistics.estimates.rates import wilson
from gapwatch.watching.detectors import Detector
from gapwatch.watching.rule_kind import RuleSeries
from gapwatch.watching.rules import Rule
from gapwatch.watching.series import RATE_SERIES, SeenEpisode, level_name, time_words
from gapwatch.watching.sessions import Sessions

# Over about so many episodes the share of missing levels is taken, and below this it is not told.
MISSING_OVER, LEAST_MISSING = 50, 0.1
# Shares of levels are of blocks of so many episodes, against at least so many before; less of a rise is not told.
SHARES_OVER, FEWEST_BEFORE, LEAST_RISE, LOOKED_AT_EVERY = 50, 100, 0.2, 10
MOST_LEVELS = 64


@dataclass
class StoredDetector:
    """A detector as it is stored."""

    params: dict[str, Any]
    state: dict[str, Any]
    restart: bool = False


@dataclass(frozen=True)
class Finding:
    """A suspicion, breach or recovery of a series under a rule; `index` is the deciding episode's in the batch."""

    rule: Rule
    series: str
    input: Literal["suspect", "breach", "recovery"]
    index: int
    evidence: dict[str, Any]


@dataclass
class MissingLevels:
    """The share of the newest episodes that have a level which sim has not, and the last such level."""

    share: float = 0.0
    level: str | None = None
    n: int = 0

    def add(self, level: str | None) -> None:
        self.n = min(MISSING_OVER, self.n + 1)
        self.share += ((level is not None) - self.share) / self.n
        self.level = level or self.level

    def facts(self) -> dict[str, Any]:
        return {} if self.share < LEAST_MISSING else {"mix": {"share": self.share, "level": self.level}}


@dataclass
class LevelShares:
    """How often each level came in the newest episodes and before: a mix that changed is told with a fall."""

    n: int = 0
    before_n: int = 0
    newest: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    before: dict[str, int] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def add(self, levels: Mapping[str, str]) -> None:
        for condition, level in levels.items():
            name = level_name(condition, level)
            self.newest[name] = self.newest.get(name, 0) + 1
        self.n += 1
        if self.n % SHARES_OVER == 0:
            for name, count in self.last.items():
                if name in self.before or len(self.before) < MOST_LEVELS:
                    self.before[name] = self.before.get(name, 0) + count
            self.before_n += SHARES_OVER if self.last else 0
            self.newest, self.last = {}, self.newest
        if self.n % LOOKED_AT_EVERY == 0:
            self.facts = self._facts()

    def _facts(self) -> dict[str, Any]:
        """The level that has become more frequent by most, if by much; nothing while too little is known."""
        if self.before_n < FEWEST_BEFORE or not self.last:
            return {}
        n = self.n % SHARES_OVER + SHARES_OVER
        rises = {
            name: (self.newest.get(name, 0) + count) / n - self.before.get(name, 0) / self.before_n
            for name, count in self.last.items()
        }
        level = max(rises, key=rises.__getitem__)
        if rises[level] < LEAST_RISE:
            return {}
        share = self.before.get(level, 0) / self.before_n
        return {"mix": {"share": share + rises[level], "level": level, "before": share}}


@dataclass
class DetectorRun:
    """A detector at work, with the times of the episodes it may still have to name."""

    rule: Rule
    series: RuleSeries
    detector: Detector
    marks: dict[str, list[str]]
    first: list[str] | None
    pending_until: int | None = None
    pending_evidence: dict[str, Any] | None = None
    policy_id: int | None = None
    # Values with time and id that wait for their block to be full.
    waiting: list[list[Any]] = field(default_factory=list)
    sessions: Sessions = field(default_factory=Sessions)
    # By what each episode of the batch is judged as one of its robot.
    limits: list[RobotLimit] = field(default_factory=list)
    mix: MissingLevels = field(default_factory=MissingLevels)
    shares: LevelShares = field(default_factory=LevelShares)
    findings: list[Finding] = field(default_factory=list)


def keep_marks(run: DetectorRun, mark_of: Callable[[int], list[str] | None]) -> None:
    """Keep only the episodes that the detector may still name."""
    kept = {str(number): mark_of(number) for number in set(run.detector.candidates()) if number < run.detector.n}
    run.marks = {number: mark for number, mark in kept.items() if mark is not None}


def evidence_of(
    run: DetectorRun, crossing: Crossing, episode: SeenEpisode, mark_of: Callable[[int], list[str] | None]
) -> dict[str, Any]:
    change = mark_of(crossing.change)
    params = run.rule.params
    promise = {name: getattr(params, name) for name in ("arl", "alpha") if hasattr(params, name)}
    evidence: dict[str, Any] = {
        "series": run.series.name,
        "statistic": crossing.statistic,
        "e_value": crossing.value,
        "threshold": crossing.threshold,
        **promise,
        **crossing.facts,
        "decided_by": {"episode": episode.id, "at": time_words(episode.started_at)},
    }
    since = crossing.facts.get("since", {})
    if run.series.name.partition("@")[0] in RATE_SERIES and since.get("value") is not None:
        # Episodes of one session are worth fewer independent ones.
        worth = crossing.facts.get("sessions") or crossing.facts.get("spread") or {}
        n = since["n"] / worth.get("design_effect", 1.0)
        low, high = wilson(since["value"] * n, n)
        evidence["since"] = since | {"interval": [low, high]}
    if change is not None and crossing.kind == "breach":
        evidence["change_point"] = {"at": change[0], "first_episode": change[1]}
    reference = evidence.get("reference")
    if run.series.level is not None:
        evidence["level"] = run.series.level
    if run.series.robot is not None and reference is not None:
        evidence["robot"] = run.series.robot
        evidence["reference"] = {"n": reference["n"], "value": reference["value"], "limit": reference["limit"]}
        evidence["reference"]["side"] = "all robots"
    elif reference is not None and "end" in reference and run.first is not None:
        end = mark_of(reference["end"])
        known = {name: value for name, value in reference.items() if name != "end"}
        evidence["reference"] = known | {"from": run.first[0], "to": None if end is None else end[0]}
    return evidence
