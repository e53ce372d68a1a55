"""A model of failure fitted on both sides: which of what is written down goes with failing, wherever it occurs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapwatch.levels import MISSING
from gapwatch.statistics.causes.cause_candidates import Candidate, find_candidates, signal_distance
from gapwatch.statistics.causes.failed_episodes import Array, FailedBatch
from gapwatch.statistics.causes.logistic import LogisticFit, fit_logistic, score_tests
from gapwatch.statistics.causes.side_sample import SideSample, SuccessBatch
from gapwatch.taxonomy import Taxonomy

# In one of so many models without any cause something is taken for one.
FALSE_TERMS = 0.05
# From this z on real fails more than the causes explain, and a signal may explain that.
BEING_REAL = 1.64
# Beside a signal that is shifted in all of real it takes more: the two are hard to tell apart.
BEING_REAL_BESIDE = 3.0
# By how much worse, in log-likelihood, a shifted signal may explain real's failures than merely being real does.
AS_GOOD = 2.0
# Within so much of the best, nothing tells two explanations apart.
NOT_TOLD_APART = 4.0
FEWEST_SHIFTED = 2.0
# A level that is so much more frequent in real than in sim can hardly be told from being real.
LEVEL_SHIFTED = 0.7
MOST_OF_REAL = 0.6
# Two causes that go together like this were not varied apart, unless failures say otherwise.
GOES_TOGETHER = 0.8
# Where real is not seen to fail more than sim, a cause is sure only if so few models without any would take it in.
SURE_WITHOUT_DROP = 0.005
MOST_TERMS = 8
# Coefficients have this prior spread, in log-odds at a typical dose. It keeps small samples finite.
PRIOR_SPREAD = 4.0
DRAWN_TO_USUAL = 3.0
Batch = FailedBatch | SuccessBatch
# (domain, phase of a failure or None)
FillingKey = tuple[str, str | None]


@dataclass(frozen=True)
class Term:
    """A cause in the model: `effect` is what a unit of its candidate costs in log-odds, `z` how sure that is.

    `categories` are its candidate's, or those of several causes that were never varied apart (`is_joint`).
    `is_sure`: real is seen to fail more than sim, or the cause would be told from chance with much less room for
    error, too.
    """

    candidate: Candidate
    effect: float
    z: float
    categories: tuple[str, ...]
    is_joint: bool = False
    others: tuple[Candidate, ...] = ()
    is_sure: bool = True


@dataclass(frozen=True)
class FailureModel:
    """`fillings`: what stands for a term's value where it was not written down, by domain.

    `place` are the coefficients: the base, the terms', and that of being real where it is in the model.
    """

    terms: tuple[Term, ...]
    place: Array
    has_real: bool
    fillings: Mapping[FillingKey, Array]
    looked_at: int = 0

    @property
    def being_real(self) -> float:
        return float(self.place[-1]) if self.has_real else 0.0

    def values(self, batch: Batch, domain: str) -> Array:
        values = values_of([term.candidate for term in self.terms], batch, domain)
        return filled(values, batch, domain, self.fillings)


@dataclass(frozen=True)
class FitRows:
    """The rows that a model was fitted on: sim successes, sim failures, real successes, real failures."""

    candidates: Sequence[Candidate]
    columns: Array
    failed: Array
    real: Array
    offset: Array
    fillings: Mapping[FillingKey, Array]
    told: Array


@dataclass(frozen=True)
class FittedModel:
    """A model with what it was fitted on, for its uncertainty."""

    model: FailureModel
    rows: FitRows
    x: Array
    fit: LogisticFit
    chosen: tuple[int, ...]

    @property
    def base(self) -> float:
        """The chance to fail at what is usual in sim."""
        return float(1 / (1 + np.exp(-self.model.place[0])))

    @property
    def points_of_being_real(self) -> float:
        """By how much more real fails at what is usual, for reasons that are not logged."""
        return float(1 / (1 + np.exp(-self.model.place[0] - self.model.being_real))) - self.base

    @property
    def null_log_likelihood(self) -> float:
        """That of one chance to fail for all rows."""
        rate = float(self.rows.failed.mean()) if len(self.rows.failed) else 0.0
        if not 0 < rate < 1:
            return 0.0
        return len(self.rows.failed) * float(rate * np.log(rate) + (1 - rate) * np.log(1 - rate))


def values_of(candidates: Sequence[Candidate], batch: Batch, domain: str) -> Array:
    """One row an episode, one column a candidate; NaN where nothing was written down."""
    n = len(batch)
    columns = np.full((n, len(candidates)), np.nan)
    for column, candidate in enumerate(candidates):
        if candidate.kind in ("above", "below"):
            values = batch.signals.get(candidate.name)
            if values is not None:
                columns[:, column] = signal_distance(values, candidate)
            continue
        own, number_of = _level_codes(batch, candidate.name)
        hits = np.where(own == number_of[MISSING], np.nan, own == number_of.get(candidate.level, -1))
        columns[:, column] = hits * (domain == "real") if candidate.kind == "level in real" else hits
    return columns


def _level_codes(batch: Batch, condition: str) -> tuple[NDArray[np.int64], Mapping[str, int]]:
    if condition not in batch.codes:
        levels = batch.conditions.get(condition) or [None] * len(batch)
        words = {level: MISSING if level is None else str(level) for level in dict.fromkeys(levels)}
        number_of = {word: number for number, word in enumerate(dict.fromkeys([MISSING, *words.values()]))}
        of_level = {level: number_of[word] for level, word in words.items()}
        batch.codes[condition] = np.array([of_level[level] for level in levels], dtype=np.int64), number_of
    return batch.codes[condition]


def filled(values: Array, batch: Batch, domain: str, fillings: Mapping[FillingKey, Array]) -> Array:
    """What was not written down is as in the side's other failures of that phase, or as usual on that side."""
    if not np.isnan(values).any():
        return values
    usual = fillings[domain, None]
    if isinstance(batch, SuccessBatch):
        return np.where(np.isnan(values), usual[None, :], values)
    of_rows = np.array([fillings.get((domain, str(phase)), usual) for phase in batch.phase]).reshape(values.shape)
    return np.where(np.isnan(values), of_rows, values)


