"""The category that leads a deployment's drop now: what its page would name, made once for lists of many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from gapwatch.answers import drop, ledger
from gapwatch.answers.answer import Interval
from gapwatch.answers.drop import DropAnswer, answer_drop
from gapwatch.answers.ledger import CategoryPart, LedgerAnswer, answer_ledger, leading_part
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.question import question_of
from gapwatch.answers.subjects import deployment_subject
from gapwatch.filters import StatisticsFilter
from gapwatch.store.core.database import Connection
from gapwatch.store.fold import leads

LOSSES = ("large", "small")


@dataclass(frozen=True)
class LeadingCategory:
    """`contribution` of the whole `drop`, both as fractions of episodes: the ledger's of the newest episodes."""

    category: str
    contribution: float
    interval: Interval | None
    drop: float


def established_lead(answer: DropAnswer, parts: LedgerAnswer) -> CategoryPart | None:
    """The category that loses most, where a loss against simulation is established at all."""
    return leading_part(parts) if answer.verdict in LOSSES else None


@dataclass(frozen=True)
class KeptLead:
    """What is kept beside a present for lists of many: the lead, and how many episodes of a side are worth one."""

    lead: LeadingCategory | None
    sim_effect: float
    real_effect: float


def kept_now(connection: Connection, project_id: int, slug: str, now: datetime) -> KeptLead:
    """By the newest episodes, as the deployment's page shows them unless asked otherwise."""
    subject = deployment_subject(connection, project_id, slug)
    # With all history, as on the page: single episodes are then sampled by the same days.
    question = replace(question_of(StatisticsFilter.model_validate({"window": "now"}), now), is_history_whole=True)
    sides = load_sides(connection, project_id, subject, question, drop.NEEDS | ledger.NEEDS)
    parts = answer_ledger(sides, condition_shares=False)
    part = established_lead(answer_drop(sides), parts)
    lead = None
    if part is not None and parts.drop is not None:
        lead = LeadingCategory(part.category, part.contribution, part.interval, parts.drop)
    return KeptLead(lead, sides.sim.cluster_effect.worth_one, sides.real.cluster_effect.worth_one)


def leading_categories(connection: Connection, project_id: int) -> Mapping[int, LeadingCategory]:
    """Of every deployment with an established drop now, as the worker found them after its newest episodes."""
    return {
        number: LeadingCategory(
            body["category"],
            body["contribution"],
            None if body["interval"] is None else (body["interval"][0], body["interval"][1]),
            body["drop"],
        )
        for number, body in leads.stored_leads(connection, project_id).items()
    }
