"""Answers made by hand, for tests of what pages say about them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from gapwatch.answers.answer import Span
from gapwatch.answers.drop import DropAnswer, DropValue, SideValue
from gapwatch.answers.ledger import CategoryEpisodes, CategoryPart, DropPart, LedgerAnswer
from gapwatch.answers.now import NowBefore, NowEstimate, NowMoved, NowRegime, NowSim, NowValue
from gapwatch.answers.onset import OnsetAnswer
from gapwatch.answers.populations import Population
from gapwatch.answers.slices import SliceAnswer, SliceSide
from gapwatch.pages.alert_entry import AlertEntry

SUBJECT: dict[str, Any] = {
    "deployment": "berlin-line-3",
    "policy": "bin-pick",
    "version": "1.4.0",
    "task": "pick-mug",
    "window": Span(None, None),
    "baseline": None,
    "n_sim": 400,
    "n_real": 1200,
    "method": "by hand",
}


def a_side(successes: int, n: int, interval: tuple[float, float] | None = None, **more: Any) -> SideValue:
    value = successes / n if n else None
    return SideValue(
        **{"n": n, "value": value, "interval": interval, "aborted": 0, "abandoned": 0} | more, successes=successes
    )


SIM = a_side(380, 400, (0.924, 0.967))
REAL = a_side(840, 1200, (0.673, 0.725))
NOBODY = a_side(0, 0)


def a_drop(
    value: float | None, verdict: str, interval: tuple[float, float] | None = None, **more: Any
) -> DropAnswer:
    fields = {
        "metric": "success",
        "sim": SIM,
        "real": REAL,
        "drop": DropValue(value, interval, None),
        "paired": None,
        "verdict": verdict,
        "smallest_that_matters": 0.05,
        "episodes_needed": None,
        "episodes_needed_reason": None,
        "better": "higher",
        "direction": "default",
    }
    fields |= {"population": Population("these", "further episodes of this robot", None, 0), "populations": ()}
    return DropAnswer(**SUBJECT | fields | more)


LARGE = a_drop(0.25, "large", (0.21, 0.28))


def an_onset(verdict: str = "at_deploy", **more: Any) -> OnsetAnswer:
    fields = {
        "verdict": verdict,
        "sentence": "It was lost from the first day on.",
        "change": None,
        "change_day": None,
        "plausible": None,
        "risen_day": None,
        "where": (),
        "versions": (),
        "gains": {},
        "step_days": 1,
    }
    return OnsetAnswer(**SUBJECT | fields | more)


STEP = an_onset("step_change", change=0.12, change_day=date(2026, 11, 2))


def a_part(
    name: str, contribution: float, interval: tuple[float, float] | None = None, weight: float = 1.0
) -> CategoryPart:
    category = name.lower().replace(" ", "_")
    return CategoryPart(category, name, True, contribution, interval, weight, 0.0, CategoryEpisodes(7, 0, ()))


CONTACT = a_part("Contact dynamics", 0.15, (0.1, 0.2))


def a_ledger(**more: Any) -> LedgerAnswer:
    fields = {
        "drop": 0.25,
        "categories": (CONTACT,),
        "unattributed": None,
        "off_support": DropPart(0.1, 0.1, (0.05, 0.15)),
        "mix": DropPart(-0.05, -0.05, None),
        "rate": DropPart(0.2, 0.2, (0.1, 0.3)),
        "reverses": False,
        "mantel_haenszel": None,
        "strata": None,
        "shapley": None,
        "failures_read": {},
        "suspects": (),
        "split_method": None,
    }
    return LedgerAnswer(**SUBJECT | fields | more)


def a_slice(
    condition: str, level: str, real: float | None, seen: str = "both", sure_loss: float | None = None, **more: Any
) -> SliceAnswer:
    side = SliceSide(
        100, 0 if real is None else round(100 * real), real, None if real is None else (real - 0.05, real + 0.05)
    )
    return SliceAnswer(
        condition,
        level,
        side,
        side,
        seen,
        None,
        None,
        None,
        "none",
        None,
        None,
        False,
        (),
        None,
        sure_loss,
        **more,
    )


def a_present(**more: Any) -> NowValue:
    """It fell from 96 % to 51 % on 30 October, and simulation is at 95 %."""
    until = datetime(2026, 10, 30, 6, tzinfo=UTC)
    fields = {
        "since": until,
        "why": "drifting",
        "estimate": NowEstimate(43 / 84, (0.407, 0.616), 84, 43, "newest 84 episodes"),
        "regime": NowRegime(43 / 84, (0.375, 0.646), 84, 43, "since it began to fall on 30 Oct", True),
        "sim": NowSim(400, 0.95, (0.924, 0.967)),
        "drop": DropValue(0.438, (0.33, 0.54), None),
        "verdict": "large",
        "before": NowBefore(0.96, (0.93, 0.98), 300, until),
        "moved": NowMoved(-45.0, (-56.0, -34.0), "falling"),
        "robots": (),
        "design_effect": 1.0,
        "computed_at": datetime(2026, 11, 18, tzinfo=UTC),
    }
    return NowValue(**fields | more)


def an_alert(deployment: str = "berlin-line-3", **more: Any) -> AlertEntry:
    opened = datetime(2026, 11, 2, 9, tzinfo=UTC)
    fields = {
        "id": 7,
        "headline": "success fell from 91 % to 70 %",
        "rule": "success-drift",
        "deployment": deployment,
        "site": None,
        "severity": "critical",
        "reason": "performance",
        "state": "firing",
        "since": opened,
        "opened_at": opened,
        "acknowledged_by": None,
        "dry_run": False,
        "incident": None,
        "href": "/alerts/7",
    }
    return AlertEntry(**fields | more)