def fit_failure_model(
    sim: SideSample, real: SideSample, taxonomy: Taxonomy, other_units: Sequence[str] = ()
) -> FittedModel:
    """Fit log-odds of failure = base + Σ effect · dose + being real, on the causes that are told from chance."""
    from scipy.special import ndtri

    candidates = find_candidates(sim, real, taxonomy, other_units)
    rows = _rows(sim, real, candidates)
    least, sure = (float(ndtri(1 - share / max(len(candidates), 2))) for share in (FALSE_TERMS, SURE_WITHOUT_DROP))
    return _Selection(rows, least, sure).run()


def _rows(sim: SideSample, real: SideSample, candidates: list[Candidate]) -> FitRows:
    """Successes may be a sample: logistic regression then differs in its base only, by a known offset."""
    parts, failed, domain, offsets, told = [], [], [], [], []
    fillings: dict[FillingKey, Array] = {}
    for name, side in (("sim", sim), ("real", real)):
        batches: tuple[Batch, Batch] = (side.succeeded, side.failed)
        own = [values_of(candidates, batch, name) for batch in batches]
        sizes = [len(part) for part in own]
        stands_for = [(side.n - side.failures) / max(1, sizes[0]), side.failures / max(1, sizes[1])]
        fillings |= _fillings(own, stands_for, side.failed, name)
        parts += [filled(values, batch, name, fillings) for values, batch in zip(own, batches, strict=True)]
        told.append(np.isfinite(own[1]))
        failed.append(np.repeat([0.0, 1.0], sizes))
        domain.append(np.full(sum(sizes), float(name == "real")))
        offsets.append(np.full(sum(sizes), np.log(stands_for[0] / stands_for[1]) if min(sizes) else 0.0))
    return FitRows(
        candidates,
        np.concatenate(parts),
        np.concatenate(failed),
        np.concatenate(domain),
        np.concatenate(offsets),
        fillings,
        _told(told, len(candidates)),
    )


def _told(in_failures: Sequence[NDArray[np.bool_]], size: int) -> Array:
    """The share of failures of which each candidate is known, over the sides that write it down at all."""
    kept = np.array([side.sum(axis=0) for side in in_failures]).reshape(2, size)
    asked = np.where(kept > 0, np.array([[len(side)] for side in in_failures]), 0)
    return np.where(asked.sum(axis=0) > 0, kept.sum(axis=0) / np.maximum(asked.sum(axis=0), 1), 1.0)


