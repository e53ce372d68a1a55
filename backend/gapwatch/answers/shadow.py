"""What a candidate would have done while something else drove: its proposals, and a bound of its success."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from gapwatch.answers.answer import Answer, Caution, Interval
from gapwatch.answers.answer_kind import AnswerKind, AnswerTable, TableRow
from gapwatch.answers.needs import Need
from gapwatch.answers.shadow_forecast import Forecast, forecast_of
from gapwatch.answers.sides import ANSWER_FIELDS, Sides, answer_fields
from gapwatch.record import Shadow, ShadowSteps, VersionedName
from gapwatch.statistics.estimates.shadow import (
    ShadowOutcome,
    StepRate,
    SuccessBound,
    step_rate,
    success_bound,
)
from gapwatch.store.read.shadow_episodes import ShadowEpisode

NEEDS = ANSWER_FIELDS | Need.SHADOW | Need.FAILURE_COUNTS

ProposalKind = Literal["infeasible", "near_limit", "out_of_distribution", "disagree"]
PROPOSALS: tuple[ProposalKind, ...] = get_args(ProposalKind)
ASSUMPTION = (
    "Where the candidate agreed to the end, it would have had the same outcome; of the other episodes nothing is "
    "assumed."
)


@dataclass(frozen=True)
class ProposalRate:
    """The share of proposed actions, with an interval over episodes. `n` counts those that say it."""

    value: float | None
    interval: Interval | None
    n: int
    steps: int
    reason: str | None = None


@dataclass(frozen=True)
class ProposalRates:
    """Over whole episodes, and in the critical interval around the first contact."""

    kind: ProposalKind
    raw: ProposalRate
    critical: ProposalRate


@dataclass(frozen=True)
class ShadowBound:
    """Success of the candidate had it driven: between `low` and `high`, with the limits of counting `interval`.

    `halved_by`: how many supervised episodes of the disagreeing kind would make the interval half as wide.
    """

    low: float | None
    high: float | None
    interval: Interval | None
    n: int
    agreed_and_succeeded: int
    disagreed: int
    halved_by: int | None
    assumption: str
    method: str
    reason: str | None = None


@dataclass(frozen=True)
class ExecutedBy:
    """What drove, and how it ended: `human`, `other`, `unknown` or a policy with its version."""

    who: str
    n: int
    successes: int
    failures: int


@dataclass(frozen=True, kw_only=True)
class ShadowAnswer(Answer):
    """`n_shadow` counts episodes; `without_field` of them say neither what drove nor what was proposed."""

    n_shadow: int
    without_field: int
    executed_by: tuple[ExecutedBy, ...]
    rates: tuple[ProposalRates, ...]
    bound: ShadowBound
    forecast: Forecast | None
    method: str


def answer_shadow(sides: Sides) -> ShadowAnswer:
    read = sides.shadow
    episodes = read.episodes
    without = sum(one.shadow is None for one in episodes)
    fields = answer_fields(sides)
    cautions = list(fields["warnings"])
    if without:
        message = (
            f"{without} episode{'s' if without != 1 else ''} of stage shadow came without the field `shadow`: "
            "what drove is unknown. Their outcome was once counted as the candidate's and no longer is, and "
            "nothing is known of what it proposed."
        )
        cautions.append(Caution("shadow-without-field", message))
    if read.is_cut:
        cautions.append(Caution("newest-only", f"The newest {len(episodes)} episodes in shadow are read."))
    return ShadowAnswer(
        **fields
        | {
            "warnings": tuple(cautions),
            "reason": None if episodes else "No episodes of this policy version in shadow.",
        },
        n_shadow=len(episodes),
        without_field=without,
        executed_by=_executed_by(episodes),
        rates=tuple(_rates(kind, episodes) for kind in PROPOSALS),
        bound=_bound(outcomes_in(episodes)),
        forecast=forecast_of(sides),
        method="ratio of steps over episodes, Wilson at the effective number; bound of success with Wilson limits",
    )


def outcomes_in(episodes: Sequence[ShadowEpisode]) -> list[ShadowOutcome]:
    """The decided episodes that say whether the candidate agreed to the end."""
    return [
        ShadowOutcome(agreed, one.outcome == "success", one.session)
        for one in episodes
        if one.outcome in ("success", "failure") and (agreed := one.agreed) is not None
    ]


def _rates(kind: ProposalKind, episodes: Sequence[ShadowEpisode]) -> ProposalRates:
    given = [one.shadow for one in episodes if one.shadow is not None]
    critical = [one.critical for one in given if isinstance(one.critical, ShadowSteps)]
    return ProposalRates(
        kind,
        _rate(kind, given, "No episode in shadow says it."),
        _rate(kind, critical, "No episode says it of a critical interval."),
    )


def _rate(kind: ProposalKind, counts: Sequence[Shadow] | Sequence[ShadowSteps], reason: str) -> ProposalRate:
    marked, steps = [], []
    for one in counts:
        count = one.agree if kind == "disagree" else getattr(one, kind)
        if isinstance(one.steps, int) and isinstance(count, int) and one.steps:
            marked.append(one.steps - count if kind == "disagree" else count)
            steps.append(one.steps)
    found: StepRate | None = step_rate(marked, steps)
    if found is None:
        return ProposalRate(None, None, 0, 0, reason)
    few = "One episode says nothing of the next." if found.interval is None else None
    return ProposalRate(found.value, found.interval, found.episodes, found.steps, few)


def _bound(outcomes: Sequence[ShadowOutcome]) -> ShadowBound:
    found: SuccessBound | None = success_bound(outcomes)
    if found is None:
        unsaid = "No decided episode says whether the candidate agreed to the end."
        return ShadowBound(None, None, None, 0, 0, 0, None, ASSUMPTION, "wilson", unsaid)
    wide = "Counting alone makes it more than half as wide: more episodes in shadow narrow it first."
    reason = wide if found.halved_by is None and found.disagreed else None
    return ShadowBound(
        found.low,
        found.high,
        found.interval,
        found.n,
        found.agreed_and_succeeded,
        found.disagreed,
        found.halved_by,
        ASSUMPTION,
        found.method,
        reason,
    )


def _executed_by(episodes: Sequence[ShadowEpisode]) -> tuple[ExecutedBy, ...]:
    counts: dict[str, Counter[str]] = {}
    for one in episodes:
        counts.setdefault(_who(one.shadow), Counter())[one.outcome] += 1
    return tuple(
        ExecutedBy(who, ended.total(), ended["success"], ended["failure"])
        for who, ended in sorted(counts.items(), key=lambda item: (-item[1].total(), item[0]))
    )


def _who(shadow: Shadow | None) -> str:
    if shadow is None:
        return "unknown"
    by = shadow.executed_by
    return f"{by.name} {by.version}" if isinstance(by, VersionedName) else by


def table_rows(answer: ShadowAnswer) -> list[TableRow]:
    rows: list[TableRow] = [["proposal", "where", "rate", "low", "high", "episodes", "steps"]]
    for rates in answer.rates:
        for where, rate in (("all steps", rates.raw), ("critical interval", rates.critical)):
            low, high = rate.interval or (None, None)
            rows.append([rates.kind, where, rate.value, low, high, rate.n, rate.steps])
    bound = answer.bound
    low, high = bound.interval or (None, None)
    rows.append(["success, from", "bound", bound.low, low, None, bound.n, None])
    rows.append(["success, to", "bound", bound.high, None, high, bound.n, None])
    return rows


KIND = AnswerKind(
    name="shadow",
    answer_type=ShadowAnswer,
    answer=answer_shadow,
    needs=NEEDS,
    summary="What the candidate would have done",
    gives="rates of what it proposed, and a bound of its success",
    description=(
        "Of episodes of stage shadow, which something else drove: the shares of infeasible, near-limit, "
        "out-of-distribution and disagreeing proposals over episodes, whole and in the critical interval; the "
        "bound of the candidate's success; and the forecast of its gap by category, frozen when it left shadow "
        "and scored after a hundred episodes of its own."
    ),
    table=AnswerTable("shadow", table_rows),
)
