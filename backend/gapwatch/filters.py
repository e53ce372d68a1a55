"""The filters that every list, statistic and page shares: parsed once, the same words everywhere."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from gapwatch.record import EARLIEST, FARTHEST_AHEAD, LONGEST_NAME, LONGEST_VALUE, Time
from gapwatch.taxonomy import CATEGORIES

Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\x00]*$")]
_SPAN = re.compile(r"(\d{1,4})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_RANGE = re.compile(r"(?P<name>[^\x00]+):(?P<low>[-+.\deE]*)\.\.(?P<high>[-+.\deE]*)")
_MOST_REPEATS = 50


def _check_condition(text: str) -> str:
    name, colon, _ = text.partition(":")
    if not name or not colon or "\0" in text:
        raise ValueError("write a condition as name:value")
    return text


def _check_range(text: str) -> str:
    parse_range(text)
    return text


def _check_time(text: str) -> str:
    parse_time(text, datetime.now(UTC))
    return text


def _check_category(text: str) -> str:
    if text not in CATEGORIES:
        raise ValueError(f"a category is one of {', '.join(CATEGORIES)}")
    return text


def parse_range(text: str) -> tuple[str, float | None, float | None]:
    """`peak_force_n:10..30`, with either end left open."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError("write a range as name:low..high, either end may be left out")
    low, high = (float(match[end]) if match[end] else None for end in ("low", "high"))
    if low is None and high is None:
        raise ValueError("give at least one end of the range")
    return match["name"], low, high


def parse_time(text: str, now: datetime) -> datetime:
    """RFC 3339, or a span back from now such as 12h, 30d or 2w: days and weeks from the start of their day (UTC).

    Whole days are already counted; part of a day would be read from its episodes, for a difference nobody wants.
    """
    span = _SPAN.fullmatch(text)
    if span is not None:
        at = now - timedelta(**{_UNITS[span[2]]: int(span[1])})
        return at if span[2] == "h" else at.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        time: datetime = msgspec.convert(text, type=Time)
        return time.astimezone(UTC)
    except (msgspec.ValidationError, OverflowError):
        raise ValueError("write a time as 2026-11-02T09:14:03Z, or as a span such as 12h, 30d, 2w") from None


def parse_happened(text: str, now: datetime, ahead: timedelta = FARTHEST_AHEAD) -> datetime:
    """A time at which something happened or will: within the bounds of an episode's, or as far ahead as said."""
    at = parse_time(text, now)
    if at < EARLIEST:
        raise ValueError("times start in the year 2000")
    if at > now + ahead:
        far = f"{ahead.days} days" if ahead > FARTHEST_AHEAD else "24 hours"
        raise ValueError(f"this is more than {far} ahead of the server")
    return at


Condition = Annotated[
    str, StringConstraints(max_length=LONGEST_NAME + LONGEST_VALUE + 1), AfterValidator(_check_condition)
]
Range = Annotated[str, StringConstraints(max_length=LONGEST_NAME + 60), AfterValidator(_check_range)]
TimeText = Annotated[str, StringConstraints(max_length=64), AfterValidator(_check_time)]


class EpisodeFilter(BaseModel):
    """Which episodes are meant. Everything given must hold; of a repeated parameter, any one."""

    model_config = ConfigDict(extra="forbid")

    domain: Literal["sim", "real"] | None = Field(None, description="Simulated or real episodes only.")
    policy: Name | None = Field(None, description="Name of the policy, all versions.")
    version: Name | None = Field(None, description="Version of the policy.")
    task: Name | None = Field(None, description="Name of the task.")
    deployment: Name | None = Field(None, description="Slug of the deployment.")
    robot: list[Name] = Field(default_factory=list, max_length=_MOST_REPEATS, description="May repeat.")
    site: list[Name] = Field(default_factory=list, max_length=_MOST_REPEATS, description="May repeat.")
    simulator: list[Name] = Field(
        default_factory=list, max_length=_MOST_REPEATS, description="name or name@version; may repeat."
    )
    stage: list[Literal["offline", "shadow", "supervised", "full"]] = Field(
        default_factory=list, max_length=_MOST_REPEATS, description="May repeat."
    )
    outcome: Literal["success", "failure", "aborted", "abandoned"] | None = None
    phase: Name | None = Field(None, description="Phase in which the attempt failed.")
    label: Name | None = Field(None, description="One of the failure labels.")
    category: Annotated[str, AfterValidator(_check_category)] | None = Field(
        None, description="Gap category that a person or the sender gave."
    )
    labelled: Literal["yes", "no"] | None = Field(
        None, description="Failures with such a category, or those that wait for one."
    )
    condition: list[Condition] = Field(
        default_factory=list,
        max_length=_MOST_REPEATS,
        description="name:value; may repeat. An empty value means the condition was not given.",
    )
    signal: list[Range] = Field(
        default_factory=list,
        max_length=_MOST_REPEATS,
        description="name:low..high, either end may be left out; may repeat.",
    )
    since: TimeText | None = Field(None, description="Started at or after: RFC 3339, or 12h, 30d, 2w.")
    until: TimeText | None = Field(None, description="Started before: RFC 3339, or 12h, 30d, 2w.")


