"""Senders whose clock is wrong: they say when they sent, and their times are corrected by the difference."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from gapwatch.errors import Fault, Invalid
from gapwatch.record import EARLIEST, Time

# Less than this is the network and ordinary drift.
SMALLEST_SKEW_S = 60.0

_HEADER = "Gapwatch-Sent-At"


@dataclass(frozen=True)
class SenderClock:
    now: datetime
    """The present by the sender's clock."""
    skew_s: float | None
    """How far it is ahead of ours, when that matters."""

    def as_answer(self) -> dict[str, float]:
        """What the answer says about the clock."""
        return {} if self.skew_s is None else {"clock_skew_s": self.skew_s}


def read_clock(sent_at: str | None) -> SenderClock:
    now = datetime.now(UTC)
    if sent_at is None:
        return SenderClock(now, None)
    try:
        skew_s = (msgspec.convert(sent_at, type=Time) - now).total_seconds()
        # Raise OverflowError for a clock that is too far off to correct a time by, from the earliest one on.
        now + timedelta(seconds=2 * skew_s)
        EARLIEST - timedelta(seconds=skew_s)
    except (msgspec.ValidationError, OverflowError):
        message = f"{_HEADER} is the time of sending, RFC 3339 with an offset."
        raise Invalid(message, errors=[Fault(pointer=_HEADER, code="bad-time", message=message)]) from None
    if abs(skew_s) < SMALLEST_SKEW_S:
        return SenderClock(now, None)
    return SenderClock(now + timedelta(seconds=skew_s), round(skew_s, 3))
