"""Which share of a failure is whose: a model of failure, with labels, symptoms and phases as evidence of strength.

A failure with chance p would have happened with p₀ anyway, at what is usual: p₀/p of it is chance. The rest is
shared by what each cause adds in log-odds. What only being real adds is free: a symptom or a phase may claim it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from gapwatch.statistics.causes.cause_candidates import quantiles, signals_in_other_units
from gapwatch.statistics.causes.evidence_claims import UNIT, deciding_labels, whole_parts
from gapwatch.statistics.causes.failed_episodes import Array, FailedBatch
from gapwatch.statistics.causes.failure_model import FailureModel, FittedModel, fit_failure_model
from gapwatch.statistics.causes.side_sample import SideSample
from gapwatch.statistics.causes.weighing import Weights
from gapwatch.taxonomy import CATEGORIES, UNATTRIBUTED, Taxonomy

Domain = Literal["sim", "real"]
Key = TypeVar("Key", bound=Hashable)
# A label is right about the cause so many times as often as wrong.
LABEL_ODDS = 20.0
# Of what only being real explains, so much goes to what a symptom or the phase points to.
SYMPTOM_STRENGTH, PHASE_STRENGTH = 0.9, 0.7
# A side that writes something down less than half as often as the other keeps other records.
MUCH_LESS = 0.5
FEWEST_TOLD, FEWEST_USUAL = 5, 20
# Symptoms speak where real's failures show more of them than sim's do: z of the rank sum.
SYMPTOM_Z = 2.0


@dataclass(frozen=True)
class Records:
    """Which side writes labels and phases down far less than the other; which signals are in other units."""

    labels_lacking: Domain | None = None
    phases_lacking: Domain | None = None
    other_units: tuple[str, ...] = ()


@dataclass(frozen=True)
class Symptom:
    """A symptom that real's failures show more of than sim's; usual values are those of the side's successes."""

    name: str
    kind: Literal["above", "below"]
    categories: tuple[str, ...]
    median: float
    spread: float


@dataclass(frozen=True)
class Shares:
    """Of each row: by category, of chance, and what only being real explains."""

    causes: Array
    chance: Array
    free: Array


@dataclass(frozen=True)
class Responsibility:
    """What failures are weighed with: the same for a ledger's rows and for a single episode."""

    taxonomy: Taxonomy
    model: FailureModel
    records: Records
    symptoms: tuple[Symptom, ...] = ()
    phase_share: Mapping[str, float] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        joint = dict.fromkeys(joint_name(term.categories) for term in self.model.terms if term.is_joint)
        return (*CATEGORIES, *joint, UNATTRIBUTED)


def joint_name(categories: Sequence[str]) -> str:
    """One bar with several names, for causes that nothing tells apart."""
    return "+".join(sorted(categories))


def find_responsibility(
    sim: SideSample, real: SideSample, taxonomy: Taxonomy
) -> tuple[Responsibility, FittedModel]:
    records = compare_records(sim, real, taxonomy)
    fitted = fit_failure_model(sim, real, taxonomy, records.other_units)
    plain = Responsibility(taxonomy, fitted.model, records)
    return (
        Responsibility(
            taxonomy,
            fitted.model,
            records,
            tuple(_symptoms(sim, real, taxonomy)),
            {} if records.phases_lacking else _phase_shares(plain, sim, real),
        ),
        fitted,
    )


def compare_records(sim: SideSample, real: SideSample, taxonomy: Taxonomy) -> Records:
    def labelled(batch: FailedBatch) -> float:
        told = [
            category is not None or bool(labels and deciding_labels(labels, taxonomy))
            for category, labels in zip(batch.category, batch.labels, strict=True)
        ]
        return _share(batch, told)

    def phased(batch: FailedBatch) -> float:
        return _share(batch, [phase is not None for phase in batch.phase])

    return Records(
        _lacking(labelled(sim.failed), labelled(real.failed)),
        _lacking(phased(sim.failed), phased(real.failed)),
        signals_in_other_units(sim, real),
    )


def _share(batch: FailedBatch, told: Sequence[bool]) -> float:
    return float(batch.counts @ np.array(told, dtype=float)) / max(float(batch.counts.sum()), 1e-300)


def _lacking(sim: float, real: float) -> Domain | None:
    if sim < MUCH_LESS * real:
        return "sim"
    return "real" if real < MUCH_LESS * sim else None


def shares_of(
    model: FailureModel, batch: FailedBatch, domain: Domain, names: Sequence[str], place: Array | None = None,
    values: Array | None = None,
) -> Shares:  # fmt: skip
    """By the model alone; `place` puts other coefficients in place of the fitted ones."""
    from scipy.special import expit

    at = model.place if place is None else place
    count = len(model.terms)
    column = {name: index for index, name in enumerate(names)}
    added = np.maximum((model.values(batch, domain) if values is None else values) * at[1 : 1 + count], 0.0)
    being_real = float(at[1 + count]) if model.has_real and domain == "real" else 0.0
    usual = at[0] + min(being_real, 0.0)
    total = added.sum(axis=1) + max(being_real, 0.0)
    chance = expit(usual) / expit(usual + total)
    rest = (1 - chance) / np.maximum(total, 1e-12)
    causes = np.zeros((len(batch), len(names)))
    for number, term in enumerate(model.terms):
        own = added[:, number] * rest
        if term.is_joint:
            causes[:, column[joint_name(term.categories)]] += own
        elif term.categories:
            for category in term.categories:
                causes[:, column[category]] += own / len(term.categories)
        else:
            causes[:, -1] += own
    return Shares(causes, np.asarray(chance), rest * max(being_real, 0.0))


