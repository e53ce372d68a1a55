"""Violations, interventions or overrides: one severe episode, or a rate that rises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from gapwatch.statistics.change.drift import LevelWatch
from gapwatch.watching.detectors import Detector, LevelDetector, SevereDetector
from gapwatch.watching.phrases import AlertReason, series_phrase, since_words
from gapwatch.watching.rule_kind import DefaultRule, EpisodeWatch, RuleKind, RuleSeries, promise, rule_series
from gapwatch.watching.rules import Rule, RuleParams, RunLength
from gapwatch.watching.series import SeenEpisode

SEVERE = " severe"


class SafetyParams(RuleParams):
    """Fires when a count per episode rises, and at once on an episode with `severe` of them or more."""

    what: Literal["violations", "interventions", "overrides"] = "violations"
    severe: Annotated[int, Field(ge=1, le=10_000)] | None = None
    rate: bool = True
    arl: RunLength = 10_000
    clear_arl: RunLength = 500
    margin: Annotated[float, Field(ge=0, le=0.5)] = 0.01
    clear_episodes: Annotated[int, Field(ge=1, le=10_000)] = 50


def _series(
    rule: Rule, episodes: Sequence[SeenEpisode], stored: Mapping[tuple[str, str], Any]
) -> list[RuleSeries]:
    params = cast(SafetyParams, rule.params)
    watched = [rule_series(params.what)] if params.rate else []
    if params.severe is not None:

        def count(episode: SeenEpisode) -> float | None:
            value = getattr(episode, params.what)
            return None if value is None else float(value)

        watched.append(RuleSeries(params.what + SEVERE, count))
    return watched


def _detector(rule: Rule, series: RuleSeries, stored: dict[str, Any] | None, seed: int) -> Detector:
    params = cast(SafetyParams, rule.params)
    if series.name.endswith(SEVERE):
        return SevereDetector(params.severe or 1, params.clear_episodes, stored)
    return LevelDetector(LevelWatch("higher", params.arl, params.clear_arl, params.margin), stored)


def _phrase(reason: AlertReason) -> str:
    if reason.evidence.get("statistic") != "single episode":
        return series_phrase(reason)
    count = (reason.evidence.get("since") or {}).get("value", 1)
    what = reason.series_name.removesuffix(SEVERE)
    return f"{count:.0f} safety {what} in one episode{since_words(reason)}"


def _limits(params: SafetyParams) -> list[str]:
    return [params.what, promise(params.arl)]


KIND = RuleKind(
    label="violations or interventions rise",
    params=SafetyParams,
    order=10,
    limits=_limits,
    watch=EpisodeWatch(_series, _detector),
    phrase=_phrase,
    defaults=(
        # The one thing that is told while people know of another: it is more severe than all others.
        DefaultRule(
            "safety-violation",
            SafetyParams(what="violations", severe=1, rate=False),
            "critical",
            "one episode has a violation",
        ),
        DefaultRule(
            "interventions-drift",
            SafetyParams(what="interventions"),
            "warning",
            "interventions became more frequent",
        ),
    ),
)