def _fillings(
    own: Sequence[Array], stands_for: Sequence[float], failed: FailedBatch, domain: str
) -> dict[FillingKey, Array]:
    """The side's mean of each candidate; for a phase the mean of its failures, drawn to that as by three episodes.

    A signal that is lost at random in failures is so filled without bias. One that is only measured late, once
    something hangs in the gripper, has no value in an early phase to go by, and is taken as usual.
    """
    both = np.concatenate(own)
    there = np.isfinite(both)
    weights = np.repeat(stands_for, [len(part) for part in own])[:, None] * there
    usual = (np.where(there, both, 0.0) * weights).sum(axis=0) / np.maximum(weights.sum(axis=0), 1e-12)
    fillings: dict[FillingKey, Array] = {(domain, None): usual}
    lacking = np.flatnonzero(np.isnan(own[1]).any(axis=0))
    if len(lacking):
        values = own[1][:, lacking]
        phases = np.array([str(phase) for phase in failed.phase])
        for phase in dict.fromkeys(phases.tolist()):
            here = values[phases == phase]
            measured = np.isfinite(here)
            sums, counts = np.where(measured, here, 0.0).sum(axis=0), measured.sum(axis=0)
            of_phase = usual.copy()
            of_phase[lacking] = (sums + DRAWN_TO_USUAL * usual[lacking]) / (counts + DRAWN_TO_USUAL)
            fillings[domain, phase] = of_phase
    return fillings


