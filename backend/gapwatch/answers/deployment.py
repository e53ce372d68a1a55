"""One deployment: what its newest episode says of it, both sides of success, the drop, and where to ask on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from gapwatch.answers import drop
from gapwatch.answers.answer import Answer
from gapwatch.answers.catalogue import DEPLOYMENT_ANSWERS
from gapwatch.answers.drop import DropValue, SideValue, answer_drop
from gapwatch.answers.sides import Sides, answer_fields

NEEDS = drop.NEEDS


@dataclass(frozen=True, kw_only=True)
class DeploymentAnswer(Answer):
    slug: str
    site: str | None
    stage: str | None
    last_episode_at: datetime
    sim: SideValue
    real: SideValue
    drop: DropValue
    verdict: str
    episodes_needed: int | None
    contract: str
    method: str
    links: Mapping[str, str]


def answer_deployment(sides: Sides) -> DeploymentAnswer:
    described = sides.subject.described
    assert described is not None  # noqa: S101 - a deployment's subject is described
    answer = answer_drop(sides)
    return DeploymentAnswer(
        **answer_fields(sides, answer.reason),
        slug=described.slug,
        site=described.site,
        stage=described.stage,
        last_episode_at=described.last_episode_at,
        sim=answer.sim,
        real=answer.real,
        drop=answer.drop,
        verdict=answer.verdict,
        episodes_needed=answer.episodes_needed,
        contract=sides.contract.verdict,
        method=answer.method,
        links={
            name: f"/api/v1/deployments/{described.slug}/{name}"
            for name in ("now", *(kind.name for kind in DEPLOYMENT_ANSWERS))
        },
    )
