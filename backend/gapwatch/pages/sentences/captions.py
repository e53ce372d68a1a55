"""What stands beside the figures of a deployment: the finding above, the note below."""

from __future__ import annotations

from collections.abc import Sequence

from gapwatch.answers.answer import Caution
from gapwatch.answers.drop import DropAnswer, SideValue
from gapwatch.answers.ledger import CategoryPart, LedgerAnswer
from gapwatch.answers.robots_sites import RobotsAnswer, UnitRate
from gapwatch.answers.signals import SignalAnswer
from gapwatch.answers.slices import SliceAnswer
from gapwatch.pages.sentences.sentence import Part, Sentence, Words, say, strong, together
from gapwatch.pages.words import count, percent, plural, point_interval, points

MOST_WORST = 3


def waterfall(sim: SideValue, real: SideValue) -> str:
    """What the figure shows, for those who do not see it."""
    ends = f"{percent(sim.value or 0.0)} per cent to real success {percent(real.value or 0.0)} per cent"
    return f"Waterfall from simulation success {ends} by gap category; the table below has every number"


def ledger_finding(ledger: LedgerAnswer, lead: CategoryPart | None) -> str:
    findings = []
    if lead is not None and ledger.drop:
        findings.append(f"{lead.name} makes {percent(lead.contribution / ledger.drop, 0)} % of it.")
    if ledger.unattributed is not None:
        left = points(ledger.unattributed.contribution)
        findings.append(f"{left} points have no evidence and stay unattributed.")
    return " ".join(findings)


def ledger_caption(parts: Sequence[CategoryPart]) -> str:
    caption = (
        "Each bar: failures in real above failures in sim, weighted by evidence. "
        "Whiskers: 95 % interval of that bar. The bars add up to the drop exactly."
    )
    bare = [part.name for part in parts if not (part.contribution or part.real_weight or part.sim_weight)]
    return f"{caption} No evidence, so zero: {', '.join(bare).lower()}." if bare else caption


def off_support(slices: Sequence[SliceAnswer]) -> str:
    """With one or two levels that only real has seen."""
    unseen = [f"{level.condition} = {level.level}" for level in slices if level.seen == "real only"][:2]
    such = f", such as {' and '.join(unseen)}" if unseen else ""
    return f"Combinations of conditions that only one side has seen{such}."


def exposure_summary(ledger: LedgerAnswer) -> str:
    """The three parts in one line, for the report."""
    parts = (("off-support", ledger.off_support), ("mix", ledger.mix), ("rate", ledger.rate))
    contributions = [
        f"{name} {points(part.contribution)}" + (f" {point_interval(part.interval)}" if part.interval else "")
        for name, part in parts
        if part is not None
    ]
    return f"The same drop by exposure: {', '.join(contributions)} points."


def not_counted(real: SideValue, drop: DropAnswer, onset_verdict: str) -> Sentence:
    """What is in no number, what it could change, and how the drop began."""
    left: tuple[Words, ...] = ()
    if real.aborted or real.abandoned:
        how_many = f" {real.aborted} aborted and {real.abandoned} abandoned real episodes."
        left = (Part("Not counted:", "bold"), how_many)
    onset = say(Part("Onset:", "bold"), f" {onset_verdict.replace('_', ' ')}.")
    return together(say(*left), say(_had_they_failed(drop) if left else ""), onset)


def _had_they_failed(drop: DropAnswer) -> str:
    had = drop.if_unfinished_failed
    if had is None or had.drop.interval is None or had.drop.value is None:
        return ""
    return (
        "Had all of them, and those of sim, failed, the drop would be "
        f"{points(had.drop.value)} points {point_interval(had.drop.interval)}."
    )


def worst_conditions(slices: Sequence[SliceAnswer]) -> Sentence:
    """The surest loss of each of the worst conditions, without levels of few episodes or that nearly all share."""
    worst: dict[str, SliceAnswer] = {}
    for level in slices:
        if not level.few and not level.shared and (level.sure_loss or 0.0) > 0:
            worst.setdefault(level.condition, level)
    if not worst:
        return say("At no level that can be compared is anything lost for certain.")
    words: list[Words] = ["Worst: "]
    for place, level in enumerate(list(worst.values())[:MOST_WORST]):
        rate = "" if level.real.value is None else f" {100 * level.real.value:.0f} %"
        never = ", never simulated" if level.seen == "real only" else ""
        words += ["; " if place else "", Part(f"{level.condition} = {level.level}", "code"), f"{rate}{never}"]
    return say(*words, ".")


def few_levels(number: int, fewest: int) -> str:
    return f"{plural(number, 'level')} with fewer than {fewest} episodes"


def odd_one(robots: RobotsAnswer) -> Sentence | None:
    """The robot or the site that stands out, at the end of the headline."""
    return None if robots.sentence is None else say(strong(robots.sentence))


def robots_finding(robots: RobotsAnswer) -> str:
    if robots.sentence is not None:
        return robots.sentence
    return "Nobody stands out: what differs here, chance explains, or it is less than 5 points."


def robots_caption(robots: RobotsAnswer) -> str:
    caption = "Lines: 95 % interval. Dotted: the others together. ◆ stands out."
    few = sum(unit.few for group in robots.groups for unit in group.units)
    return f"{caption} Not drawn, with fewer than {robots.fewest} episodes: {few}." if few else caption


def differs(unit: UnitRate) -> str:
    """What it loses against the others, in points."""
    if unit.lost is None or unit.lost_interval is None:
        return "–"
    return f"{points(unit.lost)} {point_interval(unit.lost_interval)}"


def age_of(days: float) -> str:
    return "within a day" if days < 1 else f"{plural(round(days), 'day')} ago"


def conditions_caption(pooled: Sequence[str]) -> str:
    caption = "The surest loss first: by the lower end of the drop. Lines: 95 % interval."
    return f"{caption} Left out, with too many values: {', '.join(pooled)}." if pooled else caption


def failures_finding(only_real: float) -> str:
    if not only_real:
        return "The simulator fails in all of these ways too."
    return f"{count(round(only_real))} of them happen where the simulator never fails."


def fields_differ(caution: Caution) -> str:
    number = len(caution.differences)
    return f"{plural(number, 'field')} differ{'s' if number == 1 else ''}"


def signals_note(sim_n: int, real_n: int, *, sampled: bool) -> str:
    newest = ", the newest that match the filter" if sampled else ""
    return f"Dotted: where the two curves are farthest apart. n {count(sim_n)} sim, {count(real_n)} real{newest}."


def real_higher(signal: SignalAnswer) -> Sentence:
    """How often a real episode exceeds a sim one, with its interval; the effect runs from −1 to 1."""
    share = "–" if signal.real_higher is None else percent(signal.real_higher, 0)
    bounds: tuple[Words, ...] = ()
    if signal.interval is not None:
        low, high = (round(50 + 50 * bound) for bound in signal.interval)
        bounds = (" ", Part(f"[{low}, {high}]", "aside"))
    return say("real higher in ", Part(f"{share} %", "bold"), *bounds)


def line_key(tier: str) -> str:
    """What the line of real success is called."""
    return "real, 7 days to each day" if tier == "day" else "real"
