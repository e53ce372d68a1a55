"""How far a simulator can be believed."""

from __future__ import annotations

from gapwatch.answers.trust import LeftOut, TrustAnswer
from gapwatch.pages.sentences.sentence import Sentence, Words, say, small, strong, together
from gapwatch.pages.words import MINUS, plural, points


def correlation(value: float | None) -> str:
    """0.83, with a real minus sign."""
    return "–" if value is None else f"{value:.2f}".replace("-", MINUS)


def headline(answer: TrustAnswer, carries: LeftOut | None) -> Sentence:
    """`carries` is what the measures would be without the policy that they hang on most."""
    fragile = None
    if answer.fragile and carries is not None:
        fragile = say(
            f"Without {carries.policy} r would be {correlation(carries.pearson)} "
            f"instead of {correlation(answer.pearson)}."
        )
    return together(_verdict(answer), fragile)


def _verdict(answer: TrustAnswer) -> Sentence:
    name = f"{answer.simulator} {answer.version}"
    if answer.n_policies == 0:
        return say(f"No policy was tried both in {name} and in reality.")
    if answer.reason:
        were = "was" if answer.n_policies == 1 else "were"
        tried = f"{plural(answer.n_policies, 'policy version')} {were} tried on both sides; "
        return say(tried, strong(answer.verdict), f", {answer.reason}.")
    bounds: tuple[Words, ...] = ()
    if answer.interval is not None:
        bounds = (" ", small(f"({correlation(answer.interval[0])} to {correlation(answer.interval[1])})"))
    regret = ""
    if answer.regret is not None:
        regret = f", and picking its best policy costs {points(answer.regret)} points of real success"
    return say(
        f"{name} is ",
        strong(answer.verdict),
        f": over {answer.n_policies} policy versions its success correlates with reality by ",
        strong(f"r = {correlation(answer.pearson)}"),
        *bounds,
        f"{regret}.",
    )
