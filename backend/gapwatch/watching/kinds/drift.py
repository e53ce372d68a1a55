"""A series that leaves what it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, cast

from pydantic import Field, model_validator

from gapwatch.statistics.change.cusum import CusumWatch
from gapwatch.statistics.change.drift import LevelWatch
from gapwatch.statistics.change.drift_shape import ShapeWatch
from gapwatch.watching.detectors import CusumDetector, Detector, LevelDetector, RankDetector
from gapwatch.watching.rule_kind import DefaultRule, EpisodeWatch, RuleKind, RuleSeries, promise, rule_series
from gapwatch.watching.rules import Rule, RuleParams, RunLength, SeriesName
from gapwatch.watching.series import OF_LEVEL, OF_ROBOT, RATE_SERIES, SeenEpisode, level_name, names_in

# Stand for every signal, or every metric, of a deployment.
ALL_OF_A_KIND = {"signals", "metrics"}
# Further robots are watched with the others, not by themselves.
MOST_ROBOTS = 50
# Of the conditions that a deployment names first so many are watched level by level, each with its first levels.
MOST_CONDITIONS, MOST_LEVELS = 2, 4
USUALLY_WORSE: dict[str, Literal["lower", "higher"]] = {
    "success": "lower",
    "reward": "lower",
    "duration": "higher",
}


class DriftParams(RuleParams):
    """Fires when a series leaves what it was. `signals` and `metrics` stand for every one of them."""

    series: SeriesName = "success"
    worse: Literal["lower", "higher", "either"] | None = None
    method: Literal["level", "rank", "cusum"] | None = None
    arl: RunLength = 10_000
    clear_arl: RunLength = 500
    margin: Annotated[float, Field(ge=0, le=0.5)] = 0.01
    learn_episodes: Annotated[int, Field(ge=20, le=10_000)] | None = None
    clear_episodes: Annotated[int, Field(ge=10, le=10_000)] = 60

    @model_validator(mode="after")
    def _method_fits_series(self) -> DriftParams:
        if self.method == "level" and self.series not in RATE_SERIES:
            raise ValueError(f"method `level` is for numbers from 0 to 1: {', '.join(RATE_SERIES)}")
        known = (*RATE_SERIES, "reward", "duration", "signals", "metrics")
        if self.series not in known and not self.series.startswith(("signal:", "metric:")):
            raise ValueError(f"series is one of {', '.join(known)}, signal:NAME or metric:NAME")
        return self


def _series(
    rule: Rule, episodes: Sequence[SeenEpisode], stored: Mapping[tuple[str, str], Any]
) -> list[RuleSeries]:
    params = cast(DriftParams, rule.params)
    if params.series == "success" and params.method in (None, "level"):
        return _success_series(rule, episodes, stored)
    if params.series not in ALL_OF_A_KIND:
        return [rule_series(params.series)]
    known = {series for name, series in stored if name == rule.name}
    return [rule_series(series) for series in sorted(known.union(names_in(params.series, episodes)))]


def _success_series(
    rule: Rule, episodes: Sequence[SeenEpisode], stored: Mapping[tuple[str, str], Any]
) -> list[RuleSeries]:
    """Success of the deployment, and of each robot and level of the batch where there are two or more."""
    before = stored.get((rule.name, "success"))
    robots = dict.fromkeys(before.state.get("robots", ()) if before is not None else ())
    since = 0 if len(robots) > 1 else None
    here: set[str] = set()
    for index, episode in enumerate(episodes):
        robot = episode.robot
        if robot is None or robot in here:
            continue
        if robot not in robots and len(robots) >= MOST_ROBOTS:
            continue
        robots[robot] = None
        here.add(robot)
        if since is None and len(robots) > 1:
            since = index
    levels, level_series = _level_series(before.state.get("levels", ()) if before is not None else (), episodes)
    whole = replace(rule_series("success"), robots=tuple(robots), levels=levels)
    robot_series = [] if since is None else [_robot_series(robot, since) for robot in sorted(here)]
    return [whole, *robot_series, *level_series]


def _level_series(
    known: Sequence[str], episodes: Sequence[SeenEpisode]
) -> tuple[tuple[str, ...], list[RuleSeries]]:
    """The levels of conditions that were seen, in their order, and the series of those of the batch.

    A condition is watched from its second level on: with one it says what the whole says.
    """
    levels = dict.fromkeys(known)
    counts = Counter(level.partition("=")[0] for level in levels)
    since = {condition: 0 for condition, count in counts.items() if count > 1}
    here: dict[str, str] = {}
    for index, episode in enumerate(episodes):
        for condition in sorted(episode.levels) if episode.levels else ():
            level = level_name(condition, episode.levels[condition])
            name = level.partition("=")[0]
            if level not in levels:
                if counts[name] >= MOST_LEVELS or (name not in counts and len(counts) >= MOST_CONDITIONS):
                    continue
                levels[level] = None
                counts[name] += 1
                if counts[name] > 1:
                    since.setdefault(name, index)
            here[level] = name
    series = [
        replace(
            rule_series("success"),
            name=f"success{OF_LEVEL}{level}",
            level=level,
            whole="success",
            since=since[here[level]],
        )
        for level in sorted(here)
        if here[level] in since
    ]
    return tuple(levels), series


def _robot_series(robot: str, since: int) -> RuleSeries:
    return replace(
        rule_series("success"), name=f"success{OF_ROBOT}{robot}", robot=robot, whole="success", since=since
    )


def _detector(rule: Rule, series: RuleSeries, stored: dict[str, Any] | None, seed: int) -> Detector:
    params = cast(DriftParams, rule.params)
    if series.robot is not None:
        watch = LevelWatch("lower", params.arl, params.clear_arl, params.margin, learns=False)
        return LevelDetector(watch, stored)
    method = params.method or ("level" if series.level or series.name in RATE_SERIES else "rank")
    learn = params.learn_episodes or 200
    if method == "cusum":
        return CusumDetector(CusumWatch(params.arl, 0.5, learn, params.clear_episodes), stored)
    if method == "rank":
        worse: Literal["lower", "higher", "either"] = USUALLY_WORSE.get(series.name, "either")
        if params.worse is not None:
            worse = params.worse
        return RankDetector(ShapeWatch(worse, params.arl, learn, params.clear_episodes), stored)
    lower = params.worse == "lower" or (params.worse is None and series.name.partition("@")[0] == "success")
    learn_from = params.learn_episodes or 100
    watch = LevelWatch(
        "lower" if lower else "higher",
        params.arl,
        params.clear_arl,
        params.margin,
        learn_from=learn_from,
        learn_to=max(1000, learn_from),
    )
    return LevelDetector(watch, stored)


def _is_joint(params: DriftParams) -> bool:
    return params.series in ALL_OF_A_KIND and params.method != "cusum"


def _limits(params: DriftParams) -> list[str]:
    return [params.series, promise(params.arl)]


KIND = RuleKind(
    label="a series leaves what it was",
    params=DriftParams,
    order=30,
    limits=_limits,
    watch=EpisodeWatch(_series, _detector, _is_joint),
    defaults=(
        DefaultRule(
            "success-drift",
            DriftParams(series="success", arl=20_000),
            "warning",
            "success, of all robots or of one, left its own past",
        ),
        DefaultRule(
            "reward-drift",
            DriftParams(series="reward", worse="lower", learn_episodes=400),
            "warning",
            "reward fell",
        ),
        # Signals move without anything being lost: they are recorded, shown, and named when something is.
        DefaultRule(
            "signal-drift",
            DriftParams(series="signals"),
            "info",
            "a signal's distribution changed; recorded and named on pages, tells nobody by itself",
        ),
    ),
)
