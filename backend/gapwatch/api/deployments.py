"""Reading deployments: the fleet, and every question about one of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import Field
from starlette.responses import Response

from gapwatch.access.keys import KeyHolder
from gapwatch.answers import (
    contract,
    deployment,
    drop,
    failures,
    ledger,
    onset,
    prediction,
    signals,
    slices,
    trend,
)
from gapwatch.answers.contract import ContractAnswer, answer_contract
from gapwatch.answers.deployment import DeploymentAnswer, answer_deployment
from gapwatch.answers.drop import DropAnswer, answer_drop
from gapwatch.answers.failures import FailuresAnswer, answer_failures
from gapwatch.answers.fleet import FleetAnswer, answer_fleet
from gapwatch.answers.ledger import LedgerAnswer, answer_ledger
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.needs import Need
from gapwatch.answers.onset import OnsetAnswer, answer_onset
from gapwatch.answers.prediction import PredictionAnswer, answer_prediction
from gapwatch.answers.question import question_of
from gapwatch.answers.sides import Sides
from gapwatch.answers.signals import SignalsAnswer, answer_signals
from gapwatch.answers.slices import SlicesAnswer, answer_slices
from gapwatch.answers.subjects import deployment_subject
from gapwatch.answers.trend import TrendAnswer, answer_trend
from gapwatch.api.answer_schemas import answered, answers
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.errors import NotFound
from gapwatch.filters import DropFilter, Name, StatisticsFilter, TrendFilter
from gapwatch.keyring import Keyring
from gapwatch.store.core.database import Database

LARGEST_PAGE = 1000
REFUSALS = (401, 403, 404, 422, 503)


class DeploymentList(StatisticsFilter):
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = Field(100, description="Deployments on a page.")
    after: Name | None = Field(None, description="Where the page starts: `next` of the page before.")


def deployment_routes(database: Database, keyring: Keyring) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["statistics"], dependencies=[Depends(refuse_repeated)])
    reader = Depends(keyring.needs("read"))

    def about(
        slug: str, asked: StatisticsFilter, holder: KeyHolder, needs: Need, answer: Callable[[Sides], Any]
    ) -> Response:
        if "\0" in slug:
            raise NotFound("There is no deployment with this name.")
        question = question_of(asked, datetime.now(UTC))
        with database.reading() as connection:
            subject = deployment_subject(connection, holder.project_id, slug)
            sides = load_sides(connection, holder.project_id, subject, question, needs)
        return answered(answer(sides))

    @router.get(
        "/deployments",
        summary="List deployments with their drop",
        responses=problems(401, 403, 422, 503) | answers(FleetAnswer, "A page of deployments."),
    )
    def list_deployments(query: Annotated[DeploymentList, Query()], holder: KeyHolder = reader) -> Any:
        """The fleet by name, a page at a time. Follow `next` as `after` until it is null.

        Success on both sides with Wilson's intervals, and the drop with Newcombe's. A deployment's own `drop` also
        knows of sessions and pairs.
        """
        with database.reading() as connection:
            question = question_of(query, datetime.now(UTC))
            found = answer_fleet(connection, holder.project_id, question, query.after, query.limit)
        return answered(found)

    @router.get(
        "/deployments/{slug}",
        summary="Read one deployment",
        responses=problems(*REFUSALS) | answers(DeploymentAnswer, "The deployment."),
    )
    def read_deployment(slug: str, query: Annotated[StatisticsFilter, Query()], holder: KeyHolder = reader) -> Any:
        """What the newest episode says of it, success on both sides, the drop, and where to ask on."""
        return about(slug, query, holder, deployment.NEEDS, answer_deployment)

    @router.get(
        "/deployments/{slug}/drop",
        summary="How much is lost",
        responses=problems(*REFUSALS) | answers(DropAnswer, "The metric on both sides and the drop."),
    )
    def read_drop(slug: str, query: Annotated[DropFilter, Query()], holder: KeyHolder = reader) -> Any:
        """One metric in sim and in real, the drop with its 95 % interval, a verdict, and what would settle it.

        A drop is positive when reality is worse. Sides that cannot be compared give nulls and a `reason`, with
        200. Read `warnings` first: contracts that differ come before any statistics.
        """
        return about(slug, query, holder, drop.NEEDS, answer_drop)

    @router.get(
        "/deployments/{slug}/ledger",
        summary="Why it is lost",
        responses=problems(*REFUSALS) | answers(LedgerAnswer, "The drop by gap category."),
    )
    def read_ledger(slug: str, query: Annotated[StatisticsFilter, Query()], holder: KeyHolder = reader) -> Any:
        """The success drop over gap categories by the evidence of failed episodes, and as off-support, mix, rate.

        Contributions and `unattributed` add up to `drop`; so do `off_support`, `mix` and `rate`. A category
        without evidence is 0 and has no interval. `episodes.top` are the real failures that carry most of one.
        """
        return about(slug, query, holder, ledger.NEEDS, answer_ledger)

    @router.get(
        "/deployments/{slug}/slices",
        summary="Where it is lost",
        responses=problems(*REFUSALS) | answers(SlicesAnswer, "The drop per condition level."),
    )
    def read_slices(slug: str, query: Annotated[StatisticsFilter, Query()], holder: KeyHolder = reader) -> Any:
        """The drop at each level of each condition and at pairs of levels, false discoveries bounded at 5 %."""
        return about(slug, query, holder, slices.NEEDS, answer_slices)

    @router.get(
        "/deployments/{slug}/signals",
        summary="What was measured differently",
        responses=problems(*REFUSALS) | answers(SignalsAnswer, "The shift of each signal."),
    )
    def read_signals(slug: str, query: Annotated[StatisticsFilter, Query()], holder: KeyHolder = reader) -> Any:
        """How far each signal's distribution in real is from the one in sim, most surely shifted first."""
        return about(slug, query, holder, signals.NEEDS, answer_signals)

    @router.get(
        "/deployments/{slug}/trend",
        summary="Is it getting worse",
        responses=problems(*REFUSALS) | answers(TrendAnswer, "Success over time."),
    )
    def read_trend(slug: str, query: Annotated[TrendFilter, Query()], holder: KeyHolder = reader) -> Any:
        """The real success rate by hour, day or month beside the baseline, with the point where it fell for good.

        Steps are whole: the first and the last one reach beyond a window that begins or ends within them. Versions
        of the policy stand apart; `current` marks the one that runs now.
        """
        return about(slug, query, holder, trend.NEEDS, answer_trend)

    @router.get(
        "/deployments/{slug}/failures",
        summary="How attempts fail",
        responses=problems(*REFUSALS) | answers(FailuresAnswer, "Failures in groups."),
    )
    def read_failures(slug: str, query: Annotated[StatisticsFilter, Query()], holder: KeyHolder = reader) -> Any:
        """Failures by phase, labels and category, with their share of all attempts, and which side knows them."""
        return about(slug, query, holder, failures.NEEDS, answer_failures)

    @router.get(
        "/deployments/{slug}/contract",
        summary="Do both sides mean the same",
        responses=problems(*REFUSALS) | answers(ContractAnswer, "The contracts, field by field."),
    )
    def read_contract(slug: str, query: Annotated[StatisticsFilter, Query()], holder: KeyHolder = reader) -> Any:
        """The contracts that sim and real ran under, and each field in which the most used ones differ."""
        return about(slug, query, holder, contract.NEEDS, answer_contract)

    @router.get(
        "/deployments/{slug}/onset",
        summary="Since when it is lost",
        responses=problems(*REFUSALS) | answers(OnsetAnswer, "When and where the drop began."),
    )
    def read_onset(slug: str, query: Annotated[StatisticsFilter, Query()], holder: KeyHolder = reader) -> Any:
        """At deploy, at some sites, with a release, in a step, or gradually; with the day it began."""
        return about(slug, query, holder, onset.NEEDS, answer_onset)

    @router.get(
        "/deployments/{slug}/prediction",
        summary="The real rate with the help of sim",
        responses=problems(*REFUSALS) | answers(PredictionAnswer, "With and without sim."),
    )
    def read_prediction(slug: str, query: Annotated[StatisticsFilter, Query()], holder: KeyHolder = reader) -> Any:
        """Prediction-powered success from few real and many sim episodes, beside the real episodes alone.

        From ten pairs on; without pairs from the sim rate of each combination of conditions. Refused, with a
        reason, where sim says too little about real.
        """
        return about(slug, query, holder, prediction.NEEDS, answer_prediction)

    return router
