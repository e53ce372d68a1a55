"""Robots and deployments that should be sending and are not, by the same rule live and in a replay.

A whole deployment that falls silent at work is a page. One robot of many is information, and is looked for only
while its deployment is heard: when everything is quiet there is one silence, that of the deployment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol

from gapwatch.watching.kinds.no_data import NoDataParams
from gapwatch.watching.rhythm import (
    ENOUGH,
    HOURS_OF_WEEK,
    REST_S,
    Ended,
    ExcusedSpan,
    LearnedHours,
    Rhythm,
    longest_by_weight,
)

# An episode that arrives later than this after it began was not sent by a robot that is on line.
LIVE_WITHIN = timedelta(days=1)
# Stands for the robots of a deployment whose episodes name none.
NO_ROBOT = "@deployment:"
# The series of a deployment as a whole; a robot's is `robot:NAME`.
ALL_ROBOTS = "deployment"
# A robot that was not heard for so long belongs to its deployment no more.
GONE_AFTER = timedelta(days=28)

# How much longer than earlier ones a gap may be.
LONGER, LONGER_BY_S = 1.25, 600.0
PAUSE_TIMES_USUAL = 2.5
# After our own downtime senders have as long again to catch up, within these limits.
CATCH_UP_AT_LEAST, CATCH_UP_AT_MOST = timedelta(minutes=30), timedelta(hours=2)
# What share the robots that are left have in what was learned of their deployment: at least the first; from the
# second on it changes little.
SMALLEST_SHARE, LARGE_SHARE = 0.02, 0.6
# Deployments of a site that fall silent within so long of one another have lost one uplink.
TOGETHER_S = 900.0

# What a sender's present silence is: `unknown` in its first week, `normal` and `fault` once somebody answered.
SilenceWord = Literal["died", "absent", "unknown", "normal", "fault"]
_ENDED: dict[SilenceWord | None, Ended | None] = {
    None: "quiet",
    "unknown": "quiet",
    "absent": "quiet",
    "died": "alerted",
    "normal": "normal",
    "fault": None,
}


class WorkHours(Protocol):
    """Working hours: of a calendar, or learned."""

    def is_working(self, at: datetime) -> bool: ...

    def working_seconds(self, start: datetime, end: datetime) -> float: ...


@dataclass
class SenderPresence:
    """What is known of a sender: a robot, or a deployment as a whole if `robot` is None."""

    robot: str | None
    deployment_id: int
    rhythm: Rhythm
    live_episodes: int = 0
    silence: SilenceWord | None = None
    # When the oldest episode began that the robot has not sent yet, if it said so just now.
    spool_oldest_at: datetime | None = None

    @property
    def heard_at(self) -> datetime:
        return moment(self.rhythm.heard_at)

    @property
    def series(self) -> str:
        return ALL_ROBOTS if self.robot is None else f"robot:{self.robot}"


@dataclass(frozen=True)
class RobotArrival:
    """When an episode of a robot began and when it arrived."""

    robot: str | None
    deployment_id: int
    started_at: datetime
    received_at: datetime

    @property
    def is_live(self) -> bool:
        return self.received_at - self.started_at < LIVE_WITHIN

    @property
    def sender(self) -> str:
        return self.robot or f"{NO_ROBOT}{self.deployment_id}"


@dataclass(frozen=True)
class Outage:
    """A time in which the service itself was away."""

    start: datetime
    end: datetime

    @property
    def excused(self) -> ExcusedSpan:
        """With the time that senders have to catch up."""
        length = self.end - self.start
        catch_up = min(max(length, CATCH_UP_AT_LEAST), CATCH_UP_AT_MOST)
        return ExcusedSpan(self.start.timestamp(), (self.end + catch_up).timestamp())


@dataclass(frozen=True)
class Silence:
    """A silence that is news: `died` at work, `absent` since its last rest, or `unknown` in the first week."""

    word: Literal["died", "absent", "unknown"]
    pages: bool
    usual_gap_s: float
    allowed_s: float


@dataclass(frozen=True)
class SilenceContext:
    """What else decides on a silence."""

    calendar: WorkHours | None = None
    # The robots of the deployment that work; of a single robot, none.
    members: Sequence[SenderPresence] = ()
    excused: Sequence[ExcusedSpan] = field(default_factory=tuple)


def moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def hear(
    before: SenderPresence | None,
    robot: str | None,
    deployment_id: int,
    arrivals: Iterable[tuple[datetime, datetime]],
    excused: Sequence[ExcusedSpan] = (),
) -> SenderPresence:
    """Update what is known of a sender with the arrivals of its episodes, each with when it began.

    A sender that was silent is not any more.
    """
    presence = before
    for received_at, started_at in sorted(arrivals):
        at, lag_s = received_at.timestamp(), (received_at - started_at).total_seconds()
        if presence is None:
            presence = SenderPresence(robot, deployment_id, Rhythm.begin(at, lag_s))
        else:
            spooled_s = 0.0
            if presence.spool_oldest_at is not None:
                spooled_s = at - presence.spool_oldest_at.timestamp()
            ended = _ENDED[presence.silence]
            presence.rhythm.learn(at, max(lag_s, spooled_s), ended=ended, excused=excused)
        presence.live_episodes += 1
        presence.silence = None
        presence.spool_oldest_at = None
    if presence is None:
        raise ValueError("nobody was heard")
    presence.deployment_id = deployment_id
    return presence


def judge(
    sender: SenderPresence, params: NoDataParams, now: datetime, around: SilenceContext | None = None
) -> Silence | None:
    """Whether the silence of a sender is news now, and of which kind."""
    around = around or SilenceContext()
    rhythm, at = sender.rhythm, now.timestamp()
    quiet_s, after_s = at - rhythm.heard_at, 60 * params.after_minutes
    if quiet_s <= after_s or sender.live_episodes < params.min_episodes:
        return None
    # Who is sending what it had kept is not silent, though none of it is live.
    if any(robot.spool_oldest_at is not None for robot in (sender, *around.members)):
        return None
    share = 1.0
    if sender.robot is None:
        speaking = [member for member in around.members if member.silence is None]
        if not speaking:
            return None
        share = _share(sender, speaking)
    usual_s = max(rhythm.usual_gap_s(rhythm.heard_at), rhythm.usual_gap_s(rhythm.heard_at + after_s)) / share
    # The tail of its ordinary gaps is one thing, pauses that it makes another.
    is_pause = rhythm.idle_s > PAUSE_TIMES_USUAL * usual_s
    idle_s = _longer(rhythm.idle_s) if is_pause else LONGER * rhythm.idle_s
    allowed_s = max(after_s, params.times_longest_gap * usual_s, idle_s)
    if quiet_s <= allowed_s:
        return None
    learned = LearnedHours(_expected(sender, around))
    hours: WorkHours = around.calendar or learned
    if (worked_s := _worked_s(hours, rhythm.heard_at, at, around.excused)) <= allowed_s:
        return None
    rest_of_quiet_s = quiet_s - _overlap_s(rhythm.heard_at, at, around.excused)
    earlier_s = rhythm.precedent_s(rhythm.heard_at)
    if around.calendar is not None:
        if worked_s <= _longer(_worked_before(rhythm, hours)):
            return None
        return Silence("died", True, usual_s, allowed_s)
    was_at_work = hours.is_working(sender.heard_at)
    if was_at_work and (earlier_s is None or earlier_s < REST_S or learned.is_continuous):
        if earlier_s is not None and rest_of_quiet_s <= _longer(earlier_s):
            return None
        if not rhythm.knows_a_week(rhythm.heard_at):
            return Silence("unknown", False, usual_s, allowed_s)
        return Silence("died", True, usual_s, allowed_s)
    # It did not begin to work when it usually does. A holiday looks the same, so only a long absence is a page.
    if worked_s <= _longer(_worked_before(rhythm, hours)):
        return None
    if not rhythm.knows_a_week(rhythm.heard_at):
        return Silence("unknown", False, usual_s, allowed_s)
    absent_s = params.absent_days * learned.working_day_s + allowed_s
    return Silence("absent", worked_s > absent_s, usual_s, allowed_s)


def is_missed(robot: SenderPresence, deployment_heard_at: datetime, params: NoDataParams, now: datetime) -> bool:
    """Whether the others of its deployment are heard while a robot is not."""
    others = timedelta(minutes=params.after_minutes)
    return deployment_heard_at > robot.heard_at and now - deployment_heard_at <= others


def evidence_of(
    sender: SenderPresence, silence: Silence, members: Sequence[SenderPresence] = ()
) -> dict[str, Any]:
    """What an alert says of a silence."""
    names = sorted(member.robot for member in members if member.robot and not member.robot.startswith(NO_ROBOT))
    name = sender.robot or (names[0] if len(names) == 1 else None)
    return {
        "robot": "no robot" if name is None or name.startswith(NO_ROBOT) else name,
        **({"robots": names} if sender.robot is None else {}),
        "silence": silence.word,
        "heard_at": sender.heard_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "longest_gap_s": round(silence.usual_gap_s),
        "allowed_s": round(silence.allowed_s),
        "episodes": sender.live_episodes,
    }


@dataclass(frozen=True)
class SilentDeployment:
    """A deployment that would page for its silence. `pages` if it does already."""

    deployment_id: int
    site: str | None
    heard_at: datetime
    pages: bool = False


def followers(silent: Sequence[SilentDeployment]) -> dict[int, int]:
    """Of deployments of one site that fell silent together one pages; the others follow it: theirs to its id."""
    following: dict[int, int] = {}
    leaders: list[SilentDeployment] = []
    for place in sorted(silent, key=lambda place: (not place.pages, place.deployment_id)):
        leader = next((other for other in leaders if _are_together(place, other)), None)
        if leader is None or place.pages:
            leaders.append(place)
        else:
            following[place.deployment_id] = leader.deployment_id
    return following


def hearings_of(arrivals: Sequence[RobotArrival]) -> list[RobotArrival]:
    """The arrivals by which robots were heard, in order.

    By the arrival of its live episodes, as the clock hears it. A robot all of whose episodes came as history never
    was on line; it is taken to have been heard when each of them began.
    """
    live = {arrival.sender for arrival in arrivals if arrival.is_live}
    heard = [
        arrival
        if arrival.is_live
        else RobotArrival(arrival.robot, arrival.deployment_id, arrival.started_at, arrival.started_at)
        for arrival in arrivals
        if arrival.is_live or arrival.sender not in live
    ]
    return sorted(heard, key=lambda arrival: arrival.received_at)


def _are_together(one: SilentDeployment, other: SilentDeployment) -> bool:
    apart_s = abs((one.heard_at - other.heard_at).total_seconds())
    return one.site is not None and one.site == other.site and apart_s <= TOGETHER_S


def _share(deployment: SenderPresence, speaking: Sequence[SenderPresence]) -> float:
    """How much of what was heard of a deployment came from the robots that are left."""
    heard = sum(member.rhythm.hearings for member in speaking)
    share = heard / max(deployment.rhythm.hearings, 1.0)
    return 1.0 if share >= LARGE_SHARE else max(SMALLEST_SHARE, share)


def _expected(sender: SenderPresence, around: SilenceContext) -> list[bool]:
    """The hours in which a sender works; of a deployment, those in which a robot that is left works too."""
    expected = sender.rhythm.expected_hours()
    if sender.robot is not None:
        return expected
    theirs = [member.rhythm.expected_hours() for member in around.members]
    return [expected[hour] and any(hours[hour] for hours in theirs) for hour in range(HOURS_OF_WEEK)]


def _worked_before(rhythm: Rhythm, hours: WorkHours) -> float:
    """How much working time earlier gaps took that began at the same time: people are late some days."""
    worked = [
        (hours.working_seconds(moment(gap.start), moment(gap.start + gap.length_s)), weight)
        for gap, weight in rhythm.precedents(rhythm.heard_at)
    ]
    return longest_by_weight(worked, ENOUGH) or 0.0


def _longer(earlier_s: float) -> float:
    return LONGER * earlier_s + LONGER_BY_S


def _worked_s(hours: WorkHours, start: float, end: float, excused: Sequence[ExcusedSpan]) -> float:
    worked_s = hours.working_seconds(moment(start), moment(end))
    for span in _merged(excused):
        if span.start < end and span.end > start:
            worked_s -= hours.working_seconds(moment(max(span.start, start)), moment(min(span.end, end)))
    return worked_s


def _overlap_s(start: float, end: float, excused: Sequence[ExcusedSpan]) -> float:
    return sum(max(0.0, min(span.end, end) - max(span.start, start)) for span in _merged(excused))


def _merged(spans: Sequence[ExcusedSpan]) -> list[ExcusedSpan]:
    merged: list[ExcusedSpan] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = ExcusedSpan(merged[-1].start, max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged
