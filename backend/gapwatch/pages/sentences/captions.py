"""What stands beside the figures of a deployment: the finding above, the note below."""

from __future__ import annotations

from collections.abc import Sequence

from gapwatch.answers.answer import SIMULATION, Caution, HeldAgainst
from gapwatch.answers.drop import DropAnswer, SideValue
from gapwatch.answers.ledger import CategoryPart, LedgerAnswer
from gapwatch.answers.robots_sites import RobotsAnswer, UnitRate
from gapwatch.answers.signals import SignalAnswer, SignalMove, SignalsAnswer
from gapwatch.answers.slices import SliceAnswer
from gapwatch.pages.sentences.sentence import Part, Sentence, Words, say, strong, together
from gapwatch.pages.words import count, number, percent, plural, point_interval, points

MOST_WORST = 3


def waterfall(sim: SideValue, real: SideValue, against: HeldAgainst = SIMULATION) -> str:
    """What the figure shows, for those who do not see it."""
    ends = f"{percent(sim.value or 0.0)} per cent to real success {percent(real.value or 0.0)} per cent"
    start = "simulation success" if against.kind == "simulation" else f"success {against.name},"
    return f"Waterfall from {start} {ends} by gap category; the table below has every number"


def ledger_finding(ledger: LedgerAnswer, lead: CategoryPart | None) -> str:
    findings = []
    if lead is not None and ledger.drop:
        findings.append(f"{lead.name} makes {percent(lead.contribution / ledger.drop, 0)} % of it.")
        findings += [f"{why[0].upper()}{why[1:]}." for why in lead.why[:1]]
    elif ledger.headline is not None and ledger.headline.category is None:
        findings.append(ledger.headline.sentence)
    if ledger.unattributed is not None:
        left = points(ledger.unattributed.contribution)
        findings.append(f"{left} points have no evidence and stay unattributed.")
    return " ".join(findings)


def ledger_caption(parts: Sequence[CategoryPart], sides: tuple[str, str] = ("sim", "real")) -> str:
    above = "failures in real above failures in sim"
    if sides[0] == "before":
        above = "failures since the change above failures before it"
    caption = (
        f"Each bar: {above}, weighted by evidence. "
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


def worst_conditions(slices: Sequence[SliceAnswer], sides: tuple[str, str] = ("sim", "real")) -> Sentence:
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
        unseen = "never simulated" if sides[0] == "sim" else "not seen before"
        never = f", {unseen}" if level.seen == "real only" else ""
        words += ["; " if place else "", Part(f"{level.condition} = {level.level}", "code"), f"{rate}{never}"]
    return say(*words, ".")


def few_levels(number: int, fewest: int) -> str:
    return f"{plural(number, 'level')} with fewer than {fewest} episodes"


def odd_one(robots: RobotsAnswer) -> Sentence | None:
    """The robot or the site that does worse than the others, at the end of the headline."""
    return None if robots.sentence is None else say(strong(robots.sentence))


def robots_finding(robots: RobotsAnswer) -> str:
    if robots.sentence is not None:
        return robots.sentence
    better = [unit.name for group in robots.groups for unit in group.odd]
    if better:
        return f"Better than the others: {', '.join(better[:3])}. Nobody does worse."
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


def failures_finding(only_real: float, sides: tuple[str, str] = ("sim", "real")) -> str:
    if sides[0] == "before":
        if not only_real:
            return "It failed in all of these ways before."
        return f"{count(round(only_real))} of them happen where it never failed before."
    if not only_real:
        return "The simulator fails in all of these ways too."
    return f"{count(round(only_real))} of them happen where the simulator never fails."


def fields_differ(caution: Caution) -> str:
    number = len(caution.differences)
    return f"{plural(number, 'field')} differ{'s' if number == 1 else ''}"


def signals_note(sim_n: int, real_n: int, sides: tuple[str, str] = ("sim", "real"), *, sampled: bool) -> str:
    newest = ", the newest that match the filter" if sampled else ""
    sizes = f"n {count(sim_n)} {sides[0]}, {count(real_n)} {sides[1]}"
    return f"Dotted: where the two curves are farthest apart. {sizes}{newest}."


def moved_by(move: SignalMove) -> Sentence:
    """How often an episode since the change exceeds one before it, with its interval."""
    low, high = (round(50 + 50 * bound) for bound in move.interval)
    return say(
        "since higher than before in ",
        Part(f"{percent((1 + move.effect) / 2, 0)} %", "bold"),
        " ",
        Part(f"[{low}, {high}]", "aside"),
    )


def signals_title(signals: SignalsAnswer) -> str:
    if signals.against.kind == "before":
        return "Signals, since against before"
    return "Signals, most shifted first" if signals.moved is None else "Signals, what moved at the change first"


def standing_signals(number: int) -> str:
    """What is folded: signals that differ from simulation, and did not move."""
    return f"{plural(number, 'standing offset')} from simulation"


def signals_finding(signals: SignalsAnswer) -> str:
    """What the signals' section says first."""
    if signals.against.kind == "before":
        return (
            "Share of episodes at or below each value. How often an episode since the change exceeds one before "
            "it; 50 % is no shift."
        )
    if signals.moved == 0:
        return "No signal moved at the change."
    if signals.moved:
        return (
            f"{plural(signals.moved, 'signal')} moved at the change. Dotted: before it. How often an episode "
            "since exceeds one before; 50 % is no move."
        )
    return (
        "Share of episodes at or below each value. “Real higher”: how often a real episode exceeds a sim one; "
        "50 % is no shift."
    )


def real_higher(signal: SignalAnswer, sides: tuple[str, str] = ("sim", "real")) -> Sentence:
    """How often a real episode exceeds a sim one, with its interval; the effect runs from −1 to 1."""
    share = "–" if signal.real_higher is None else percent(signal.real_higher, 0)
    bounds: tuple[Words, ...] = ()
    if signal.interval is not None:
        low, high = (round(50 + 50 * bound) for bound in signal.interval)
        bounds = (" ", Part(f"[{low}, {high}]", "aside"))
    return say(f"{sides[1]} higher in ", Part(f"{share} %", "bold"), *bounds)


def line_key(tier: str) -> str:
    """What the line of real success is called."""
    return "real, 7 days to each day" if tier == "day" else "real"


def spoken_for(drop: DropAnswer) -> str:
    """The drop as it is known of each population, where there are two; empty where there is but one."""
    if len({one.words for one in drop.populations}) < len(drop.populations):
        return ""
    known = []
    for one in drop.populations:
        if one.interval is None:
            interval = "no interval"
        elif drop.metric == "success":
            interval = f"{point_interval(one.interval)} points"
        else:
            interval = f"[{number(one.interval[0])}, {number(one.interval[1])}]"
        known.append(f"for {one.words}: {interval}, {one.verdict}")
    return f"The drop {'; '.join(known)}."
