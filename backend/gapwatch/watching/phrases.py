"""What an alert says of itself: a few words with the numbers first, from its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gapwatch.notation import utc_words
from gapwatch.taxonomy import joint_words
from gapwatch.watching.series import OF_LEVEL, OF_ROBOT, RATE_SERIES

MOVED = {"higher": "rose", "lower": "fell"}


@dataclass(frozen=True)
class AlertReason:
    """One alert of an incident."""

    rule: str
    kind: str
    severity: str
    series: str
    evidence: Mapping[str, Any]
    opened_at: datetime
    regressed: bool = False
    escalating: bool = False

    @property
    def series_name(self) -> str:
        """The series without its stage or robot."""
        return self.series.partition("@")[0]


def series_phrase(reason: AlertReason, reference_word: str = "") -> str:
    """`success 91 % → 48 % (n 52), since …` for a rate, `reward fell, since …` for anything else.

    Of one robot: `osaka-3: success 62 % (n 45), others 93 %, since …`; of one level of a condition: `light=dim:
    success 75 % → 50 % (n 45), since …`.
    `reference_word` says what a rate is compared with where that is neither its past nor sim.
    """
    since = reason.evidence.get("since") or {}
    if reason.series_name not in RATE_SERIES or since.get("value") is None:
        moved = MOVED.get(str(since.get("direction")), "changed shape")
        return f"{reason.series_name.partition(':')[2] or reason.series_name} {moved}{since_words(reason)}"
    reference = reason.evidence.get("reference") or {}
    robot = reason.series.partition(OF_ROBOT)[2]
    if robot:
        others = f", others {100 * reference['value']:.0f} %" if reference.get("value") is not None else ""
        now = f"{robot}: {reason.series_name} {100 * since['value']:.0f} % (n {since.get('n')})"
        return f"{now}{others}{since_words(reason)}"
    before = ""
    if reference.get("value") is not None:
        side = " in sim" if reference.get("side") == "sim" and not reference_word else ""
        before = f"{reference_word}{100 * reference['value']:.0f} %{side} → "
    now = f"{100 * since['value']:.0f} % (n {since.get('n')})"
    level = reason.series.partition(OF_LEVEL)[2]
    what = f"{level}: {reason.series_name}" if level else reason.series_name
    return f"{what} {before}{now}{since_words(reason)}{mix_words(reason)}"


def mix_words(reason: AlertReason) -> str:
    """That conditions came which sim has not, so that they are compared with all of sim, or which came less often
    before; else nothing.
    """
    mix = reason.evidence.get("mix")
    if not mix:
        return ""
    if "before" in mix:
        shares = f"{100 * mix['share']:.0f} % of episodes, {100 * mix['before']:.0f} % before"
        return f"; the mix changed: {mix['level']} in {shares}"
    return f"; the mix changed: {mix['level']}, which sim has not, among {100 * mix['share']:.0f} % of episodes"


def since_words(reason: AlertReason) -> str:
    start = reason.evidence.get("change_point", {}).get("at")
    return f", since {clock(start)}" if start else ""


def clock(at: str | None) -> str:
    """Day and time as a person on call reads them: `16 Nov 09:14 UTC`."""
    return utc_words(datetime.fromisoformat(at)) if at else "an unknown time"


def category_name(category: Any) -> str:
    """As people say it: `contact dynamics`. A project's own categories keep their names."""
    return joint_words(str(category), lower=True)
