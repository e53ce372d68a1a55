"""The rhythm of a sender, a robot or a whole deployment, learned from when it was heard.

Three things are kept, each of bounded size and brought forward by every hearing:

- `hours`: for each hour of the week (UTC) the share of weeks in which the sender was at work then;
- `pauses`: how long its gaps at work are, as decaying counts on a logarithmic scale, by time of day;
- `gaps`: its newest long gaps, each with the time of the week it began at. A gap like one that was no trouble
  before is no news.

Times are seconds since 1970 here; time zones are unknown and not needed. When clocks change, work begins an hour
off: on a day on which it did, gaps may begin an hour off too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil, log2
from typing import Any, Literal, NamedTuple

HOUR, DAY, WEEK = 3600.0, 86_400.0, 604_800.0
HOURS_OF_DAY, HOURS_OF_WEEK = 24, 168

# A batch, or the flush of a spool, is heard once.
ONE_HEARING_S = 60.0
# Counts of gaps halve in two weeks; an hour of the week remembers about five.
HALF_LIFE_S = 14 * DAY
WEEKS_REMEMBERED = 5
# After a long absence only so many missed weeks count: a plant that was closed works as before.
MISSED_WEEKS_AT_MOST = 3
# Bins of pauses: eight an octave, from a minute up, for every four hours of the day.
BINS_PER_OCTAVE, BLOCK_HOURS, BLOCKS = 8, 4, 6
# With fewer gaps, a time of day is taken to be like the whole day.
ENOUGH_PAUSES, LEAST_COUNT = 30, 0.01
# Of a hundred gaps at work one is longer than the longest usual one.
USUAL_QUANTILE = 0.99
# A sender is at work between two hearings that are no further apart than this.
SHORTEST_STRETCH_S, STRETCH_TIMES_MEDIAN = 2 * HOUR, 4.0
# Gaps that are worth remembering one by one.
SHORTEST_LONG_GAP_S, LONG_QUANTILE, TIMES_LONG_QUANTILE = 15 * 60.0, 0.9, 2.0
GAPS_KEPT, GAPS_KEPT_S = 96, 10 * WEEK
# How far from the beginning of an earlier gap one like it may begin.
SAME_TIME_S, LOOKED_AROUND_S, FEW_GAPS = 20 * 60.0, 1.5 * HOUR, 3
# Work that begins about an hour off is that of a clock that changed.
CLOCK_CHANGE_S, CLOCK_CHANGE_NEAR_S = HOUR, 20 * 60.0
# Earlier gaps count for as long: on the same day of the week, on other days, and one of yesterday as if of today.
SAME_DAY_KEPT_S, OTHER_DAYS_KEPT_S, RECENT_S = 22 * DAY, 8.5 * DAY, 1.5 * DAY
# Time away does not make what was known before it older.
AWAY_S = 4 * DAY
# Who works day and night between weekends rests on one day of the week, and before holidays.
SELDOM_RESTS = 3
# How many earlier gaps it takes, by weight.
ENOUGH, ENOUGH_FOR_A_BREAK, ENOUGH_ANYWHERE = 1.0, 0.5, 2.0
WEIGHTS = {"quiet": 1.0, "alerted": 0.4, "normal": 2.0}
# A gap that lasts so long is a rest, not a break.
REST_S = 4 * HOUR
# A gap is bound to a time of day if gaps begin then on so many of the days.
BOUND_TO_TIME = 0.4
# Expected at work: in at least so many of the weeks.
EXPECTED = 0.5
# A spool was flushed if an episode is so much later than usual.
SPOOLED_S, SPOOLED_AT_MOST_S, TIMES_USUAL_LAG = 600.0, 12 * HOUR, 3.0
# Who is expected in so many hours of the week works around the clock.
CONTINUOUS_HOURS = 140

# Evidence has whole seconds.
SAME_GAP_S = 1.5

Ended = Literal["quiet", "alerted", "normal"]


class ExcusedSpan(NamedTuple):
    """From when until when, in seconds since 1970."""

    start: float
    end: float


class LongGap(NamedTuple):
    """A gap that is over: `quiet` alerted nobody, `alerted` did and nobody said why, `normal` somebody said."""

    start: float
    length_s: float
    ended: Ended
    # When the day's work had begun.
    begun_at: float = 0.0
    # Whether there had been ones like it at this time.
    was_known: bool = False


@dataclass
class Rhythm:
    """What is known of a sender. `learn` is called with every hearing, in their order."""

    first_at: float
    heard_at: float
    # Hours since 1970 before this one are counted in `hours`.
    open_hour: int
    hours: list[float] = field(default_factory=lambda: [0.0] * HOURS_OF_WEEK)
    pauses: list[dict[int, float]] = field(default_factory=lambda: [{} for _ in range(BLOCKS)])
    weighed_at: float = 0.0
    # Decaying number of hearings: what share a robot has in its deployment.
    hearings: float = 0.0
    gaps: list[LongGap] = field(default_factory=list)
    # A pause at no particular time that was longer has not been seen twice.
    idle_s: float = 0.0
    lag_s: float = 0.0
    # When the last rest was over.
    begun_at: float = 0.0

    @classmethod
    def begin(cls, at: float, lag_s: float = 0.0) -> Rhythm:
        # What arrives first may come from a spool: a large lag is not believed to be usual.
        lag_s = min(max(lag_s, 0.0), SPOOLED_S)
        return cls(at, at, int(at // HOUR), weighed_at=at, hearings=1.0, lag_s=lag_s, begun_at=at)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Rhythm:
        rest = {name: value for name, value in stored.items() if name not in {"hours", "pauses", "gaps"}}
        return cls(
            **rest,
            hours=[value / 100 for value in stored["hours"]],
            pauses=[{int(name): n for name, n in block.items()} for block in stored["pauses"]],
            gaps=[LongGap(*gap) for gap in stored["gaps"]],
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "first_at": self.first_at,
            "heard_at": self.heard_at,
            "open_hour": self.open_hour,
            "hours": [round(100 * value) for value in self.hours],
            "pauses": [{str(name): round(n, 2) for name, n in block.items()} for block in self.pauses],
            "weighed_at": self.weighed_at,
            "hearings": round(self.hearings, 2),
            "gaps": [list(gap) for gap in self.gaps],
            "idle_s": self.idle_s,
            "lag_s": round(self.lag_s, 1),
            "begun_at": self.begun_at,
        }

    def learn(
        self, at: float, lag_s: float = 0.0, *, ended: Ended | None = "quiet", excused: Sequence[ExcusedSpan] = ()
    ) -> None:
        """Learn that the sender was heard, and from the gap that is over with it.

        `ended` is None for a gap that was a fault: it teaches nothing. Nor does one in which the service itself
        was away (`excused`), or that a flushed spool shows to have been work.
        """
        gap_s = at - self.heard_at
        if gap_s < 0:
            return
        self._forget(at)
        self.hearings += 1
        if gap_s < ONE_HEARING_S:
            self._count_hours(at, at_work=True)
            self.heard_at = at
            return
        spooled = self._is_spooled(gap_s, lag_s)
        if not spooled:
            # Follow the usual lag slowly; an odd one moves it little.
            self.lag_s += 0.05 * (min(max(lag_s, 0.0), 2 * self.lag_s + 60) - self.lag_s)
        is_excused = spooled or any(span.start < at and span.end > self.heard_at for span in excused)
        if is_excused or ended is None:
            self._skip_hours(at)
        else:
            stretch_s = self.stretch_s()
            self._count_hours(at, at_work=gap_s <= stretch_s)
            self._learn_gap(gap_s, stretch_s, ended)
        if gap_s >= REST_S:
            self.begun_at = at
        self.heard_at = at

    def teach_normal(self, start: float, end: float) -> None:
        """Remember a gap that somebody called normal, once, whether it is here already or not."""
        self.gaps = [gap for gap in self.gaps if abs(gap.start - start) > SAME_GAP_S]
        rests = [gap for gap in self.gaps if gap.start < start and gap.length_s >= REST_S]
        begun_at = rests[-1].start + rests[-1].length_s if rests else self.begun_at
        self._keep(LongGap(start, end - start, "normal", begun_at))

    def forget_gap(self, start: float) -> None:
        """A gap that somebody called a fault is no example."""
        self.gaps = [gap for gap in self.gaps if abs(gap.start - start) > SAME_GAP_S]
        self._find_idle()

    def usual_gap_s(self, at: float) -> float:
        """The longest usual gap at work at this time of the day; 0 while none was longer than a minute."""
        return self._pause_s(at, USUAL_QUANTILE)

    def _pause_s(self, at: float, share: float) -> float:
        stretch_s = self.stretch_s()
        here = self.pauses[_block(at)]
        counts = here if sum(here.values()) >= ENOUGH_PAUSES else self._all_pauses()
        return _quantile({name: n for name, n in counts.items() if _middle(name) < stretch_s}, share)

    def stretch_s(self) -> float:
        return max(SHORTEST_STRETCH_S, STRETCH_TIMES_MEDIAN * _quantile(self._all_pauses(), 0.5))

    def _all_pauses(self) -> dict[int, float]:
        counts: dict[int, float] = {}
        for block in self.pauses:
            for name, n in block.items():
                counts[name] = counts.get(name, 0.0) + n
        return counts

    def precedent_s(self, start: float) -> float | None:
        """How long earlier gaps lasted that began at this time of the week, or of the day; None without any."""
        lengths = [(gap.length_s, weight) for gap, weight in self.precedents(start)]
        breaks = [(length_s, weight) for length_s, weight in lengths if length_s < REST_S]
        known = [longest_by_weight(lengths, ENOUGH), longest_by_weight(breaks, ENOUGH_FOR_A_BREAK)]
        return max((length_s for length_s in known if length_s is not None), default=None)

    def precedents(self, start: float) -> list[tuple[LongGap, float]]:
        """Earlier gaps that began at the same time, each with how much it tells."""
        near_s = {is_rest: self._near_s(start, is_rest=is_rest) for is_rest in (False, True)}
        rests_daily = self._rests_daily(start)
        found: list[tuple[LongGap, float]] = []
        on_other_days: dict[int, tuple[LongGap, float]] = {}
        for gap in self.gaps:
            near = near_s[gap.length_s >= REST_S]
            begun = gap.start if _apart(gap.start, start, DAY) <= near else self._on_todays_clock(gap)
            if gap.start >= start or _apart(begun, start, DAY) > near:
                continue
            age = self._age_s(gap, start)
            any_day = age < RECENT_S or (gap.length_s >= REST_S and not rests_daily)
            if any_day or _apart(begun, start, WEEK) <= near:
                if age < SAME_DAY_KEPT_S or gap.ended == "normal":
                    found.append((gap, WEIGHTS[gap.ended]))
            elif age < OTHER_DAYS_KEPT_S:
                # Two other days of the week tell as much; two Fridays tell nothing of a Wednesday.
                on_other_days[round((start - begun) / DAY) % 7] = (gap, WEIGHTS[gap.ended] / 2)
        return [*found, *on_other_days.values()]

    def _on_todays_clock(self, gap: LongGap) -> float:
        """When an earlier gap would have begun today, if clocks changed since: work began an hour off."""
        off = _off(self.begun_at, gap.begun_at)
        if abs(abs(off) - CLOCK_CHANGE_S) > CLOCK_CHANGE_NEAR_S:
            return gap.start
        return gap.start + (CLOCK_CHANGE_S if off > 0 else -CLOCK_CHANGE_S)

    def _age_s(self, gap: LongGap, now: float) -> float:
        away = (other.length_s for other in self.gaps if gap.start < other.start < now and other.length_s > AWAY_S)
        return now - gap.start - sum(away)

    def _rests_daily(self, now: float) -> bool:
        """Who rests once a week rests before a holiday too, at the same time of another day."""
        days = {int((gap.start - now) // DAY) % 7 for gap in self.gaps if self._is_recent_rest(gap, now)}
        return len(days) > SELDOM_RESTS

    def _is_recent_rest(self, gap: LongGap, now: float) -> bool:
        return gap.length_s >= REST_S and self._age_s(gap, now) < SAME_DAY_KEPT_S

    def _near_s(self, start: float, *, is_rest: bool) -> float:
        """How far apart gaps of the same time of day may begin: further, the less alike they are."""
        offs = sorted(
            off
            for gap in self.gaps
            if (gap.length_s >= REST_S) == is_rest
            and abs(off := _off(start, gap.start)) <= LOOKED_AROUND_S
            and self._age_s(gap, start) < SAME_DAY_KEPT_S
        )
        if len(offs) < FEW_GAPS:
            return SAME_TIME_S
        tenth = len(offs) // 10
        spread = offs[-1 - tenth] - offs[tenth]
        return SAME_TIME_S + max(0.0, spread - SAME_TIME_S) / 2

    def knows_a_week(self, at: float) -> bool:
        return at - self.first_at >= WEEK

    def expected_hours(self) -> list[bool]:
        """Which hours of the week it works in.

        In its first week, an hour that did not come yet is taken to be like the same hour of the days before.
        """
        first_hour = int(self.first_at // HOUR)
        seen = self.open_hour - first_hour
        if seen >= HOURS_OF_WEEK:
            return [value >= EXPECTED for value in self.hours]
        by_hour_of_day: dict[int, list[float]] = {}
        for hour in range(first_hour, self.open_hour):
            by_hour_of_day.setdefault(hour % HOURS_OF_DAY, []).append(self.hours[hour % HOURS_OF_WEEK])
        return [
            sum(values) / len(values) >= EXPECTED if (values := by_hour_of_day.get(hour % HOURS_OF_DAY)) else False
            for hour in range(HOURS_OF_WEEK)
        ]

    def _is_spooled(self, gap_s: float, lag_s: float) -> bool:
        late = lag_s > max(SPOOLED_S, TIMES_USUAL_LAG * self.lag_s)
        return late and lag_s > min(gap_s / 2, SPOOLED_AT_MOST_S)

    def _learn_gap(self, gap_s: float, stretch_s: float, ended: Ended) -> None:
        usual_s = TIMES_LONG_QUANTILE * self._pause_s(self.heard_at, LONG_QUANTILE)
        long_s = max(SHORTEST_LONG_GAP_S, min(usual_s, stretch_s))
        is_known = False
        if gap_s > long_s:
            known_s = self.precedent_s(self.heard_at)
            # Lunch is no measure of how quiet the sender is at other times.
            is_known = known_s is not None and gap_s < 2 * known_s
            self._keep(LongGap(self.heard_at, gap_s, ended, self.begun_at, is_known))
        if ended == "quiet" and not is_known:
            name = ceil(BINS_PER_OCTAVE * log2(gap_s / ONE_HEARING_S))
            block = self.pauses[_block(self.heard_at)]
            block[name] = block.get(name, 0.0) + 1

    def _keep(self, gap: LongGap) -> None:
        newest = max(gap.start, self.heard_at)
        self.gaps = sorted(kept for kept in [*self.gaps, gap] if kept.start > newest - GAPS_KEPT_S)[-GAPS_KEPT:]
        self._find_idle()

    def _find_idle(self) -> None:
        """The pause at work, at no particular time of day, that was reached twice."""
        if not self.gaps:
            self.idle_s = 0.0
            return
        days = max(1.0, (self.gaps[-1].start - self.gaps[0].start) / DAY)
        hours = LearnedHours(self.expected_hours())
        loose = []
        for gap in self.gaps:
            if gap.was_known:
                continue
            near = {
                other.start // DAY for other in self.gaps if _apart(other.start, gap.start, DAY) <= SAME_TIME_S
            }
            if len(near) < max(2.0, BOUND_TO_TIME * days):
                worked_s = hours.seconds(gap.start, gap.start + gap.length_s)
                if gap.length_s >= REST_S and worked_s < gap.length_s / 2:
                    continue
                loose.append((worked_s, min(1.0, WEIGHTS[gap.ended])))
        self.idle_s = longest_by_weight(loose, ENOUGH_ANYWHERE) or 0.0

    def _forget(self, at: float) -> None:
        passed_s = at - self.weighed_at
        if passed_s < DAY:
            return
        share = 0.5 ** (passed_s / HALF_LIFE_S)
        self.pauses = [
            {name: n * share for name, n in block.items() if n * share > LEAST_COUNT} for block in self.pauses
        ]
        self.hearings *= share
        self.weighed_at = at

    def _count_hours(self, at: float, *, at_work: bool) -> None:
        """Close the hours before this one: at work in that of the last hearing, and between close hearings."""
        hour, last = int(at // HOUR), int(self.heard_at // HOUR)
        first = max(self.open_hour, hour - MISSED_WEEKS_AT_MOST * HOURS_OF_WEEK)
        for passed in range(first, hour):
            self._count(passed, 1.0 if at_work or passed <= last else 0.0)
        self.open_hour = max(self.open_hour, hour)

    def _skip_hours(self, at: float) -> None:
        for passed in range(self.open_hour, int(self.heard_at // HOUR) + 1):
            self._count(passed, 1.0)
        self.open_hour = max(self.open_hour, int(at // HOUR))

    def _count(self, hour: int, value: float) -> None:
        weeks = (hour - int(self.first_at // HOUR)) // HOURS_OF_WEEK
        index = hour % HOURS_OF_WEEK
        self.hours[index] += (value - self.hours[index]) / min(weeks + 1, WEEKS_REMEMBERED)


@dataclass(frozen=True)
class LearnedHours:
    """Hours of the week as working hours, with the interface of a calendar."""

    expected: Sequence[bool]

    def is_working(self, at: datetime) -> bool:
        return self.expected[int(at.timestamp() // HOUR) % HOURS_OF_WEEK]

    def working_seconds(self, start: datetime, end: datetime) -> float:
        return self.seconds(start.timestamp(), end.timestamp())

    def seconds(self, start: float, end: float) -> float:
        if end <= start:
            return 0.0
        weeks = int((end - start) // WEEK)
        total = weeks * HOUR * sum(self.expected)
        at = start + weeks * WEEK
        while at < end:
            until = min((at // HOUR + 1) * HOUR, end)
            if self.expected[int(at // HOUR) % HOURS_OF_WEEK]:
                total += until - at
            at = until
        return total

    @property
    def is_continuous(self) -> bool:
        return sum(self.expected) >= CONTINUOUS_HOURS

    @property
    def working_day_s(self) -> float:
        """How long it usually works between two rests of four hours or more."""
        hours = sum(self.expected)
        rest, rests = 0, 0
        # Twice around the week, so that a rest over its end is counted once.
        for index in range(2 * HOURS_OF_WEEK):
            rest = 0 if self.expected[index % HOURS_OF_WEEK] else rest + 1
            rests += rest == 4 and index >= HOURS_OF_WEEK  # noqa: PLR2004
        return min(HOUR * hours / max(rests, 1), DAY)


def longest_by_weight(weighed: Sequence[tuple[float, float]], enough: float) -> float | None:
    """The largest value that is reached by values of enough weight together."""
    weight = 0.0
    for value, more in sorted(weighed, reverse=True):
        weight += more
        if weight >= enough:
            return value
    return None


def _apart(one: float, other: float, period: float) -> float:
    """How far two times are apart on a clock with this period."""
    distance = abs(one - other) % period
    return min(distance, period - distance)


def _off(one: float, other: float) -> float:
    """How much later one time of day is than another; below 0 if earlier."""
    return (one - other + DAY / 2) % DAY - DAY / 2


def _block(at: float) -> int:
    return int(at // HOUR) % HOURS_OF_DAY // BLOCK_HOURS


def _middle(name: int) -> float:
    """The middle of a bin."""
    return ONE_HEARING_S * float(pow(2.0, (name - 0.5) / BINS_PER_OCTAVE))


def _quantile(counts: dict[int, float], share: float) -> float:
    """The middle of the bin that holds it."""
    left = (1 - share) * sum(counts.values())
    for name in sorted(counts, reverse=True):
        left -= counts[name]
        if left < 0:
            return _middle(name)
    return 0.0
