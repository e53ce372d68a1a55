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
    part_shift: float = 0.0


@dataclass(frozen=True)
class DetectorInput:
    """What a detector is given: an episode's value, or a part of a session. `first` names its first episode."""

    value: float | SessionPart
    first: list[str]

    @property
    def n(self) -> int:
        return self.value.n if isinstance(self.value, SessionPart) else 1


class Sessions:
    """The open sessions of one series of a deployment, in the order in which they began."""

    def __init__(self, stored: Sequence[dict[str, Any]] = ()) -> None:
        self._open = {session["session"]: OpenSession(**session) for session in stored}

    def dump(self) -> list[dict[str, Any]]:
        return [asdict(session) for session in self._open.values()]

    @property
    def is_empty(self) -> bool:
        return not self._open

    def begins(self, episode: SeenEpisode) -> bool:
        """Whether this is the first episode of a session."""
        return episode.session is not None and episode.session not in self._open

    def end_before(self, episode: SeenEpisode) -> list[DetectorInput]:
        """End the sessions that are over when this episode arrives.

        One is over when its robot begins another one, when an episode begins two hours after its last one, or when
        a new one begins and twenty are open. An episode that comes for it afterwards begins it again.
        """
        at_s = episode.started_at.timestamp()

        def moved_on(session: OpenSession) -> bool:
            return session.robot == episode.robot and episode.session not in {None, session.session}

        over = [
            session for session in self._open.values() if moved_on(session) or at_s - session.last_s > OVER_AFTER_S
        ]
        complete = [part for session in over for part in self._end(session)]
        if self.begins(episode) and len(self._open) >= MOST_OPEN:
            complete += self._end(next(iter(self._open.values())))
        return complete

    def take(self, episode: SeenEpisode, value: float, part_size: int, shift: float = 0.0) -> list[DetectorInput]:
        """Add an episode and return what it completes. `part_size` is for a session that begins with it.

        `shift`: by how much its value is expected above the reference.
        """
        mark, at_s = [time_words(episode.started_at), episode.id], episode.started_at.timestamp()
        if episode.session is None:
            return [DetectorInput(value, mark)]
        session = self._open.setdefault(episode.session, OpenSession(episode.session, None, at_s, part_size, mark))
        session.robot, session.last_s = episode.robot, max(session.last_s, at_s)
        session.n, session.total = session.n + 1, session.total + value
        if not session.part_size:
            return [DetectorInput(value, mark)]
        if not session.part_n:
            session.first = mark
        session.part_n, session.part_total = session.part_n + 1, session.part_total + value
        session.part_shift += shift
        if session.part_n < session.part_size:
            return []
        n = session.part_n
        part = SessionPart(session.part_total / n, n, shift=session.part_shift / n)
        full = DetectorInput(part, session.first)
        session.part_n, session.part_total, session.part_shift = 0, 0.0, 0.0
        return [full]

    def end_all(self) -> list[DetectorInput]:
        return [part for session in list(self._open.values()) for part in self._end(session)]

    def _end(self, session: OpenSession) -> list[DetectorInput]:
        del self._open[session.session]
        ended = (session.total, session.n)
        if not session.part_size:
            return [DetectorInput(SessionPart(0.0, 0, is_judged=False, ended=ended, counted=True), session.first)]
        # What is left after the last full part says too little by itself if it is short.
        is_judged = session.part_n == session.n or 2 * session.part_n >= session.part_size
        n = max(1, session.part_n)
        part = SessionPart(
            session.part_total / n,
            session.part_n,
            is_judged and session.part_n > 0,
            ended,
            shift=session.part_shift / n,
        )
        return [DetectorInput(part, session.first)]
