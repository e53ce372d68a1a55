"""Since when: at deploy, at some sites, with a release, in a step, gradually; or whether it is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from gapwatch.answers.answer import Answer
from gapwatch.answers.answer_kind import AnswerKind
from gapwatch.answers.needs import Need
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields

NEEDS = ANSWER_FIELDS | Need.DAYS


@dataclass(frozen=True, kw_only=True)
class OnsetAnswer(Answer):
    """`change` is in points of success as a fraction; `gains` say how far each explanation is above its price.
    `risen_day`: since when it is better, where it fell and was made good, or lost nothing since the first day."""

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


def answer_onset(sides: Sides) -> OnsetAnswer:
    """Over all versions of the policy that ran the task here, because a release is one of the explanations."""
    versions = sides.versions
    onset, step_days = sides.onset
    plausible = (onset.plausible_days[0], onset.plausible_days[-1]) if onset.plausible_days else None
    ran = {bucket.policy_id for bucket in sides.days}
    return OnsetAnswer(
        **answer_fields(sides),
        verdict=onset.verdict,
        sentence=onset.reason,
        change=onset.change,
        change_day=onset.change_day,
        plausible=plausible,
        risen_day=onset.risen_day,
        where=onset.where,
        versions=tuple(word for policy_id, word in versions.items() if policy_id in ran),
        gains=onset.net_gains,
        step_days=step_days,
        method="binomial models of the days, compared by BIC; step, ramp and recovery by their mean likelihood",
    )


KIND = AnswerKind(
    name="onset",
    answer_type=OnsetAnswer,
    answer=answer_onset,
    needs=NEEDS,
    summary="Since when it is lost",
    gives="When and where the drop began.",
    description=(
        "At deploy, at some sites, with a release, in a step, or gradually, with the day it began; `recovered` "
        "where a fall was made good since. A release is blamed only if no day before it explains the fall as "
        "well; otherwise the sentence tells it as what happened at that time."
    ),
)
