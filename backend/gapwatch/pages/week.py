"""`/week`: Monday's page, on one screen and on paper."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gapwatch.closing.week import WeekAnswer, answer_week
from gapwatch.closing.week_words import outcome_words, week_headline, week_name
from gapwatch.pages.frame import View, Visit
from gapwatch.store.alerting.watch_queue import now


@dataclass(frozen=True)
class WeekPage:
    name: str
    headline: str
    week: WeekAnswer
    # Of each fix, in the order of the week's.
    outcomes: list[str]
    asked_at: datetime


def show_week(visit: Visit) -> View:
    at = now(visit.transaction)
    week = answer_week(visit.transaction, visit.project_id, at)
    outcomes = [outcome_words(fix) for fix in week.fixes]
    return View("week.html", WeekPage(week_name(week), week_headline(week), week, outcomes, at))
