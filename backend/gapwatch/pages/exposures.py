"""The drop by exposure: three parts as bars around zero, drawn as SVG by the template."""

from __future__ import annotations

from dataclasses import dataclass

from gapwatch.answers.ledger import DropPart, LedgerAnswer

MIX = "The same conditions, in other shares."
RATE = "The same condition, a worse outcome: the simulator is wrong there, or the policy brittle."
RATE_SINCE = "The same condition, a worse outcome than before: something there changed."
# Narrower than this, in points as a fraction, bars of nothing would look like bars of something.
NARROWEST = 0.01


@dataclass(frozen=True)
class Exposure:
    """Places are in per cent of the width; the whisker is missing where there is no interval."""

    name: str
    part: DropPart
    about: str
    zero: float
    left: float
    width: float
    whisker: tuple[float, float] | None


def exposures(ledger: LedgerAnswer, off_support: str) -> list[Exposure]:
    """Those parts that are known, all on one scale. `off_support` says what only one side has seen."""
    parts = (
        ("Off-support", ledger.off_support, off_support),
        ("Mix", ledger.mix, MIX),
        ("Rate", ledger.rate, RATE if ledger.against.kind == "simulation" else RATE_SINCE),
    )
    known = [(name, part, about) for name, part, about in parts if part is not None]
    bounds = [bound for _, part, _ in known for bound in (part.contribution, *(part.interval or ()))]
    low, high = min([0.0, *bounds]), max([NARROWEST, *bounds])
    unit = 100 / (high - low)
    zero = -low * unit
    return [
        Exposure(
            name,
            part,
            about,
            zero,
            zero + unit * min(0.0, part.contribution),
            unit * abs(part.contribution),
            None if part.interval is None else (zero + unit * part.interval[0], zero + unit * part.interval[1]),
        )
        for name, part, about in known
    ]
