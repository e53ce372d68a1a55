"""Which detectors a rule has over a deployment, and with what settings each is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from gapwatch.statistics.change.cusum import CusumWatch
from gapwatch.statistics.change.drift import LevelWatch
from gapwatch.statistics.change.drift_against_sim import SimWatch
from gapwatch.statistics.change.drift_shape import ShapeWatch
from gapwatch.watching.detectors import (
    CusumDetector,
    Detector,
    LevelDetector,
    RankDetector,
    SevereDetector,
    SimDetector,
    seed_of,
)
from gapwatch.watching.rules import LEVELS, DriftParams, DropParams, Kind, Rule, SafetyParams, StageGateParams
from gapwatch.watching.series import Seen, names_in, value_of

SEVERE = " severe"
USUALLY_WORSE: dict[str, Literal["lower", "higher"]] = {
    "success": "lower",
    "reward": "lower",
    "duration": "higher",
}


@dataclass(frozen=True)
class Unit:
    """One series under one rule. `left` says of an episode that what the unit judges is over with it."""

    series: str
    value: Callable[[Seen], float | None]
    left: Callable[[Seen], bool] | None = None
    limit: float | None = None


def _of(series: str) -> Unit:
    kind, _, name = series.partition(":")
    # Signals are most of all values, so they are looked up without a detour.
    if kind == "signal":
        return Unit(series, lambda episode: episode.signals.get(name))
    return Unit(series, lambda episode: value_of(series, episode))


def _drop_units(_rule: Rule, _block: Sequence[Seen], _stored: Mapping[tuple[str, str], Any]) -> list[Unit]:
    return [_of("success")]


def _drift_units(rule: Rule, block: Sequence[Seen], stored: Mapping[tuple[str, str], Any]) -> list[Unit]:
    params = cast(DriftParams, rule.params)
    if params.series not in {"signals", "metrics"}:
        return [_of(params.series)]
    known = {series for name, series in stored if name == rule.name}
    return [_of(series) for series in sorted(known.union(names_in(params.series, block)))]


def _safety_units(rule: Rule, _block: Sequence[Seen], _stored: Mapping[tuple[str, str], Any]) -> list[Unit]:
    params = cast(SafetyParams, rule.params)
    units = [_of(params.what)] if params.rate else []
    if params.severe is not None:

        def count(episode: Seen) -> float | None:
            value = getattr(episode, params.what)
            return None if value is None else float(value)

        units.append(Unit(params.what + SEVERE, count))
    return units


def _gate_units(rule: Rule, _block: Sequence[Seen], _stored: Mapping[tuple[str, str], Any]) -> list[Unit]:
    params = cast(StageGateParams, rule.params)
    units = []
    for stage, gate in sorted(params.gates.items()):
        for series in ("success", "interventions"):
            limit = getattr(gate, series)
            if limit is not None:
                units.append(_gate_unit(stage, series, limit))
    return units


def _gate_unit(stage: str, series: str, limit: float) -> Unit:
    def value(episode: Seen) -> float | None:
        return value_of(series, episode) if episode.stage == stage else None

    return Unit(f"{series}@{stage}", value, lambda episode: episode.stage != stage, limit)


def _none(_rule: Rule, _block: Sequence[Seen], _stored: Mapping[tuple[str, str], Any]) -> list[Unit]:
    """Rules that do not go by the episode: categories by the ledger, silence by the clock."""
    return []


UNITS: dict[Kind, Callable[[Rule, Sequence[Seen], Mapping[tuple[str, str], Any]], list[Unit]]] = {
    "drop": _drop_units,
    "drift": _drift_units,
    "safety": _safety_units,
    "stage_gate": _gate_units,
    "category": _none,
    "no_data": _none,
}


def make_detector(rule: Rule, unit: Unit, stored: dict[str, Any] | None, seed: int) -> Detector:
    params = rule.params
    if isinstance(params, DropParams):
        mixed = seed_of(seed, rule.name)
        return SimDetector(SimWatch(params.above, params.alpha, params.arl, params.clear_arl, mixed), stored)
    if isinstance(params, SafetyParams):
        if unit.series.endswith(SEVERE):
            return SevereDetector(params.severe or 1, params.clear_episodes, stored)
        watch = LevelWatch("higher", params.arl, params.clear_arl, params.margin)
        return LevelDetector(watch, stored)
    if isinstance(params, StageGateParams):
        side: Literal["lower", "higher"] = "lower" if unit.series.startswith("success") else "higher"
        return LevelDetector(LevelWatch(side, params.arl, params.clear_arl, limit=unit.limit), stored)
    return _drift_detector(cast(DriftParams, params), unit.series, stored)


def _drift_detector(params: DriftParams, series: str, stored: dict[str, Any] | None) -> Detector:
    method = params.method or ("level" if series in LEVELS else "rank")
    learn = params.learn_episodes or 200
    if method == "cusum":
        return CusumDetector(CusumWatch(params.arl, 0.5, learn, params.clear_episodes), stored)
    if method == "rank":
        worse: Literal["lower", "higher", "either"] = USUALLY_WORSE.get(series, "either")
        if params.worse is not None:
            worse = params.worse
        return RankDetector(ShapeWatch(worse, params.arl, learn, params.clear_episodes), stored)
    lower = params.worse == "lower" or (params.worse is None and series == "success")
    learn_from = params.learn_episodes or 100
    watch = LevelWatch(
        "lower" if lower else "higher",
        params.arl,
        params.clear_arl,
        params.margin,
        learn_from=learn_from,
        learn_to=max(1000, learn_from),
    )
    return LevelDetector(watch, stored)
