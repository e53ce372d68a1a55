"""From the samples of both sides to the ledger: the path that the service and the benchmarks share."""

from __future__ import annotations

from gapwatch.statistics.causes.ledger import Ledger, make_ledger
from gapwatch.statistics.causes.responsibility import find_responsibility, weigh_failures
from gapwatch.statistics.causes.side_sample import SideSample
from gapwatch.statistics.causes.weighing import ledger_side
from gapwatch.statistics.causes.weight_uncertainty import weight_uncertainties
from gapwatch.taxonomy import CATEGORIES, Taxonomy


def ledger_of_samples(sim: SideSample, real: SideSample, taxonomy: Taxonomy) -> Ledger:
    """Fit a model of failure, weigh the failures of both sides by it, and add them up."""
    basis, fitted = find_responsibility(sim, real, taxonomy)
    of_sim = weigh_failures(basis, sim.failed, "sim")
    of_real = weigh_failures(basis, real.failed, "real")
    names = tuple(dict.fromkeys([*of_sim.names[:-1], *of_real.names]))
    return make_ledger(
        ledger_side(sim.n, sim.failures, sim.failed, of_sim),
        ledger_side(real.n, real.failures, real.failed, of_real),
        CATEGORIES,
        uncertainties=weight_uncertainties(basis, fitted, sim, real, names),
    )
