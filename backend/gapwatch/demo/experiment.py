"""One experiment in the demo world: two sides, their ledger from the product's own code, and the true answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gapwatch.demo.gaps import GAPS, with_gaps
from gapwatch.demo.labels import label_failures
from gapwatch.demo.world import OBJECTS, SIM, SURFACES, Run, draw_scene, run
from gapwatch.statistics.causes.cause_candidates import CONTRACT_SIGNAL
from gapwatch.statistics.causes.failed_episodes import FailedBatch
from gapwatch.statistics.causes.ledger import Ledger
from gapwatch.statistics.causes.sample_ledger import ledger_of_samples
from gapwatch.statistics.causes.shapley import shapley
from gapwatch.statistics.causes.side_sample import SideSample, SuccessBatch
from gapwatch.taxonomy import Taxonomy

TAXONOMY = Taxonomy()
N_SIM, N_TRUTH = 1000, 100_000


@dataclass(frozen=True)
class WorldSide:
    """A run, what people wrote about its failures (None: nothing at all), and whether its contract differs."""

    run: Run
    labels: Sequence[Sequence[str]] | None
    contract_fields_differing: int = 0

    def columns(self) -> dict[str, NDArray[np.float64]]:
        differing = np.full(self.run.scene.n, float(self.contract_fields_differing))
        return {**self.run.signals, CONTRACT_SIGNAL: differing}

    def levels(self) -> dict[str, NDArray[np.str_]]:
        """The conditions of each episode, with numbers binned."""
        q = self.run.quantities
        return {
            "lighting": lighting_of(q.brightness),
            "object": np.array(OBJECTS)[self.run.scene.objects],
            "surface": np.array(SURFACES)[self.run.scene.surfaces],
            "clutter": np.array(["0–2", "3–5", "6–8", "9 or more"])[np.searchsorted([2.5, 5.5, 8.5], q.clutter)],
        }


def lighting_of(brightness: NDArray[np.float64]) -> NDArray[np.str_]:
    return np.array(["dim", "normal", "bright"])[np.searchsorted([0.36, 0.5], brightness)]


def two_sides(
    gaps: Sequence[str], n_real: int, seed: int, *, labelled: bool, n_sim: int = N_SIM
) -> tuple[WorldSide, WorldSide]:
    """Sim and real, drawn independently. Every other seed hands over to a person instead of placing."""
    generator = np.random.default_rng(seed)
    handover = seed % 2 == 0 or any(GAPS[name].handover for name in gaps)
    sides = []
    for world, n in ((SIM, n_sim), (with_gaps(*gaps), n_real)):
        world_run = run(world, draw_scene(n, generator, handover=handover))
        sides.append(WorldSide(world_run, label_failures(world_run, generator) if labelled else None))
    sim, real = sides
    return sim, WorldSide(real.run, real.labels, int("action scale" in gaps))


def ledger_of(sim: WorldSide, real: WorldSide, *, phases: bool = True) -> Ledger:
    """The ledger as the service makes it: a model of failure on both sides, weights by it, sides."""
    return ledger_of_samples(sample_of_side(sim, phases=phases), sample_of_side(real, phases=phases), TAXONOMY)


def sample_of_side(side: WorldSide, *, phases: bool = True) -> SideSample:
    failed, rest = batch_of_side(side, phases=phases), np.flatnonzero(~side.run.failed)
    succeeded = SuccessBatch(
        len(rest),
        {name: values[rest].tolist() for name, values in side.levels().items()},
        {name: values[rest] for name, values in side.columns().items()},
    )
    return SideSample(side.run.scene.n, len(failed), failed, succeeded)


def batch_of_side(side: WorldSide, *, phases: bool = True) -> FailedBatch:
    rows = np.flatnonzero(side.run.failed)
    return FailedBatch(
        np.ones(len(rows)),
        [None] * len(rows),
        [side.labels[row] if side.labels else () for row in rows.tolist()],
        [side.run.phases[phase] if phases else None for phase in side.run.failed_in[rows].tolist()],
        {name: values[rows].tolist() for name, values in side.levels().items()},
        {name: values[rows] for name, values in side.columns().items()},
    )


@lru_cache(maxsize=256)
def true_contributions(gaps: tuple[str, ...], handover: bool) -> Mapping[str, float]:
    """The true cost of each gap's category: Shapley over the gaps, with 100,000 episodes per combination."""
    scene = draw_scene(N_TRUTH, np.random.default_rng(1), handover=handover)

    def failure_rate(switched: int) -> float:
        return float(
            run(with_gaps(*(name for i, name in enumerate(gaps) if switched >> i & 1)), scene).failed.mean()
        )

    if not gaps:
        return {}
    parts = shapley([failure_rate(switched) for switched in range(1 << len(gaps))])
    return {GAPS[name].category: float(part) for name, part in zip(gaps, parts, strict=True)}
