"""One deployment: what its newest episode says of it, both sides of success, the drop, and where to ask on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from gapwatch.answers.answer import Answer
from gapwatch.answers.comparison import Comparison
from gapwatch.answers.drop import DropValue, SideValue, answer_drop
from gapwatch.store.read.directory import Deployment

QUESTIONS = ("drop", "ledger", "slices", "signals", "trend", "failures", "contract", "onset", "prediction")


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


def answer_deployment(comparison: Comparison, described: Deployment) -> DeploymentAnswer:
    found = answer_drop(comparison)
    return DeploymentAnswer(
        **comparison.told(found.reason),
        slug=described.slug,
        site=described.site,
        stage=described.stage,
        last_episode_at=described.last_episode_at,
        sim=found.sim,
        real=found.real,
        drop=found.drop,
        verdict=found.verdict,
        episodes_needed=found.episodes_needed,
        contract=comparison.contract.diff.verdict,
        method=found.method,
        links={word: f"/api/v1/deployments/{described.slug}/{word}" for word in QUESTIONS},
    )