def weigh_failures(basis: Responsibility, batch: FailedBatch, domain: Domain) -> Weights:
    """Split every failure of a batch over categories, in whole parts, each row without regard to the others."""
    names = basis.names
    strange = sorted({c for c in batch.category if c is not None} - {*names})
    names = (*names[:-1], *strange, UNATTRIBUTED)
    claims, _, decided = claims_of(basis, batch, domain, names)
    return Weights(names, whole_parts(np.round(claims * UNIT).astype(np.int64), names), decided)


def claims_of(
    basis: Responsibility, batch: FailedBatch, domain: Domain, names: Sequence[str], place: Array | None = None,
    evidence: Evidence | None = None,
) -> tuple[Array, Array, NDArray[np.bool_]]:  # fmt: skip
    """Shares a row and category that add up to 1, those of them that only a phase speaks for, and who decided."""
    evidence = evidence or read_evidence(basis, batch, domain, names)
    shares = shares_of(basis.model, batch, domain, names, place, evidence.values)
    free = np.minimum(shares.free * evidence.phase_share, shares.free + shares.chance)
    claims = shares.causes
    rows = np.flatnonzero(evidence.has_label)
    if len(rows):
        chance = shares.chance + shares.free - free
        even = basis.records.labels_lacking is None
        taken = free + chance if even else free
        claims[rows] = _claims_of_labelled(claims[rows], evidence.labels[rows], taken[rows])
        free[rows] = 0.0
    by_phase = np.zeros_like(claims)
    if free.any():
        # What is left free: symptoms first, then the phase.
        by_symptom = SYMPTOM_STRENGTH * free[:, None] * evidence.symptoms
        left = free - by_symptom.sum(axis=1)
        by_phase = PHASE_STRENGTH * left[:, None] * evidence.phases
        claims += by_symptom + by_phase
    chosen, columns = evidence.chosen
    claims[chosen] = by_phase[chosen] = 0.0
    claims[chosen, columns] = 1.0
    claims[:, -1] = 0.0
    claims[:, -1] = np.maximum(1 - claims.sum(axis=1), 0.0)
    decided = evidence.has_label.copy()
    decided[chosen] = True
    return claims, by_phase, decided


def _claims_of_labelled(claims: Array, labels: Array, taken: Array) -> Array:
    """A label takes its own part and what nothing else explains (`taken`); on a side that keeps labels for itself
    only what is more than the other side's."""
    own = (claims * (labels > 0)).sum(axis=1)
    others = claims.sum(axis=1) - own
    mass, whole = LABEL_ODDS * (own + taken), own + others + taken
    to_labels = whole * mass / np.maximum(mass + others, 1e-12)
    shrink = (whole - to_labels) / np.maximum(others, 1e-12)
    return np.asarray(np.where(labels > 0, 0.0, claims * shrink[:, None]) + to_labels[:, None] * labels)


@dataclass(frozen=True)
class Evidence:
    """What the records of a batch say, as shares over categories; read once and weighed many times."""

    values: Array
    labels: Array
    has_label: NDArray[np.bool_]
    symptoms: Array
    phases: Array
    phase_share: Array
    # The rows for which a person chose a category, and its column.
    chosen: tuple[list[int], list[int]]


def read_evidence(basis: Responsibility, batch: FailedBatch, domain: Domain, names: Sequence[str]) -> Evidence:
    column = {name: index for index, name in enumerate(names)}
    taxonomy, n = basis.taxonomy, len(batch)

    def of_labels(own: tuple[str, ...]) -> Array:
        shares = np.zeros(len(names))
        deciding = deciding_labels(own, taxonomy)
        for categories in deciding.values():
            for category in categories:
                shares[column[category]] += 1 / len(deciding) / len(categories)
        return shares

    def of_phase(phase: str | None) -> Array:
        shares = np.zeros(len(names))
        for category in (to := () if phase is None else taxonomy.categories_of("phases", phase)):
            shares[column[category]] += 1 / len(to)
        return shares

    labels = _each_once([tuple(own) for own in batch.labels], of_labels, len(names))
    phases = _each_once(batch.phase, of_phase, len(names))
    share = np.array([1.0 if phase is None else basis.phase_share.get(phase, 1.0) for phase in batch.phase])
    return Evidence(
        basis.model.values(batch, domain),
        labels,
        labels.sum(axis=1) > 0,
        _symptom_shares(basis.symptoms, batch, names) if domain == "real" else np.zeros_like(labels),
        phases,
        share if domain == "real" else np.ones(n),
        (
            [row for row, category in enumerate(batch.category) if category is not None],
            [column[category] for category in batch.category if category is not None],
        ),
    )


