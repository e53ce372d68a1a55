"""Silences of the past: arrivals in their order through the code that listens live."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from gapwatch.watching.kinds.no_data import NoDataParams
from gapwatch.watching.rhythm import ExcusedSpan
from gapwatch.watching.silence import (
    GONE_AFTER,
    RobotArrival,
    SenderPresence,
    Silence,
    SilenceContext,
    WorkHours,
    evidence_of,
    hear,
    judge,
)

# How exactly the time is found at which a silence became news.
EXACT = timedelta(seconds=30)


@dataclass
class PastSilence:
    """A silence that was news: when, when it paged if it did, and when it was over."""

    deployment_id: int
    series: str
    fired_at: datetime
    paged_at: datetime | None
    evidence: dict[str, Any]
    cleared_at: datetime | None = None


@dataclass
class SilenceReplay:
    """Follows the robots of a project. Robots move between deployments; one is missed where it was heard last."""

    params: NoDataParams
    excused: Sequence[ExcusedSpan] = ()
    calendars: Mapping[int, WorkHours] = field(default_factory=dict)
    resting: frozenset[str] = frozenset()
    silences: list[PastSilence] = field(default_factory=list)
    _deployments: dict[int, SenderPresence] = field(default_factory=dict)
    _robots: dict[str, SenderPresence] = field(default_factory=dict)
    _times: dict[int, list[datetime]] = field(default_factory=dict)
    _open: dict[tuple[int, str], PastSilence] = field(default_factory=dict)

    def hear(self, arrival: RobotArrival) -> None:
        at, deployment_id = arrival.received_at, arrival.deployment_id
        robot, deployment = self._robots.get(arrival.sender), self._deployments.get(deployment_id)
        if deployment is not None and at - deployment.heard_at > self._after:
            self._find_missing(deployment, at)
        if robot is not None and robot.deployment_id == deployment_id and at - robot.heard_at > self._after:
            self._find_missed(robot, at)
        for sender in (robot, deployment):
            if sender is not None and sender.silence is not None:
                self._clear(sender, at)
        times = [(at, arrival.started_at)]
        self._robots[arrival.sender] = hear(robot, arrival.sender, deployment_id, times, self.excused)
        self._deployments[deployment_id] = hear(deployment, None, deployment_id, times, self.excused)
        self._times.setdefault(deployment_id, []).append(at)

    def fork(self) -> SilenceReplay:
        """A copy that goes on by itself."""
        return deepcopy(self, {id(self._times): {place: times[-100:] for place, times in self._times.items()}})

    def end(self, now: datetime) -> None:
        """Look once more: what is quiet now may be silent."""
        for deployment in self._deployments.values():
            self._find_missing(deployment, now)
        for robot in self._robots.values():
            self._find_missed(robot, now)

    @property
    def _after(self) -> timedelta:
        return timedelta(minutes=self.params.after_minutes)

    def _find_missing(self, deployment: SenderPresence, until: datetime) -> None:
        """Whether a deployment fell silent before it was heard again."""
        members = [
            robot
            for robot in self._robots.values()
            if robot.deployment_id == deployment.deployment_id
            and robot.robot not in self.resting
            and deployment.heard_at - robot.heard_at < GONE_AFTER
        ]
        for robot in members:
            self._find_missed(robot, deployment.heard_at)
        around = SilenceContext(self.calendars.get(deployment.deployment_id), members, self.excused)
        self._fire(deployment, around, deployment.heard_at, until)

    def _find_missed(self, robot: SenderPresence, until: datetime) -> None:
        """Whether a robot was missed while its deployment was heard."""
        if robot.silence is not None or robot.robot in self.resting or until - robot.heard_at <= self._after:
            return
        around = SilenceContext(self.calendars.get(robot.deployment_id), (), self.excused)
        times = self._times[robot.deployment_id]
        silent_at = self._first(robot, around, robot.heard_at, until, pages=False)
        if silent_at is None:
            return
        # Others were heard shortly before, or it is missed when they are heard next.
        heard = bisect_right(times, silent_at)
        if heard == 0 or times[heard - 1] <= max(robot.heard_at, silent_at - self._after):
            heard = bisect_left(times, silent_at)
            if heard == len(times) or times[heard] >= until:
                return
            silent_at = times[heard]
        self._note(robot, judge(robot, self.params, silent_at, around), silent_at, None, ())

    def _fire(self, sender: SenderPresence, around: SilenceContext, since: datetime, until: datetime) -> None:
        if sender.silence is not None:
            return
        fired_at = self._first(sender, around, since, until, pages=False)
        if fired_at is not None:
            paged_at = self._first(sender, around, fired_at - EXACT, until, pages=True)
            silence = judge(sender, self.params, paged_at or fired_at, around)
            self._note(sender, silence, fired_at, paged_at, around.members)

    def _first(
        self, sender: SenderPresence, around: SilenceContext, since: datetime, until: datetime, *, pages: bool
    ) -> datetime | None:
        """The first time at which the silence is news, or a page. Once it is, it stays so."""

        def is_news(at: datetime) -> bool:
            silence = judge(sender, self.params, at, around)
            return silence is not None and (silence.pages or not pages)

        if not is_news(until):
            return None
        early, late = since, until
        while late - early > EXACT:
            middle = early + (late - early) / 2
            early, late = (early, middle) if is_news(middle) else (middle, late)
        return late

    def _note(
        self,
        sender: SenderPresence,
        silence: Silence | None,
        fired_at: datetime,
        paged_at: datetime | None,
        members: Sequence[SenderPresence],
    ) -> None:
        if silence is None:
            return
        sender.silence = silence.word
        evidence = evidence_of(sender, silence, members)
        past = PastSilence(sender.deployment_id, sender.series, fired_at, paged_at, evidence)
        self.silences.append(past)
        self._open[sender.deployment_id, sender.series] = past

    def _clear(self, sender: SenderPresence, at: datetime) -> None:
        past = self._open.pop((sender.deployment_id, sender.series), None)
        if past is not None:
            past.cleared_at = at
