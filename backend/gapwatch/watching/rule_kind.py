"""What a kind of rule consists of: parameters, the series it watches, its detectors and its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gapwatch.notation import count
from gapwatch.watching.detectors import Detector
from gapwatch.watching.phrases import AlertReason, series_phrase
from gapwatch.watching.rules import Rule, RuleParams, Severity
from gapwatch.watching.series import SeenEpisode, value_of


@dataclass(frozen=True)
class RuleSeries:
    """One series under one rule. `left` says of an episode that what is judged is over with it.

    `robot`: the series is that of one robot, judged against all of them, whose series is `whole`, from the batch's
    episode `since` on. `level`: it is that of one level of a condition, as `light=dim`, and is judged while the
    whole is calm. `robots` and `levels`, of the whole: those that have been seen.
    """

    name: str
    value: Callable[[SeenEpisode], float | None]
    left: Callable[[SeenEpisode], bool] | None = None
    limit: float | None = None
    robot: str | None = None
    whole: str | None = None
    since: int = 0
    robots: tuple[str, ...] = ()
    level: str | None = None
    levels: tuple[str, ...] = ()


def rule_series(series: str) -> RuleSeries:
    kind, _, name = series.partition(":")
    # Signals are most of all values, so look them up without a detour.
    if kind == "signal":
        return RuleSeries(series, lambda episode: None if episode.is_shadow else episode.signals.get(name))
    return RuleSeries(series, lambda episode: value_of(series, episode))


@dataclass(frozen=True)
class DefaultRule:
    """A rule that every project has from its first day. `fires_when` stands in the table of docs/alerts.md."""

    name: str
    params: RuleParams
    severity: Severity
    fires_when: str


class SeriesOf(Protocol):
    """The series a rule watches, given a batch and the stored detectors by rule and series."""

    def __call__(
        self, rule: Rule, episodes: Sequence[SeenEpisode], stored: Mapping[tuple[str, str], Any]
    ) -> list[RuleSeries]: ...


class DetectorOf(Protocol):
    """The detector of one series, from its stored state if it has one."""

    def __call__(self, rule: Rule, series: RuleSeries, stored: dict[str, Any] | None, seed: int) -> Detector: ...


@dataclass(frozen=True)
class EpisodeWatch:
    """How a kind goes by the episode. `is_joint`: whether all series of a rule share one promise."""

    series: SeriesOf
    detector: DetectorOf
    is_joint: Callable[[Any], bool] = lambda _params: False


@dataclass(frozen=True)
class RuleKind:
    """One kind of rule; the module that defines it gives it its name.

    Of equally severe reasons the one of the lowest `order` leads a notification. `limits` puts parameters in a few
    words. `question` is what an alert asks whoever is told of it. `watch` is None where episodes are not looked at
    one by one: the ledger and the clock have their own drivers.
    """

    label: str
    params: type[RuleParams]
    order: int
    limits: Callable[[Any], list[str]]
    watch: EpisodeWatch | None = None
    phrase: Callable[[AlertReason], str] = series_phrase
    question: str = ""
    defaults: tuple[DefaultRule, ...] = ()


def promise(arl: float) -> str:
    return f"at most one false alarm in {count(round(arl))} episodes"


def points(share: float) -> str:
    return f"{100 * share:.1f} points"
