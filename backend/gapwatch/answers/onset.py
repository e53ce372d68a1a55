"""Since when: whether the drop was there at deploy, at some sites, with a release, in a step, or gradually."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from gapwatch.answers.answer import Answer
from gapwatch.answers.comparison import Comparison
from gapwatch.answers.days import onset_of


@dataclass(frozen=True, kw_only=True)
class OnsetAnswer(Answer):
    """`change` is in points of success as a fraction; `gains` say how far each explanation is above its price.
    `risen_day`: since when it is better, where nothing was lost since the first day."""

    verdict: str
    sentence: str
    change: float | None
    change_day: date | None
    plausible: tuple[date, date] | None
    risen_day: date | None
    where: tuple[str, ...]
    versions: tuple[str, ...]
    gains: Mapping[str, float]
    step_days: int
    method: str


def answer_onset(comparison: Comparison) -> OnsetAnswer:
    """Over all versions of the policy that ran the task here, because a release is one of the explanations."""
    versions = comparison.versions
    found, step = onset_of(comparison)
    plausible = (found.plausible_days[0], found.plausible_days[-1]) if found.plausible_days else None
    ran = {bucket.policy_id for bucket in comparison.days}
    return OnsetAnswer(
        **comparison.told(),
        verdict=found.verdict,
        sentence=found.reason,
        change=found.change,
        change_day=found.change_day,
        plausible=plausible,
        risen_day=found.risen_day,
        where=found.where,
        versions=tuple(word for policy_id, word in versions.items() if policy_id in ran),
        gains=found.net_gains,
        step_days=step,
        method="binomial models of the days, compared by BIC",
    )
