"""Sessions on their way through a detector: episodes of one session become one value, or a few if it is long.

State is a few numbers for each session that is open, and at most twenty are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gapwatch.statistics.change.drift_by_sessions import SessionPart
from gapwatch.watching.series import SeenEpisode, time_words

OVER_AFTER_S = 2 * 3600.0
MOST_OPEN = 20


@dataclass
class OpenSession:
    """`part_n` and `part_total` are of the part that is not full, `first` its first episode's time and id."""

    session: str
    robot: str | None
    last_s: float
    # How many episodes are judged as one; 0 where each is judged by itself.
    part_size: int
    first: list[str]
    n: int = 0
    total: float = 0.0
    part_n: int = 0
    part_total: float = 0.0


@dataclass(frozen=True)
class DetectorInput:
    """What a detector is given: an episode's value, or a part of a session. `first` names its first episode."""

    given: float | SessionPart
    first: list[str]

    @property
    def n(self) -> int:
        return self.given.n if isinstance(self.given, SessionPart) else 1


class Sessions:
    """The open sessions of one series of a deployment, in the order in which they began."""

    def __init__(self, stored: Sequence[dict[str, Any]] = ()) -> None:
        self._open = {one["session"]: OpenSession(**one) for one in stored}

    def dump(self) -> list[dict[str, Any]]:
        return [asdict(one) for one in self._open.values()]

    @property
    def is_empty(self) -> bool:
        return not self._open

    def begins(self, episode: SeenEpisode) -> bool:
        """Whether this is the first episode of a session."""
        return episode.session is not None and episode.session not in self._open

    def end_before(self, episode: SeenEpisode) -> list[DetectorInput]:
        """The sessions that are over when this episode comes.

        One is over when its robot begins another one, when an episode begins two hours after its last one, or when
        a new one begins and twenty are open. An episode that comes for it afterwards begins it again.
        """
        at_s = episode.started_at.timestamp()

        def moved_on(one: OpenSession) -> bool:
            return one.robot == episode.robot and episode.session not in {None, one.session}

        over = [one for one in self._open.values() if moved_on(one) or at_s - one.last_s > OVER_AFTER_S]
        complete = [fed for one in over for fed in self._end(one)]
        if self.begins(episode) and len(self._open) >= MOST_OPEN:
            complete += self._end(next(iter(self._open.values())))
        return complete

    def take(self, episode: SeenEpisode, value: float, part_size: int) -> list[DetectorInput]:
        """What is complete with this episode. `part_size` is for a session that begins with it."""
        mark, at_s = [time_words(episode.started_at), episode.id], episode.started_at.timestamp()
        if episode.session is None:
            return [DetectorInput(value, mark)]
        one = self._open.setdefault(episode.session, OpenSession(episode.session, None, at_s, part_size, mark))
        one.robot, one.last_s = episode.robot, max(one.last_s, at_s)
        one.n, one.total = one.n + 1, one.total + value
        if not one.part_size:
            return [DetectorInput(value, mark)]
        if not one.part_n:
            one.first = mark
        one.part_n, one.part_total = one.part_n + 1, one.part_total + value
        if one.part_n < one.part_size:
            return []
        full = DetectorInput(SessionPart(one.part_total / one.part_n, one.part_n), one.first)
        one.part_n, one.part_total = 0, 0.0
        return [full]

    def end_all(self) -> list[DetectorInput]:
        return [fed for one in list(self._open.values()) for fed in self._end(one)]

    def _end(self, one: OpenSession) -> list[DetectorInput]:
        del self._open[one.session]
        ended = (one.total, one.n)
        if not one.part_size:
            return [DetectorInput(SessionPart(0.0, 0, is_judged=False, ended=ended, counted=True), one.first)]
        # What is left after the last full part says too little by itself if it is short.
        is_judged = one.part_n == one.n or 2 * one.part_n >= one.part_size
        mean = one.part_total / one.part_n if one.part_n else 0.0
        return [DetectorInput(SessionPart(mean, one.part_n, is_judged and one.part_n > 0, ended), one.first)]