class _Selection:
    """Forward: the most telling cause first, as long as it is told from chance and from merely being real."""

    def __init__(self, rows: FitRows, least: float, sure: float) -> None:
        self._rows, self._least, self._sure = rows, least, sure
        in_real = rows.columns[rows.real > 0]
        positive = in_real > 0
        dose = np.where(positive, in_real, 0).sum(axis=0) / np.maximum(positive.sum(axis=0), 1)
        # A prior of one spread for all needs one unit for all: the dose that real episodes typically have.
        self._unit = np.where(dose > 0, dose, 1.0)
        self._columns = rows.columns / self._unit
        self._is_shifted = _is_shifted(rows)
        self._is_shifted_level = _is_shifted_level(rows)
        self._names = np.array([candidate.name for candidate in rows.candidates])
        self._chosen: list[int] = []
        self._joint: dict[int, tuple[int, ...]] = {}
        self._barred = np.zeros(len(rows.candidates), dtype=bool)
        self._fits: dict[tuple[tuple[int, ...], bool], tuple[Array, LogisticFit]] = {}
        x, fit = self._fit([], False)
        self._fails_more = float(score_tests(fit, x, rows.failed, rows.real[:, None])[0]) >= BEING_REAL

    def run(self) -> FittedModel:
        has_real = False
        while True:
            x, fit = self._fit(self._chosen, has_real)
            negative = [j for j, effect in zip(self._chosen, fit.place[1:], strict=False) if effect <= 0]
            if negative:
                self._barred[negative] = True
                self._chosen = [j for j in self._chosen if j not in negative]
                continue
            if len(self._chosen) >= MOST_TERMS:
                break
            if has_real and fit.place[-1] < 0 and (hidden := self._all_but_real()):
                self._barred[hidden] = True
                self._chosen = [j for j in self._chosen if j not in hidden]
                has_real = False
                continue
            found = self._most_telling(x, fit, has_real)
            if found is not None and not has_real and self._costs_more_in_real(found):
                found = self._better_than_costing_more(x, fit, found)
            if found is not None:
                self._chosen.append(found)
                continue
            if has_real:
                break
            z = float(score_tests(fit, x, self._rows.failed, self._rows.real[:, None])[0])
            if self._joint and abs(z) < BEING_REAL_BESIDE:
                break
            if z >= BEING_REAL and not self._joint and (shift := self._as_good_as_being_real(x, fit)):
                self._chosen.append(shift[0])
                if self._is_shifted[shift[0]]:
                    self._joint[shift[0]] = tuple(shift)
                continue
            has_real = True
        for j in self._chosen:
            if j not in self._joint:
                self._joint[j] = (j, *self._never_apart(j, fit, has_real))
        return self._model(x, fit, has_real)

    def _costs_more_in_real(self, j: int) -> bool:
        return self._rows.candidates[j].kind == "level in real"

    def _all_but_real(self) -> list[int]:
        """Levels of most real episodes that cost more in real, where real otherwise fails less.

        That is being real, told by what is rare.
        """
        in_real = self._rows.columns[self._rows.real > 0]
        return [j for j in self._chosen if self._costs_more_in_real(j) and in_real[:, j].mean() > MOST_OF_REAL]

    def _better_than_costing_more(self, x: Array, before: LogisticFit, found: int) -> int:
        """A level that costs more in real, or a signal far out in all of real if that explains more."""
        z = float(score_tests(before, x, self._rows.failed, self._rows.real[:, None])[0])
        if z < BEING_REAL or self._joint or not (shift := self._as_good_as_being_real(x, before)):
            return found
        if not self._is_shifted[shift[0]]:
            return found
        ours, theirs = (self._fit([*self._chosen, j], False)[1].log_likelihood for j in (found, shift[0]))
        if ours >= theirs:
            return found
        self._joint[shift[0]] = tuple(shift)
        return shift[0]

    def _never_apart(self, j: int, fit: LogisticFit, has_real: bool) -> list[int]:
        """Causes of other categories that go together with a chosen one and would explain as much in its place."""
        rows, others = self._rows, [k for k in self._chosen if k != j]
        own = rows.candidates[j].categories
        together = _correlations(self._columns, j) >= GOES_TOGETHER
        best: dict[tuple[str, ...], tuple[float, int]] = {}
        for k in np.flatnonzero(together).tolist():
            categories = rows.candidates[k].categories
            if k in self._chosen or not own or not categories or {*categories} <= {*own}:
                continue
            if self._costs_more_in_real(k) and not self._costs_more_in_real(j):
                continue  # It goes together with all that is far out in real, by its name.
            _, instead = self._fit([*others, k], has_real)
            gain = instead.log_likelihood - fit.log_likelihood
            if gain >= -NOT_TOLD_APART and gain > best.get(categories, (-np.inf, 0))[0]:
                best[categories] = (gain, k)
        return [k for _, k in sorted(best.values(), reverse=True)]

    def _is_sure(self, j: int, has_real: bool) -> bool:
        """Whether a cause would be told from chance with less room for error, all others being in the model.

        Without a drop the best of many candidates is mostly chance; with one there is something to explain.
        """
        if self._fails_more:
            return True
        others = [k for k in self._chosen if k != j]
        z = np.inf
        for beside in {has_real, True} if not self._is_shifted[j] else {has_real}:
            x, fit = self._fit(others, beside)
            z = min(z, float(score_tests(fit, x, self._rows.failed, self._columns[:, [j]])[0]))
        return bool(np.sqrt(self._rows.told[j]) * z >= self._sure)

    def _fit(self, chosen: list[int], has_real: bool) -> tuple[Array, LogisticFit]:
        key = (tuple(chosen), has_real)
        if key not in self._fits:
            self._fits[key] = self._fit_anew(chosen, has_real)
        return self._fits[key]

    def _fit_anew(self, chosen: list[int], has_real: bool) -> tuple[Array, LogisticFit]:
        columns = [np.ones((len(self._rows.failed), 1)), self._columns[:, chosen]]
        x = np.concatenate([*columns, self._rows.real[:, None]] if has_real else columns, axis=1)
        precision = np.full(x.shape[1], PRIOR_SPREAD**-2)
        precision[0] = 1e-6
        return x, fit_logistic(x, self._rows.failed, self._rows.offset, precision)

    def _most_telling(self, x: Array, fit: LogisticFit, has_real: bool) -> int | None:
        """Of the candidates that go with failing on either side, whichever side that is."""
        if not len(self._columns.T):
            return None
        z = score_tests(fit, x, self._rows.failed, self._columns)
        x_real, fit_real = (x, fit) if has_real else self._fit(self._chosen, True)
        within = score_tests(fit_real, x_real, self._rows.failed, self._columns)
        # What was filled in says nothing of its own.
        known = np.sqrt(self._rows.told)
        fits = (known * np.minimum(z, within) >= self._least) & ~self._barred
        fits[self._chosen] = False
        return int(np.argmax(np.where(fits, z, -np.inf))) if fits.any() else None

    def _as_good_as_being_real(self, x: Array, before: LogisticFit) -> list[int]:
        """Signals far from sim in all of real: the best one that explains its failures as well as being real does.

        With it come the best ones of other categories that do so, too: nothing tells them apart.
        """
        _, only_real = self._fit(self._chosen, True)
        best: dict[tuple[str, ...], tuple[float, int]] = {}
        hard = {(c.name, c.level) for j in self._chosen if (c := self._rows.candidates[j]).kind == "level"}
        harder = [c.kind == "level in real" and (c.name, c.level) in hard for c in self._rows.candidates]
        z = score_tests(before, x, self._rows.failed, self._columns)
        able = (self._is_shifted | self._is_shifted_level) & (z >= self._least)
        able |= np.array(harder, dtype=bool) & (z >= BEING_REAL)
        able &= ~self._barred
        able[self._chosen] = False
        for j in np.flatnonzero(able).tolist():
            _, fit = self._fit([*self._chosen, j], False)
            gain = fit.log_likelihood - only_real.log_likelihood
            categories = self._rows.candidates[j].categories
            if fit.place[-1] > 0 and gain > best.get(categories, (-np.inf, 0))[0]:
                best[categories] = (gain, j)
        order = sorted(best.values(), reverse=True)
        # A level that nearly all of real has is no cause by that alone, only one that another may be taken for.
        first = next(((gain, j) for gain, j in order if not self._is_shifted_level[j]), None)
        if first is None or first[0] < -AS_GOOD:
            return []
        return [first[1], *(j for gain, j in order if j != first[1] and gain >= first[0] - NOT_TOLD_APART)]

    def _model(self, x: Array, fit: LogisticFit, has_real: bool) -> FittedModel:
        rows, chosen = self._rows, self._chosen
        spread = np.sqrt(np.diag(np.linalg.inv(fit.bend)))
        terms = []
        for place, j in enumerate(chosen, start=1):
            candidate, joint = rows.candidates[j], self._joint[j]
            categories = tuple(dict.fromkeys(name for k in joint for name in rows.candidates[k].categories))
            terms.append(
                Term(
                    candidate,
                    float(fit.place[place] / self._unit[j]),
                    float(fit.place[place] / spread[place]),
                    categories,
                    len(joint) > 1,
                    tuple(rows.candidates[k] for k in joint[1:]),
                    self._is_sure(j, has_real),
                )
            )
        places = fit.place.copy()
        places[1 : 1 + len(chosen)] /= self._unit[chosen]
        fillings = {key: filling[chosen] for key, filling in rows.fillings.items()}
        model = FailureModel(tuple(terms), places, has_real, fillings, len(rows.candidates))
        scale = np.ones(x.shape[1])
        scale[1 : 1 + len(chosen)] = self._unit[chosen]
        x, bend = x * scale, fit.bend * np.outer(scale, scale)
        return FittedModel(model, rows, x, LogisticFit(places, bend, fit.rate, fit.log_likelihood), tuple(chosen))


