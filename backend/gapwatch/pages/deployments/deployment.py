"""`/deployments/{slug}`: how much is lost, why, is it getting worse, who knows; and everything behind it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gapwatch.answers import (
    contract,
    drop,
    failures,
    ledger,
    onset,
    ranges,
    robots_sites,
    shadow,
    signals,
    slices,
    trend,
)
from gapwatch.answers.contract import answer_contract
from gapwatch.answers.drop import DropAnswer, answer_drop, side_value
from gapwatch.answers.failure_weights import weigh_sides
from gapwatch.answers.failures import answer_failures
from gapwatch.answers.leading_categories import established_lead
from gapwatch.answers.ledger import CategoryPart, LedgerAnswer, answer_ledger, leading_part
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.needs import Need
from gapwatch.answers.now import NowValue, now_of
from gapwatch.answers.onset import answer_onset
from gapwatch.answers.question import history_window, question_of
from gapwatch.answers.ranges import answer_ranges
from gapwatch.answers.robots_sites import answer_robots
from gapwatch.answers.shadow import answer_shadow
from gapwatch.answers.sides import Sides
from gapwatch.answers.signals import answer_signals
from gapwatch.answers.slices import SlicesAnswer, answer_slices
from gapwatch.answers.subjects import deployment_subject
from gapwatch.answers.trend import answer_trend
from gapwatch.answers.window_words import no_before_words
from gapwatch.closing.advice import advise, log_first
from gapwatch.closing.closures import answer_fixes
from gapwatch.errors import Invalid, NotFound
from gapwatch.filters import DeploymentFilter, parse_happened
from gapwatch.pages.alert_words import open_alerts
from gapwatch.pages.deployments.figures import draw
from gapwatch.pages.deployments.report import Report, report_headers
from gapwatch.pages.deployments.tables import csv_answer, deployment_table
from gapwatch.pages.deployments.view import Choices, DeploymentPage
from gapwatch.pages.filtering import (
    TIMES,
    Asked,
    against_switch,
    applied,
    population_switch,
    read_filter,
    window_or_now,
    window_picker,
)
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.rollout_part import rollout_part
from gapwatch.pages.static import Assets
from gapwatch.store.alerting.events import EVENT_KINDS, MOST_EVENTS, delete_event, record_event
from gapwatch.store.read.directory import Deployment
from gapwatch.store.read.labelling_progress import LabellingProgress

LONGEST_TITLE = 200
ALWAYS_METRICS = ("success", "reward", "duration_s")
# Sessions for both sides of success, cells for what the filters offer.
NEEDS = (
    contract.NEEDS
    | drop.NEEDS
    | failures.NEEDS
    | ledger.NEEDS
    | onset.NEEDS
    | ranges.NEEDS
    | robots_sites.NEEDS
    | shadow.NEEDS
    | signals.NEEDS
    | slices.NEEDS
    | trend.NEEDS
    | Need.SESSIONS
    | Need.CELLS
)


class DeploymentHandlers:
    def __init__(self, assets: Assets) -> None:
        self._assets = assets

    def show(self, visit: Visit) -> View | Response:
        page = self._look(visit)
        wanted = visit.request.query_params.get("format")
        if wanted == "csv":
            table = visit.request.query_params.get("table", "")
            return csv_answer(f"{page.slug}-{table}-{page.window_of(table)}", deployment_table(page, table))
        status = 422 if page.problems else 200
        if wanted == "report":
            figures = draw(page, links=None)
            report = Report(figures, self._assets)
            return View(
                "report.html", page, status, figures.drawn, report_headers(page.slug, page.window.name), report
            )
        figures = draw(page, visit.frame.links)
        return View("deployment.html", page, status, figures.drawn, about=figures)

    def record(self, visit: Visit) -> Response:
        """An event: a release, a calibration, a mitigation; or take one back."""
        described = deployment_subject(visit.transaction, visit.project_id, _slug(visit)).described
        if visit.form.one("act") == "remove-event" and described is not None:
            return self._take_back(visit, described)
        kind, title = visit.form.one("kind"), visit.form.line("title", LONGEST_TITLE)
        try:
            at = parse_happened(visit.form.moment("at") or "0h", datetime.now(UTC))
        except ValueError as error:
            raise Invalid(f"{str(error).capitalize()}.") from None
        if kind not in EVENT_KINDS or not title or described is None:
            raise Invalid("Give a kind and a title.")
        record_event(
            visit.transaction,
            visit.project_id,
            kind=kind,
            at=at,
            title=title,
            deployment_id=described.id,
            actor=visit.actor,
        )
        return RedirectResponse(visit.frame.links.to("deployments", described.slug), 303)

    def _take_back(self, visit: Visit, described: Deployment) -> Response:
        number = visit.form.number("event")
        if not delete_event(visit.transaction, visit.project_id, number, visit.actor, deployment_id=described.id):
            raise NotFound("There is no such event.")
        return RedirectResponse(visit.frame.links.to("deployments", described.slug), 303)

    def _look(self, visit: Visit) -> DeploymentPage:
        asked = _read_filter(visit.request)
        window = window_or_now(asked.given)
        # What was before the present is seen beside it.
        question = replace(
            question_of(asked.filter.model_copy(update=window), datetime.now(UTC)), is_history_whole=True
        )
        subject = deployment_subject(visit.transaction, visit.project_id, _slug(visit))
        sides = load_sides(visit.transaction, visit.project_id, subject, question, NEEDS)
        described = subject.described
        assert described is not None  # noqa: S101 - a deployment's subject is described
        # What only the JSON twin shows is not computed for the page.
        in_full = visit.request.query_params.get("format") == "json"
        held = sides.as_asked
        weighed = weigh_sides(held)
        slices = answer_slices(held, level_pairs=in_full)
        ledger = answer_ledger(held, weighed, condition_shares=in_full)
        trend, drop, now = answer_trend(sides), answer_drop(sides), now_of(sides)
        # Shown from where the line begins: older events explain nothing that is seen.
        began = history_window(sides.question).since
        first = began or min((step.at for step in trend.steps), default=described.described_at)
        events = sides.events_since(first - timedelta(days=2))[-MOST_EVENTS:]
        # Nothing more is read where nobody ever told of a fix.
        has_fixes = subject.surroundings.has_mitigations
        fixes = answer_fixes(visit.transaction, visit.project_id, question.now) if has_fixes else []
        return DeploymentPage(
            slug=described.slug,
            policy=described.policy,
            version=described.version,
            task=described.task,
            site=described.site,
            stage=described.stage,
            newest=described.last_episode_at,
            drop=drop,
            sim=side_value(held.sim, held.real),
            real=side_value(held.real, held.sim),
            lead=_lead(drop, now, ledger),
            ledger=ledger,
            slices=slices,
            signals=answer_signals(held),
            failures=answer_failures(held, weighed),
            robots=answer_robots(sides),
            shadow=answer_shadow(sides),
            ranges=answer_ranges(sides),
            trend=trend,
            contract=answer_contract(sides),
            onset=answer_onset(sides),
            events=events,
            fixes=[fix for fix in fixes if fix.deployment in (described.slug, None)],
            advice=advise(ledger, fixes),
            log_first=log_first(ledger),
            alerts=open_alerts(visit, described.slug),
            labelling=_labelling(sides, described.slug),
            choices=_choices(sides, slices, asked.given),
            given=asked.given,
            applied=applied(visit.frame.links, ("deployments", described.slug), asked.given),
            now=now,
            # The newest hundred episodes speak for the robots that they are of.
            is_now=question.asked_window == "now"
            and question.wanted.is_open
            and question.metric == "success"
            and question.population == "these",
            asked_at=question.now,
            against=against_switch(
                visit.frame.links,
                ("deployments", described.slug),
                asked.given,
                subject.before_or_event(question.now),
            ),
            populations=population_switch(
                visit.frame.links,
                ("deployments", described.slug),
                asked.given,
                {one.population: one.words for one in drop.populations},
            ),
            no_before=no_before_words(subject.surroundings.present, subject.version, question.now),
            window=window_picker(
                visit.frame.links, ("deployments", described.slug), asked.given, sides.question.window_words
            ),
            problems=asked.problems,
            rollout=rollout_part(visit, subject.surroundings.rollout, described.slug, question.now),
        )


def _slug(visit: Visit) -> str:
    slug = visit.path("slug")
    if "\0" in slug:
        raise NotFound("There is no deployment with this name.")
    return slug


def _read_filter(request: Request) -> Asked[DeploymentFilter]:
    asked = read_filter(request, DeploymentFilter)
    window = {name: values for name, values in asked.given.items() if name in TIMES}
    if asked.filter.against == "simulation" or window in ({}, {"window": ["now"]}):
        return asked
    problem = "against: what was before is held against the present; choose the window now."
    given = {name: values for name, values in asked.given.items() if name != "against"}
    return Asked(asked.filter.model_copy(update={"against": "simulation"}), [*asked.problems, problem], given)


def _lead(drop: DropAnswer, now: NowValue, ledger: LedgerAnswer) -> CategoryPart | None:
    """The category that loses most, where a loss is established at all: of simulation, or of what was before."""
    if ledger.against.kind == "simulation":
        return established_lead(drop, ledger)
    return leading_part(ledger) if now.moved.verdict in ("fell", "falling") else None


def _labelling(sides: Sides, slug: str) -> LabellingProgress:
    counts = sides.real.failure_counts
    labelled = sum(count.failures for count in counts if count.signature.category is not None)
    return LabellingProgress(slug, labelled, sum(count.failures for count in counts))


def _choices(sides: Sides, slices: SlicesAnswer, filters: dict[str, list[str]]) -> Choices:
    cells = [count.cell for count in sides.real.cells]
    named = {
        "robot": {cell.robot for cell in cells if cell.robot} | set(filters.get("robot", [])),
        "site": {cell.site for cell in cells if cell.site} | set(filters.get("site", [])),
    }
    baseline = sides.baseline
    simulators = [] if baseline is None else [(baseline.simulator, baseline.version)]
    simulators += [] if baseline is None else [(other.simulator, other.version) for other in baseline.alternatives]
    return Choices(
        metrics=list(
            dict.fromkeys([*ALWAYS_METRICS, *sides.subject.surroundings.metrics, *filters.get("metric", [])])
        ),
        simulators=[f"{name}@{version}" for name, version in simulators],
        robots=sorted(named["robot"]),
        sites=sorted(named["site"]),
        conditions=[f"{level.condition}:{level.level}" for level in slices.slices],
    )
