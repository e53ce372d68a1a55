"""How far a category's bar may be off because the model behind its weights was estimated, chosen, or only points.

Three parts beside the counting of failures, which the ledger does itself. `stretch`: the fit, by each episode's
influence on the bar, summed over sittings where they are known (the delta method with a sandwich; Huber 1967).
`above`: causes that were not told from chance and may be there, as one more step of the fit would have it.
`soft_below` and `soft_above`: what only a phase speaks for, which is a convention and no measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from gapwatch.statistics.causes.failed_episodes import Array
from gapwatch.statistics.causes.failure_model import FailureModel, FittedModel, Term
from gapwatch.statistics.causes.logistic import score_tests
from gapwatch.statistics.causes.responsibility import (
    PHASE_STRENGTH,
    Domain,
    Responsibility,
    claims_of,
    joint_name,
    read_evidence,
)
from gapwatch.statistics.causes.side_sample import SideSample

FEWEST_CLUSTERS = 5
NUDGE = 1e-4
# A cause that goes with failing at all may be there unnoticed.
MAY_BE_THERE = 0.0
CERTAINTY = 1.96
# The influence is that of the chosen model; that it was chosen on the same episodes makes its bars less sure:
# without it 87 to 88 % of intervals covered in the worst worlds at 100 real episodes.
SELECTION = 1.15


@dataclass(frozen=True)
class Uncertainty:
    stretch: float = 1.0
    above: float = 0.0
    soft_below: float = 0.0
    soft_above: float = 0.0


def weight_uncertainties(
    basis: Responsibility, fitted: FittedModel, sim: SideSample, real: SideSample, names: Sequence[str]
) -> dict[str, Uncertainty]:
    bars = _Bars(basis, sim, real, names)
    claims, soft = bars.claims(fitted.model.place)
    slopes = bars.slopes(fitted.model.place)
    influence = _scores(fitted) @ slopes
    counted = np.zeros_like(influence)
    alone = np.zeros(len(names))
    at = 0
    for side, own, sign in ((sim, claims[0], -1.0), (real, claims[1], 1.0)):
        size = len(side.succeeded) + len(side.failed)
        failed = slice(at + len(side.succeeded), at + size)
        weighed = side.failed.counts[:, None] * own / side.n
        counted[failed] = sign * weighed
        counted[at : at + size] -= sign * weighed.sum(axis=0) / max(size, 1)
        mean = weighed.sum(axis=0)
        alone += side.failed.counts @ own**2 / side.n**2 - mean**2 / side.n
        at += size
    together = _clustered(counted + influence, sim, real)
    stretch = np.sqrt(np.maximum(1.0, together / np.maximum(alone, 1e-12)))
    stretch = np.where(stretch > 1, SELECTION * stretch, stretch)
    above = _unnoticed(fitted, names, bars, real.n)
    spoken = real.failed.counts @ soft / real.n
    silent = real.failed.counts @ bars.unspoken(soft) / real.n
    joint = _joint(basis, claims, sim, real, names)
    unsure = _unsure(fitted.model, bars)
    return {
        name: Uncertainty(
            float(stretch[i]),
            above.get(name, 0.0),
            float(spoken[i] + unsure[i]),
            float(silent[i]) + joint.get(name, 0.0),
        )
        for i, name in enumerate(names)
    }


def _unsure(model: FailureModel, bars: _Bars) -> Array:
    """What each bar has from causes that were just told from chance: the best of many seems more than that."""
    now = bars.at(model.place)
    weak = [1 + number for number, term in enumerate(model.terms) if not term.is_sure]
    if not weak:
        return np.zeros_like(now)
    without = model.place.copy()
    without[weak] = 0.0
    return np.maximum(now - bars.at(without), 0.0)


def _joint(
    basis: Responsibility, claims: Sequence[Array], sim: SideSample, real: SideSample, names: Sequence[str]
) -> dict[str, float]:
    """Of causes that nothing tells apart each may have cost all of their bar."""
    found: dict[str, float] = {}
    for term in basis.model.terms:
        if term.is_joint:
            index = list(names).index(joint_name(term.categories))
            bar = (
                real.failed.counts @ claims[1][:, index] / real.n - sim.failed.counts @ claims[0][:, index] / sim.n
            )
            for category in term.categories:
                found[category] = max(0.0, float(bar))
    return found


class _Bars:
    """The bars as a function of the coefficients."""

    def __init__(self, basis: Responsibility, sim: SideSample, real: SideSample, names: Sequence[str]) -> None:
        self._basis, self._sides, self._names = basis, (sim, real), names
        domains: tuple[Domain, Domain] = ("sim", "real")
        self._domains = domains
        self._evidence = [
            read_evidence(basis, side.failed, domain, names)
            for side, domain in zip(self._sides, domains, strict=True)
        ]

    def with_one_more(self, model: FailureModel, column: Array) -> _Bars:
        """The same with another term, of which `column` has the value of every row that was fitted on."""
        larger, at = copy(self), 0
        larger._basis = replace(self._basis, model=model)
        larger._evidence = []
        for side, evidence in zip(self._sides, self._evidence, strict=True):
            at += len(side.succeeded)
            own = column[at : at + len(side.failed), None]
            at += len(side.failed)
            larger._evidence.append(replace(evidence, values=np.concatenate([evidence.values, own], axis=1)))
        return larger

    def claims(self, place: Array) -> tuple[list[Array], Array]:
        found = [
            claims_of(self._basis, side.failed, domain, self._names, place, evidence)
            for side, domain, evidence in zip(self._sides, self._domains, self._evidence, strict=True)
        ]
        return [claims for claims, _, _ in found], found[1][1]

    def at(self, place: Array) -> Array:
        claims, _ = self.claims(place)
        sim, real = (side.failed.counts @ own / side.n for side, own in zip(self._sides, claims, strict=True))
        return np.asarray(real - sim)

    def slopes(self, place: Array) -> Array:
        """One row a coefficient."""
        rows = []
        for index in range(len(place)):
            nudge = NUDGE * max(1.0, abs(place[index]))
            up, down = place.copy(), place.copy()
            up[index] += nudge
            down[index] -= nudge
            rows.append((self.at(up) - self.at(down)) / (2 * nudge))
        return np.array(rows)

    def unspoken(self, soft: Array) -> Array:
        """What the phase points to and its strength leaves."""
        return soft * (1 - PHASE_STRENGTH) / PHASE_STRENGTH


def _scores(fitted: FittedModel) -> Array:
    """How much each episode moves the coefficients."""
    residual = fitted.rows.failed - fitted.fit.rate
    return np.asarray(np.linalg.solve(fitted.fit.bend, (fitted.x * residual[:, None]).T).T)


def _clustered(influence: Array, sim: SideSample, real: SideSample) -> Array:
    """The variance of each bar: sums of influence over sittings, or over episodes where too few are known."""
    from scipy.special import ndtri, stdtrit

    at, total = 0, np.zeros(influence.shape[1])
    for side in (sim, real):
        size = len(side.succeeded) + len(side.failed)
        own = influence[at : at + size]
        at += size
        sessions = [*(side.succeeded.sessions or [None] * len(side.succeeded)),
                    *(side.failed.sessions or [None] * len(side.failed))]  # fmt: skip
        number: dict[object, int] = {}
        index = [
            number.setdefault(s if s is not None else ("alone", row), len(number))
            for row, s in enumerate(sessions)
        ]
        named = len({s for s in sessions if s is not None})
        alone = (own**2).sum(axis=0)
        if named < FEWEST_CLUSTERS:
            total += alone
            continue
        sums = np.zeros((len(number), own.shape[1]))
        np.add.at(sums, index, own)
        few = float(stdtrit(named - 1, 0.975) / ndtri(0.975)) ** 2
        total += np.maximum(alone, (sums**2).sum(axis=0) * named / (named - 1) * few)
    return total


def _unnoticed(fitted: FittedModel, names: Sequence[str], bars: _Bars, n_real: int) -> dict[str, float]:
    """By how much a bar's upper end rises if the likeliest cause of its category that was left out is there."""
    rows, model = fitted.rows, fitted.model
    left = [j for j in range(len(rows.candidates)) if j not in fitted.chosen]
    if not left:
        return {}
    columns = rows.columns[:, left]
    z = score_tests(fitted.fit, fitted.x, rows.failed, columns)
    best: dict[str, tuple[float, int]] = {}
    for number, j in enumerate(left):
        for category in rows.candidates[j].categories:
            if z[number] > best.get(category, (MAY_BE_THERE, 0))[0]:
                best[category] = (float(z[number]), number)
    now = bars.at(model.place)
    found: dict[str, float] = {}
    tried: dict[int, Array] = {}
    for category, (_, number) in best.items():
        if number not in tried:
            tried[number] = _with_one_more(fitted, bars, left[number], columns[:, number])
        index = list(names).index(category)
        missed = max(0.0, float(tried[number][index] - now[index]))
        # Its failures would have been counted, too, and their number is chance.
        share = min(1.0, missed + max(0.0, float(now[index])))
        found[category] = missed + CERTAINTY * float(np.sqrt(share * (1 - share) / n_real)) * (missed > 0)
    return found


def _with_one_more(fitted: FittedModel, bars: _Bars, j: int, column: Array) -> Array:
    """The bars with one more term, at the upper limit of its coefficient after one step."""
    rows, model, fit = fitted.rows, fitted.model, fitted.fit
    spread = fit.spread
    shared = fitted.x.T @ (column * spread)
    moves = np.linalg.solve(fit.bend, shared)
    room = float(column**2 @ spread - shared @ moves)
    slope = float(column @ (rows.failed - fit.rate))
    effect = slope / room + CERTAINTY / np.sqrt(room)
    place = model.place - effect * moves
    count = len(model.terms)
    place = np.concatenate([place[: 1 + count], [effect], place[1 + count :]])
    candidate = rows.candidates[j]
    larger: FailureModel = replace(
        model,
        terms=(*model.terms, Term(candidate, effect, 0.0, candidate.categories)),
        place=place,
        fillings={key: np.append(own, rows.fillings[key][j]) for key, own in model.fillings.items()},
    )
    return bars.with_one_more(larger, column).at(place)
