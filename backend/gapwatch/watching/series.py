"""What can be watched in an episode: named series of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

OUTCOME_VALUES = {"success": 1.0, "failure": 0.0}
COUNTS = ("violations", "interventions", "overrides")
# Stands between a series and the robot that it is of: `success@robot:osaka-3`.
OF_ROBOT = "@robot:"
# And the level of a condition: `success@level:light=dim`.
OF_LEVEL = "@level:"
# Numbers from 0 to 1 by nature.
RATE_SERIES = ("success", *COUNTS)


@dataclass(frozen=True, slots=True)
class SeenEpisode:
    """One episode of a deployment, as far as detectors look at it."""

    id: str
    started_at: datetime
    received_at: datetime
    outcome: str
    policy_id: int
    stage: str | None = None
    robot: str | None = None
    session: str | None = None
    reward: float | None = None
    duration_s: float | None = None
    violations: int | None = None
    interventions: int | None = None
    overrides: int | None = None
    signals: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    # Its conditions that are words, as levels.
    levels: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_shadow(self) -> bool:
        """Driven by something else than the policy: heard of, but in no series of it."""
        return self.stage == "shadow"


def value_of(series: str, episode: SeenEpisode) -> float | None:
    """The number an episode has in a series, if it has one. Aborted and abandoned ones are in no success rate."""
    if episode.is_shadow:
        return None
    if series == "success":
        return OUTCOME_VALUES.get(episode.outcome)
    if series == "reward":
        return episode.reward
    if series == "duration":
        return episode.duration_s
    if series in COUNTS:
        count = getattr(episode, series)
        return None if count is None else float(count > 0)
    kind, _, name = series.partition(":")
    values = episode.signals if kind == "signal" else episode.metrics if kind == "metric" else {}
    return values.get(name)


def time_words(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def names_in(kind: str, episodes: Iterable[SeenEpisode]) -> list[str]:
    """The series of every signal, or of every metric, that these episodes have."""
    names: set[str] = set()
    for episode in episodes:
        names.update(episode.signals if kind == "signals" else episode.metrics)
    return sorted(f"{kind[:-1]}:{name}" for name in names)


def level_name(condition: str, level: str) -> str:
    """As `light=dim`. The condition ends at the first `=`, so one in its name is written otherwise."""
    return f"{condition.replace('=', '≈')}={level}"
