"""What is said of a candidate in shadow."""

from __future__ import annotations

from gapwatch.answers.shadow import ProposalRate, ShadowAnswer
from gapwatch.answers.shadow_forecast import Forecast
from gapwatch.pages.sentences.sentence import Part, Sentence, say, small
from gapwatch.pages.words import count, percent, percent_interval, plural

PROPOSAL_WORDS = {
    "infeasible": "infeasible: beyond a limit of the contract",
    "near_limit": "near a limit",
    "out_of_distribution": "out of distribution",
    "disagree": "disagreeing with what drove",
}


def bound_finding(answer: ShadowAnswer) -> Sentence:
    """Where success would lie, and what that rests on."""
    bound = answer.bound
    if bound.low is None or bound.high is None or bound.interval is None:
        return say(bound.reason or "Nothing is known of its success.")
    if not bound.disagreed:
        between: tuple[str | Part, ...] = (Part(f"{percent(bound.low)} %", "real"), " of the time ")
    else:
        between = ("between ", Part(f"{percent(bound.low)} %", "real"), " and ")
        between += (Part(f"{percent(bound.high)} %", "real"), " of the time ")
    return say(
        "Had it driven, it would have succeeded ",
        *between,
        small(f"{percent_interval(bound.interval)}, n {count(bound.n)}"),
        ".",
    )


def bound_narrowing(answer: ShadowAnswer) -> str:
    """How the bound would become narrower."""
    bound = answer.bound
    if not bound.n:
        return ""
    share = f"It disagreed in {plural(bound.disagreed, 'episode')} of {count(bound.n)}."
    if bound.halved_by is not None:
        return f"{share} {plural(bound.halved_by, 'supervised episode')} of that kind would halve the interval."
    return f"{share} {bound.reason}" if bound.reason else share


def drove(answer: ShadowAnswer) -> str:
    """What drove instead, and how it did; no word about the candidate."""
    parts = [
        f"{one.who} ({plural(one.n, 'episode')}, {count(one.successes)} succeeded)" for one in answer.executed_by
    ]
    return f"Driven by {', '.join(parts)}; none of it is in a rate of the candidate."


def proposal_words(kind: str) -> str:
    return PROPOSAL_WORDS[kind]


def proposal_rate(rate: ProposalRate) -> str:
    if rate.value is None:
        return "–"
    interval = "" if rate.interval is None else f" {percent_interval(rate.interval)}"
    return f"{percent(rate.value)} %{interval}"


def forecast_finding(forecast: Forecast) -> str:
    if forecast.frozen_at is None:
        return "The gap this leads one to expect, frozen when it leaves shadow and scored after that."
    if forecast.score is None:
        missing = forecast.enough - forecast.followed
        return f"Frozen when it left shadow; scored after {plural(missing, 'more episode')} of its own."
    inside = sum(bool(one.inside) for one in forecast.categories)
    error = "" if forecast.error is None else f", on average {percent(forecast.error)} points off"
    return (
        f"Frozen when it left shadow: {inside} of {len(forecast.categories)} categories came out within the "
        f"forecast{error}."
    )