WindowName = Literal["now", "version", "all"]


class SideFilter(BaseModel):
    """Which episodes of either side are meant. What sim does not name, it does not restrict."""

    model_config = ConfigDict(extra="forbid")

    window: WindowName | None = Field(
        None,
        description=(
            "A window by name, in place of `since` and `until`: `now` is the present regime of the deployment, "
            "`version` all of its policy version, `all` everything stored (the default). The first two leave the "
            "baseline whole."
        ),
    )

    condition: list[Condition] = Field(
        default_factory=list,
        max_length=_MOST_REPEATS,
        description="name:value; may repeat. A number stands for its bin. An empty value: not given.",
    )
    robot: list[Name] = Field(default_factory=list, max_length=_MOST_REPEATS, description="May repeat.")
    site: list[Name] = Field(default_factory=list, max_length=_MOST_REPEATS, description="May repeat.")
    stage: list[Literal["offline", "shadow", "supervised", "full"]] = Field(
        default_factory=list, max_length=_MOST_REPEATS, description="May repeat."
    )
    since: TimeText | None = Field(None, description="Started at or after: RFC 3339, or 12h, 30d, 2w.")
    until: TimeText | None = Field(None, description="Started before: RFC 3339, or 12h, 30d, 2w.")


class StatisticsFilter(SideFilter):
    """What a comparison is about: the episodes of both sides, and the simulator of the baseline."""

    simulator: list[Name] = Field(
        default_factory=list,
        max_length=_MOST_REPEATS,
        description="name or name@version of the baseline; of several, the one with the most episodes.",
    )


PopulationName = Literal["these", "any"]


class PopulationFilter(StatisticsFilter):
    population: PopulationName = Field(
        "these",
        description=(
            "Whom the intervals speak for. `these`: the robots and sites that sent these episodes, in further "
            "sessions. `any`: any site or robot of this kind, from how much two or more of them differ."
        ),
    )


Against = Literal["simulation", "before"]


class AgainstFilter(StatisticsFilter):
    """Beside simulation, what was before the present can be what real episodes are held against."""

    against: Against = Field(
        "simulation",
        description=(
            "What the real episodes are held against. `before`: those of the present regime against the real ones "
            "before its change, in place of simulation; everything that the answer calls `sim` then is what was "
            "before. It speaks of `window=now` and of no other."
        ),
    )


class SlicesFilter(PopulationFilter, AgainstFilter):
    pass


class DropFilter(PopulationFilter):
    metric: Name = Field("success", description="success, reward, duration_s, or the name of a metric.")
    precision: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="Half the width that the drop's interval shall have, as a fraction: 0.05 is 5 points."
    )


class DeploymentFilter(DropFilter, SlicesFilter):
    """What the page of a deployment takes."""


class TrendFilter(StatisticsFilter):
    tier: Literal["hour", "day", "month"] | None = Field(
        None, description="Length of a step; without it the finest that gives a readable number of steps."
    )


class TrustFilter(SideFilter):
    version: Name | None = Field(None, description="Version of the simulator; else that with most episodes.")
    metric: Name = Field("success", description="success, reward, duration_s, or the name of a metric.")
    task: Name | None = Field(None, description="One task; else all tasks that both sides have tried.")
