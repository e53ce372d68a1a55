"""Real success over the last month as a line of a few points, drawn as SVG by the template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

TOP, BOTTOM = 2.0, 26.0


@dataclass(frozen=True)
class Spark:
    """A path in a box of 100 by 28; success from 0 to 100 % runs from the bottom to the top."""

    path: str
    base: float | None
    first: float
    last: float


def sparkline(
    steps: Sequence[tuple[datetime, int, int]], sim: float | None, since: datetime, days: int
) -> Spark | None:
    if len(steps) < 2:  # noqa: PLR2004 - one point is no line
        return None
    span = timedelta(days=days)
    points = [(100 * ((at - since) / span), k / n) for at, k, n in steps]
    path = "".join(f"{'L' if place else 'M'}{x:.1f} {_y(value):.1f}" for place, (x, value) in enumerate(points))
    return Spark(path, None if sim is None else _y(sim), points[0][1], points[-1][1])


def _y(value: float) -> float:
    return BOTTOM - value * (BOTTOM - TOP)
