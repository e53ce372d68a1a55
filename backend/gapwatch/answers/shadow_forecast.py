"""The gap by category that shadow leads one to expect: frozen when a candidate leaves it, scored when it drove.

By what was said of failures alone, on every side alike: what executed in shadow failed as the candidate would
have where it agreed, and nothing is known where it did not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import msgspec
import numpy as np

from gapwatch.answers.answer import Interval
from gapwatch.answers.sides import Sides
from gapwatch.statistics.causes.failed_episodes import FailedBatch
from gapwatch.statistics.causes.weighing import weigh
from gapwatch.statistics.estimates.rates import Limits, square_and_add, wilson
from gapwatch.tally.sums import Signature
from gapwatch.taxonomy import Taxonomy

# Decided episodes that a candidate drove, after which its forecast is scored.
ENOUGH_FOLLOWED = 100


@dataclass(frozen=True)
class ForecastCategory:
    """The excess of failures over sim by category, as a share of episodes: expected, and what came."""

    category: str
    expected: float | None
    interval: Interval
    sim: float
    observed: float | None = None
    inside: bool | None = None


@dataclass(frozen=True)
class Forecast:
    """`frozen_at` is null while the candidate is in shadow: then it still moves with every episode.

    `followed` counts the decided episodes it drove since; `score` is the share of categories inside their interval
    once those are enough, and `error` the mean distance of what came from what was expected.
    """

    frozen_at: datetime | None
    n: int
    disagreed: int
    n_sim: int
    categories: tuple[ForecastCategory, ...]
    followed: int = 0
    enough: int = ENOUGH_FOLLOWED
    score: float | None = None
    error: float | None = None


def forecast_of(sides: Sides) -> Forecast | None:
    """The frozen one with its score, or what would be frozen now; None where shadow says nothing."""
    read = sides.shadow
    if read.forecast is None:
        return forecast_now(sides)
    frozen = msgspec.convert(read.forecast.body | {"frozen_at": read.forecast.made_at}, Forecast)
    return _scored(frozen, read.followed, _shares(read.followed_failures, read.followed, sides.taxonomy))


def forecast_now(sides: Sides) -> Forecast | None:
    """What shadow says so far.

    Formula: of n decided episodes, w agreed and failed by a category, d disagreed. Expected is w/(n − d) − s, as
    if it would fare alike where it disagreed; its interval assumes nothing of those: from the lower Wilson limit
    of w/n to the upper one of (w + d)/n, less sim's share s (square and add).
    """
    told = [
        (one, agreed)
        for one in sides.shadow.episodes
        if one.outcome in ("success", "failure") and (agreed := one.agreed) is not None
    ]
    n, n_sim = len(told), sides.sim.n
    if not n or not n_sim:
        return None
    disagreed = sum(not agreed for _, agreed in told)
    failed = Counter(one.signature for one, agreed in told if agreed and one.outcome == "failure")
    in_sim: Counter[Signature] = Counter()
    for count in sides.sim.failure_counts:
        in_sim[count.signature] += count.failures
    own = _shares(failed, n, sides.taxonomy)
    of_sim = _shares(in_sim, n_sim, sides.taxonomy)
    categories = tuple(
        _expected(name, own.get(name, 0.0), of_sim.get(name, 0.0), n, disagreed, n_sim)
        for name in sorted({*own, *of_sim}, key=lambda name: -own.get(name, 0.0))
    )
    return Forecast(None, n, disagreed, n_sim, categories)


def frozen_body(forecast: Forecast) -> dict[str, Any]:
    return {name: value for name, value in asdict(forecast).items() if name != "frozen_at"}


def _expected(name: str, own: float, of_sim: float, n: int, disagreed: int, n_sim: int) -> ForecastCategory:
    sim = Limits(of_sim, *wilson(of_sim * n_sim, n_sim))
    least = square_and_add(Limits(own, *wilson(own * n, n)), sim)
    share = own + disagreed / n
    most = square_and_add(Limits(share, *wilson(share * n, n)), sim)
    expected = None if disagreed == n else own * n / (n - disagreed) - of_sim
    return ForecastCategory(name, expected, (least.low, most.high), of_sim)


def _scored(frozen: Forecast, followed: int, shares: Mapping[str, float]) -> Forecast:
    if followed < frozen.enough:
        return replace(frozen, followed=followed)
    categories = []
    for one in frozen.categories:
        observed = shares.get(one.category, 0.0) - one.sim
        inside = one.interval[0] <= observed <= one.interval[1]
        categories.append(ForecastCategory(one.category, one.expected, one.interval, one.sim, observed, inside))
    # What nobody expected at all was expected at nothing.
    known = {one.category for one in frozen.categories}
    most = wilson(frozen.disagreed, frozen.n)[1]
    categories += [
        ForecastCategory(name, 0.0, (0.0, most), 0.0, share, share <= most)
        for name, share in shares.items()
        if name not in known
    ]
    distances = [
        abs(one.observed - one.expected)
        for one in categories
        if one.observed is not None and one.expected is not None
    ]
    return replace(
        frozen,
        followed=followed,
        categories=tuple(categories),
        score=sum(bool(one.inside) for one in categories) / len(categories) if categories else None,
        error=sum(distances) / len(distances) if distances else None,
    )


def _shares(counts: Mapping[Signature, int], n: int, taxonomy: Taxonomy) -> dict[str, float]:
    """Failures by category per episode, `unattributed` among them."""
    if not counts or not n:
        return {}
    batch = FailedBatch(
        np.array([*counts.values()], dtype=float),
        [signature.category for signature in counts],
        [signature.labels for signature in counts],
        [signature.phase for signature in counts],
    )
    weights = weigh(batch, taxonomy)
    totals = batch.counts @ weights.matrix / n
    return {name: float(share) for name, share in zip(weights.names, totals, strict=True) if share > 0}
