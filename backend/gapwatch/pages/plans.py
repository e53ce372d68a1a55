"""`/plans` and `/plans/{id}`: which trials to make next, how far they have come, and how promises were kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, get_args

from starlette.responses import RedirectResponse, Response

from gapwatch.errors import GapwatchError, Invalid, NotFound
from gapwatch.pages.figures.plans import HEIGHT, calibration_figure
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.sentences import plans as sentences
from gapwatch.store.people import trial_plans
from gapwatch.store.people.trial_plans import TrialPlan
from gapwatch.trials.planning import Goal, PlanWish, add_plan
from gapwatch.trials.progress import calibration_of, obtained, plan_csv, plan_json

MOST = 50


@dataclass(frozen=True)
class PlanEntry:
    id: int
    deployment: str
    goal: str
    created_at: datetime
    promise: str
    progress: str
    state: str


@dataclass(frozen=True)
class PlansPage:
    """`deployment`: whose plans are shown and can be made; None for those of the whole project."""

    deployment: str | None
    entries: list[PlanEntry]
    calibration: dict[str, Any]
    problems: list[str]
    given: dict[str, str]
    goals: dict[str, str]

    @property
    def calibrated(self) -> str:
        return sentences.calibrated(self.calibration)


@dataclass(frozen=True)
class PlanPage:
    plan: dict[str, Any]
    obtained: dict[str, Any]
    names: list[str]
    created_at: datetime
    promise: str
    progress: str

    @property
    def goal_words(self) -> str:
        return sentences.GOALS[self.plan["goal"]]

    @property
    def rows(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Cells with how far each has come."""
        return list(zip(self.plan["cells"], self.obtained["cells"], strict=True))


def show_plans(visit: Visit) -> View:
    deployment = visit.request.query_params.get("deployment") or None
    return _listed(visit, deployment, [], {})


def make_plan(visit: Visit) -> View | Response:
    form = visit.form
    deployment = form.line("deployment", 200)
    names = ("goal", "amount", "unit", "setup_minutes", "episode_minutes")
    given = {name: form.line(name) for name in names}
    try:
        wish = _wish(given)
        plan = add_plan(visit.transaction, visit.project_id, deployment, wish, datetime.now(UTC), visit.actor)
    except Invalid as error:
        return _listed(visit, deployment, [_words(error)], given)
    return RedirectResponse(visit.frame.links.to("plans", str(plan.id)), 303)


def show_plan(visit: Visit) -> View | Response:
    text = visit.path("plan_id")
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0  # noqa: PLR2004
    plan = trial_plans.find_plan(visit.transaction, visit.project_id, number)
    if plan is None:
        raise NotFound("There is no plan with this id.")
    found = obtained(plan, trial_plans.plan_trials(visit.transaction, visit.project_id, [number]))
    if visit.request.query_params.get("format") == "csv":
        headers = {"Content-Disposition": f'attachment; filename="gapwatch-plan-{number}.csv"'}
        return Response(plan_csv(plan, found), 200, headers, "text/csv; charset=utf-8")
    page = PlanPage(
        plan=plan_json(plan),
        obtained=found,
        names=list(dict.fromkeys(name for cell in plan.body["cells"] for name in cell["conditions"])),
        created_at=plan.created_at,
        promise=sentences.promise(plan.goal, plan.body["predicted"]),
        progress=sentences.progress(found),
    )
    return View("plan.html", page)


def _listed(visit: Visit, deployment: str | None, problems: list[str], given: dict[str, str]) -> View:
    every = trial_plans.plans_page(
        visit.transaction, visit.project_id, deployment=None, before_id=None, limit=MOST
    )
    trials = trial_plans.plan_trials(visit.transaction, visit.project_id, [plan.id for plan in every])
    found = [(plan, obtained(plan, trials)) for plan in every]
    kept = calibration_of(found)
    entries = [_entry(plan, one) for plan, one in found if deployment in (None, plan.deployment)]
    page = PlansPage(deployment, entries, kept, problems, given, sentences.GOALS)
    figures = {}
    if kept["points"]:
        links = visit.frame.links
        figures["calibration"] = calibration_figure(kept["points"], lambda number: links.to("plans", str(number)))
    return View("plans.html", page, 422 if problems else 200, figures, about={"height": HEIGHT})


def _entry(plan: TrialPlan, found: dict[str, Any]) -> PlanEntry:
    return PlanEntry(
        plan.id,
        plan.deployment,
        sentences.GOALS[plan.goal],
        plan.created_at,
        sentences.promise(plan.goal, plan.body["predicted"]),
        sentences.progress(found),
        found["state"],
    )


def _wish(given: dict[str, str]) -> PlanWish:
    goal = given["goal"]
    if goal not in get_args(Goal):
        raise Invalid("Choose a goal.")
    amount = _number(given["amount"], "the budget")
    is_hours = given["unit"] == "robot-hours"
    minutes = given["episode_minutes"]
    return PlanWish(
        goal,  # type: ignore[arg-type]
        episodes=None if is_hours else int(amount),
        robot_hours=amount if is_hours else None,
        setup_minutes=_number(given["setup_minutes"] or "0", "the set-up"),
        episode_minutes=_number(minutes, "the length of an episode") if minutes else None,
    )


def _number(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise Invalid(f"Give {what} as a number.") from None
    if not 0 <= value < 1e6:  # noqa: PLR2004
        raise Invalid(f"Give {what} as a number that is not negative and not larger than a million.")
    return value


def _words(error: GapwatchError) -> str:
    return str(error)