def _each_once(keys: Sequence[Key], shares_of_key: Callable[[Key], Array], size: int) -> Array:
    """A row of shares for each key; the few different ones are looked up once."""
    known = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    if not known:
        return np.zeros((0, size))
    return np.array([shares_of_key(key) for key in known])[[known[key] for key in keys]]


def _symptom_shares(symptoms: Sequence[Symptom], batch: FailedBatch, names: Sequence[str]) -> Array:
    """Shared by how far out the farthest symptom of each category is; together as much as the farthest."""
    far = np.zeros((len(batch), len(names)))
    for symptom in symptoms:
        values = batch.signals.get(symptom.name)
        if values is None:
            continue
        z = (values - symptom.median) / symptom.spread
        z = np.nan_to_num(-z if symptom.kind == "below" else z, nan=0.0)
        degree = np.clip((z - 2.0) / 1.5, 0.0, 1.0)
        for category in symptom.categories:
            column = list(names).index(category)
            far[:, column] = np.maximum(far[:, column], degree)
    return np.asarray(far * (far.max(axis=1) / np.maximum(far.sum(axis=1), 1e-12))[:, None])


def _symptoms(sim: SideSample, real: SideSample, taxonomy: Taxonomy) -> list[Symptom]:
    """Symptoms of which real's failures show more than sim's, each against the successes of its own side."""
    found = []
    phases = [np.array([str(phase) for phase in side.failed.phase]) for side in (real, sim)]
    for name in sorted(real.failed.signals):
        categories = taxonomy.categories_of("signals", name)
        if not categories or not taxonomy.is_symptom(name):
            continue
        in_real, in_sim = (_standardised(side, name) for side in (real, sim))
        if in_real is None or in_sim is None:
            continue
        scale, z_real = in_real
        z = _rank_z_by_phase(z_real, phases[0], in_sim[1], phases[1])
        for kind in taxonomy.harmful_sides(name):
            if (-z if kind == "below" else z) >= SYMPTOM_Z:
                found.append(Symptom(name, kind, categories, *scale))
    return found


def _standardised(side: SideSample, name: str) -> tuple[tuple[float, float], Array] | None:
    """A symptom of a side's failures in spreads of its successes; NaN where it was not measured."""
    usual = side.succeeded.signals.get(name, np.zeros(0))
    usual = usual[np.isfinite(usual)]
    failed = side.failed.signals.get(name, np.zeros(0))
    if len(usual) < FEWEST_USUAL or np.isfinite(failed).sum() < FEWEST_TOLD:
        return None
    low, median, high = quantiles(usual, (0.16, 0.5, 0.84))
    spread = max((high - low) / 2, 1e-9 * max(1.0, abs(median)))
    return (median, spread), (failed - median) / spread


def _rank_z_by_phase(a: Array, phases_a: NDArray[np.str_], b: Array, phases_b: NDArray[np.str_]) -> float:
    """Mann and Whitney's z within phases, added up: positive where `a` is larger in the same phase.

    A grasp that fails slips on either side; only more of it than sim's failed grasps show says something.
    Source: van Elteren 1960.
    """
    from scipy.stats import rankdata

    above, variance = 0.0, 0.0
    for phase in sorted({*phases_a.tolist()} & {*phases_b.tolist()}):
        x, y = a[phases_a == phase], b[phases_b == phase]
        x, y = x[np.isfinite(x)], y[np.isfinite(y)]
        m, n = len(x), len(y)
        if not m or not n:
            continue
        u = float(rankdata(np.concatenate([x, y]))[:m].sum()) - m * (m + 1) / 2
        above += (u - m * n / 2) / (m + n + 1)
        variance += m * n / (12 * (m + n + 1))
    return above / np.sqrt(variance) if variance > 0 else 0.0


def _phase_shares(basis: Responsibility, sim: SideSample, real: SideSample) -> dict[str, float]:
    """By how much what only being real explains lies in a phase more than elsewhere: its excess of failures there.

    Formula: e = max(0, failures − expected at sim's rate − explained by causes) of each phase, by the free part
    that the model puts there; scaled so that the sum over all phases stays.
    """
    shares = shares_of(basis.model, real.failed, "real", basis.names)
    if not shares.free.any():
        return {}
    excess: dict[str, float] = {}
    free: dict[str, float] = {}
    for row, phase in enumerate(real.failed.phase):
        if phase is not None:
            count = float(real.failed.counts[row])
            excess[phase] = excess.get(phase, 0.0) + count * float(1 - shares.causes[row].sum())
            free[phase] = free.get(phase, 0.0) + count * float(shares.free[row])
    for row, phase in enumerate(sim.failed.phase):
        if phase in excess:
            excess[phase] -= float(sim.failed.counts[row]) * real.n / sim.n
    left = {phase: max(0.0, size) for phase, size in excess.items()}
    total = sum(left.values())
    if total <= 0:
        return {}
    whole = sum(free.values())
    return {phase: whole * size / total / free[phase] for phase, size in left.items() if free[phase] > 0}
