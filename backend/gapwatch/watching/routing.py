"""Who is told when: which channels an incident goes to, at once, after quiet hours or when nobody answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from gapwatch.watching.matchers import Match
from gapwatch.watching.notify_policy import rank
from gapwatch.watching.rules import Severity

ClockTime = Annotated[str, StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
Minutes = Annotated[float, Field(gt=0, le=100_000)]
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
# A digest that could not be made in time is made so much later, and not at all after that.
DIGEST_WITHIN = timedelta(hours=24)


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("not a time zone; write it like Europe/Berlin") from None
    return name


class QuietHours(BaseModel):
    """From and until, on the clock of a time zone; what is not critical waits until they are over."""

    model_config = ConfigDict(extra="forbid")

    start: ClockTime
    end: ClockTime
    timezone: str = "UTC"

    @field_validator("timezone")
    @classmethod
    def _known(cls, name: str) -> str:
        return _known_zone(name)

    def over_at(self, now: datetime) -> datetime | None:
        """When the quiet hours that it is now in are over; None outside them."""
        zone = ZoneInfo(self.timezone)
        local = now.astimezone(zone)
        start, end = time.fromisoformat(self.start), time.fromisoformat(self.end)
        clock = local.time()
        inside = start <= clock < end if start <= end else clock >= start or clock < end
        if not inside:
            return None
        day = local.date() + timedelta(days=1 if end <= clock else 0)
        return datetime.combine(day, end, zone).astimezone(now.tzinfo)


class DigestTime(BaseModel):
    """When the digest of the week is sent: a day and an hour on the clock of a time zone."""

    model_config = ConfigDict(extra="forbid")

    weekday: Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"] = "mon"
    hour: Annotated[int, Field(ge=0, le=23)] = 8
    time_zone: str = "UTC"

    @field_validator("time_zone")
    @classmethod
    def _known(cls, name: str) -> str:
        return _known_zone(name)

    def due_day(self, now: datetime) -> date | None:
        """The day whose digest is due, on that clock; None more than a day after its hour."""
        zone = ZoneInfo(self.time_zone)
        local = now.astimezone(zone)
        day = local.date() - timedelta(days=(local.weekday() - WEEKDAYS.index(self.weekday)) % 7)
        due = datetime.combine(day, time(self.hour), zone)
        if due > local:
            due = datetime.combine(day - timedelta(days=7), time(self.hour), zone)
        return due.date() if now - due < DIGEST_WITHIN else None


class Routing(BaseModel):
    """What comes to a channel and when. Without anything: everything from `warning` up, at once."""

    model_config = ConfigDict(extra="forbid")

    min_severity: Severity = "warning"
    match: Match = Match()
    escalate_after_minutes: Minutes | None = None
    repeat_minutes: Minutes | None = None
    quiet_hours: QuietHours | None = None
    fallback: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    # What it is told of; decisions about rollouts come whatever their severity. None of them for a digest alone.
    events: list[Literal["incident", "rollout"]] = ["incident", "rollout"]
    # The week in one message; only for who asks for it.
    digest: DigestTime | None = None

    @model_validator(mode="after")
    def _is_told_something(self) -> Self:
        if not self.events and self.digest is None:
            raise ValueError("name at least one of `events`, or a `digest`")
        return self


@dataclass(frozen=True)
class ChannelTarget:
    """A channel as routing sees it."""

    id: int
    routing: Routing


@dataclass(frozen=True)
class PlannedDelivery:
    """One delivery to be: to which channel, not before when, and why."""

    channel_id: int
    due_at: datetime
    reason: str


def plan(
    targets: Sequence[ChannelTarget],
    *,
    severity: str,
    words: Mapping[str, str | None],
    only: Sequence[int],
    now: datetime,
) -> list[PlannedDelivery]:
    """Plan the deliveries of a notification. `only` are the channels that rules name; none means all that fit.

    A channel that a rule names gets its alerts whatever their severity: naming it is the choice.
    """
    planned = []
    for target in targets:
        routing = target.routing
        if "incident" not in routing.events:
            continue
        if only and target.id not in only:
            continue
        if not only and rank(severity) < rank(routing.min_severity):
            continue
        if not routing.match.fits({**words, "severity": severity}):
            continue
        due_at, reason = now, "change"
        if routing.escalate_after_minutes is not None:
            due_at, reason = now + timedelta(minutes=routing.escalate_after_minutes), "escalation"
        if routing.quiet_hours is not None and severity != "critical":
            due_at = routing.quiet_hours.over_at(due_at) or due_at
        planned.append(PlannedDelivery(target.id, due_at, reason))
    return planned


def told_of_rollouts(
    targets: Sequence[ChannelTarget], words: Mapping[str, str | None], severity: str
) -> list[int]:
    """The channels that a decision about a rollout goes to."""
    return [
        target.id
        for target in targets
        if "rollout" in target.routing.events and target.routing.match.fits({**words, "severity": severity})
    ]


def earliest(deliveries: Sequence[PlannedDelivery]) -> list[PlannedDelivery]:
    """One delivery a channel, the first to go out, in the order of the channels."""
    chosen: dict[int, PlannedDelivery] = {}
    for delivery in deliveries:
        known = chosen.get(delivery.channel_id)
        if known is None or delivery.due_at < known.due_at:
            chosen[delivery.channel_id] = delivery
    return list(chosen.values())
