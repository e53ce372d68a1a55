"""Windows named after what they are: "release 2.1.0 since 24 Oct", never "everything stored" when it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from gapwatch.notation import count, date_words
from gapwatch.statistics.change.present import REACH
from gapwatch.store.read.directory import DatedEvent
from gapwatch.tally.presents import StoredPresent

EVERYTHING_STORED = "everything stored"
# From so long on, what was before is taken in whole days.
WHOLE_DAYS = timedelta(days=3)
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True)
class Began:
    """When the present and the version of a subject began, and what windows from then on are called."""

    now: datetime | None = None
    now_words: str = EVERYTHING_STORED
    version: datetime | None = None
    version_words: str = EVERYTHING_STORED


NOTHING_KNOWN = Began()


@dataclass(frozen=True)
class Before:
    """The real episodes before the present regime: of the same version, or of the versions before a release.

    Where nothing changed, those before the newest event; `then` is when the episodes since it begin.
    """

    since: datetime | None
    until: datetime
    words: str
    is_earlier_version: bool
    then: datetime | None = None
    then_words: str = ""


def day_words(at: datetime, now: datetime) -> str:
    """24 Oct, with the year where it is another than this one."""
    return date_words(at.astimezone(UTC), now.astimezone(UTC).year)


def span_words(since: datetime | None, until: datetime | None, now: datetime, spelled: str | None = None) -> str:
    """A window of two times; `spelled` is how its start was asked for: 7d is the last 7 days."""
    if since is None and until is None:
        return EVERYTHING_STORED
    if since is None:
        assert until is not None  # noqa: S101 - the case before
        return f"until {day_words(until, now)}"
    if until is None:
        if spelled is not None and spelled[:-1].isdecimal() and spelled[-1:] in _UNITS:
            return f"last {int(spelled[:-1])} {_UNITS[spelled[-1]]}"
        return f"since {day_words(since, now)}"
    return f"{day_words(since, now)} to {day_words(until, now)}"


def newest_words(n: int) -> str:
    return f"newest {count(n)} episodes" if n != 1 else "newest episode"


def began(present: StoredPresent | None, version: str, now: datetime) -> Began:
    """The windows of one deployment."""
    if present is None or present.since is None:
        return NOTHING_KNOWN
    version_since = _day(present.facts.version_since or present.since)
    is_whole_version = present.why in ("release", "start") and not present.is_cut
    return Began(
        version_since if is_whole_version else present.since,
        _regime_words(present, version, now),
        version_since,
        f"release {version} since {day_words(version_since, now)}",
    )


def _day(at: datetime) -> datetime:
    """A version has no episode before its first: from the start of that day on, all is counted already."""
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def before_of(present: StoredPresent | None, version: str, now: datetime) -> Before | None:
    """What a change is held against; None where nothing changed, or nothing lies before."""
    if present is None or present.since is None or present.before is None or present.why == "start":
        return None
    if present.before_until != present.since or (present.before_since or present.since) >= present.since:
        return None
    is_earlier = present.why == "release"
    what = {
        "release": f"before release {version}",
        "change": "before the change",
        "baseline": "before another baseline was chosen",
        "drifting": f"before it began to {'rise' if present.moved.verdict == 'rising' else 'fall'}",
    }[present.why]
    words = f"{what} on {day_words(present.since, now)}"
    since, until = present.before_since, present.since
    if since is None or until - since >= WHOLE_DAYS:
        # Whole days are counted already, and the day of a change is of both sides.
        since, until = None if since is None else _day(since), _day(until)
    return Before(since, until, words, is_earlier)


def before_event(present: StoredPresent | None, events: Sequence[DatedEvent], now: datetime) -> Before | None:
    """Where no change is known: what was before the newest event of the version; its day is of neither side."""
    if present is None or present.facts.version_since is None:
        return None
    first = present.facts.version_since
    for event in sorted(events, key=lambda one: one.at, reverse=True):
        day = _day(event.at)
        if day > first and day + timedelta(days=1) <= now - timedelta(days=1):
            words = f"“{event.title}” on {day_words(event.at, now)}"
            return Before(None, day, f"before {words}", False, day + timedelta(days=1), f"since {words}")
    return None


def no_before_words(present: StoredPresent | None, version: str, now: datetime) -> str:
    """Why there is no before."""
    if present is None or present.since is None:
        return "Nothing is known of its present yet, so there is no change to speak of."
    if present.is_cut:
        return (
            f"No change is known in the {newest_words(present.regime.n)}, and no event: "
            "there is no before to hold them against."
        )
    return (
        f"No change is known since the first episodes of {version} on {day_words(present.since, now)}, "
        "and no event: there is no before to hold them against."
    )


def _regime_words(present: StoredPresent, version: str, now: datetime) -> str:
    assert present.since is not None  # noqa: S101 - the caller looked
    day = day_words(present.since, now)
    if present.why == "change":
        return f"since the change on {day}"
    if present.why == "baseline":
        return f"since another baseline was chosen on {day}"
    if present.why == "drifting":
        return f"since it began to {'rise' if present.moved.verdict == 'rising' else 'fall'} on {day}"
    if present.is_cut:
        return newest_words(min(present.regime.n, REACH))
    return f"release {version} since {day}"


def fleet_began(presents: list[tuple[datetime | None, datetime | None]], now: datetime) -> Began:
    """The windows of everything together: from where the first of all deployments began."""
    together = began_together(presents, "", now)
    if together.now is None or together.version is None:
        return together
    return replace(
        together,
        now_words=f"the present of {len(presents)} deployments, since {day_words(together.now, now)}",
        version_words=f"releases that run now, since {day_words(together.version, now)}",
    )


def began_together(presents: list[tuple[datetime | None, datetime | None]], version: str, now: datetime) -> Began:
    """The windows of a policy version over several deployments: from where the first of them began."""
    since = min((at for at, _ in presents if at is not None), default=None)
    version_since = min((at for _, at in presents if at is not None), default=since)
    if since is None or version_since is None:
        return NOTHING_KNOWN
    where = "its deployment" if len(presents) == 1 else f"its {len(presents)} deployments"
    return Began(
        since,
        f"the present of {where}, since {day_words(since, now)}",
        version_since,
        f"release {version} since {day_words(version_since, now)}",
    )