def _is_shifted(rows: FitRows) -> NDArray[np.bool_]:
    """Signals that lie far out in most real episodes and in few of sim."""
    is_signal = np.array([c.kind in ("above", "below") and c.simulated for c in rows.candidates], dtype=bool)
    if not is_signal.any():
        return is_signal
    columns = rows.columns[:, is_signal]
    in_real, in_sim = columns[rows.real > 0], columns[rows.real == 0]
    beyond = np.array([candidate.beyond for candidate in rows.candidates])[is_signal]
    far = np.median(in_real, axis=0) + beyond if len(in_real) else np.zeros(len(beyond))
    usual = np.median(in_sim, axis=0) + beyond if len(in_sim) else far
    is_signal[is_signal] = (far >= FEWEST_SHIFTED) & (usual < far)
    return is_signal


def _is_shifted_level(rows: FitRows) -> NDArray[np.bool_]:
    """Levels that most of real has and hardly any of sim."""
    is_level = np.array([c.kind == "level" and c.simulated for c in rows.candidates], dtype=bool)
    in_real, in_sim = rows.columns[rows.real > 0], rows.columns[rows.real == 0]
    if not is_level.any() or not len(in_real) or not len(in_sim):
        return np.zeros(len(rows.candidates), dtype=bool)
    return np.asarray(is_level & (in_real.mean(axis=0) - in_sim.mean(axis=0) >= LEVEL_SHIFTED))


def _correlations(columns: Array, j: int) -> Array:
    """Of one column with each."""
    centred = columns - columns.mean(axis=0)
    size = np.sqrt((centred**2).sum(axis=0))
    return np.asarray(centred.T @ centred[:, j] / np.maximum(size * size[j], 1e-12))
