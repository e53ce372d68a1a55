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
from gapwatch.statistics.causes.failed_episodes import FailedBatch
from gapwatch.statistics.causes.label_balance import even_out
from gapwatch.statistics.causes.ledger import Ledger, make_ledger
from gapwatch.statistics.causes.shapley import shapley
from gapwatch.statistics.causes.signal_ranges import CONTRACT_SIGNAL, usual_ranges
from gapwatch.statistics.causes.slices import Counts, slice_drops
from gapwatch.statistics.causes.weighing import ledger_side, weigh
from gapwatch.taxonomy import CATEGORIES, Taxonomy

TAXONOMY = Taxonomy()
N_SIM, N_TRUTH = 1000, 100_000


@dataclass(frozen=True)
class WorldSide:
    """A run, what people wrote about its failures (None: nothing at all), and whether its contract differs."""

    run: Run
    labels: Sequence[Sequence[str]] | None
    contract_fields_differing: int = 0

    def signals(self, rows: NDArray[np.bool_]) -> dict[str, NDArray[np.float64]]:
        """The measured values of some episodes, without missing ones."""
        own = {name: values[rows] for name, values in self.columns().items()}
        return {name: values[np.isfinite(values)] for name, values in own.items()}

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
    """The ledger as the service makes it: usual ranges and credit, suspects of the slices, weights, sides."""
    usual = usual_ranges(
        sim.signals(~sim.run.failed),
        sim_failures=sim.signals(sim.run.failed),
        real_successes=real.signals(~real.run.failed),
        real_failures=real.signals(real.run.failed),
    )
    suspects = {(s.condition, s.level) for s in slice_drops(counts_of(sim, real)) if s.is_suspect}
    in_sim, in_real = (batch_of_side(side, phases=phases) for side in (sim, real))
    of_sim, of_real = (weigh(batch, TAXONOMY, usual, suspects) for batch in (in_sim, in_real))
    of_sim, of_real, _ = even_out(in_sim, of_sim, in_real, of_real)
    return make_ledger(
        ledger_side(sim.run.scene.n, len(in_sim), in_sim, of_sim),
        ledger_side(real.run.scene.n, len(in_real), in_real, of_real),
        CATEGORIES,
    )


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


def counts_of(sim: WorldSide, real: WorldSide) -> dict[tuple[str, str], Counts]:
    """Successes and episodes of both sides at every level of every condition."""
    counts: dict[tuple[str, str], list[int]] = {}
    for offset, side in ((0, sim), (2, real)):
        for name, levels in side.levels().items():
            for level in np.unique(levels).tolist():
                here = levels == level
                cell = counts.setdefault((name, level), [0, 0, 0, 0])
                cell[offset] += int((~side.run.failed[here]).sum())
                cell[offset + 1] += int(here.sum())
    return {key: (cell[0], cell[1], cell[2], cell[3]) for key, cell in counts.items()}


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
