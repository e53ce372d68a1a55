"""Evidence that real differs from sim, built up block by block and valid however often it is checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log
from typing import Literal

Alternative = Literal["real worse", "real better", "different"]
# Beta priors (successes, failures) of the plug-in estimates; where there is a direction they lean that way.
BETTER_PRIOR = (2.0, 1.0)
WORSE_PRIOR = (1.0, 2.0)
EVEN_PRIOR = (0.18, 0.18)


@dataclass(frozen=True)
class EProcess:
    """The whole state: a worker may store these numbers and continue from them."""

    alternative: Alternative
    log_e: float = 0.0
    highest_log_e: float = 0.0
    sim_successes: float = 0.0
    sim_n: float = 0.0
    real_successes: float = 0.0
    real_n: float = 0.0
    blocks: int = 0

    @property
    def p_value(self) -> float:
        """Anytime-valid: min over all looks so far of 1/E."""
        return min(1.0, exp(-self.highest_log_e))

    def decided(self, alpha: float = 0.05) -> bool:
        """E reached 1/alpha at some look. The chance of that without a difference is at most alpha, for ever."""
        return self.highest_log_e >= log(1 / alpha)

    @property
    def estimates(self) -> tuple[float, float]:
        """Plug-in rates of sim and real from the blocks so far."""
        sim_prior, real_prior = {
            "real worse": (BETTER_PRIOR, WORSE_PRIOR),
            "real better": (WORSE_PRIOR, BETTER_PRIOR),
            "different": (EVEN_PRIOR, EVEN_PRIOR),
        }[self.alternative]
        sim = (sim_prior[0] + self.sim_successes) / (sum(sim_prior) + self.sim_n)
        return sim, (real_prior[0] + self.real_successes) / (sum(real_prior) + self.real_n)


def add_block(
    state: EProcess, *, sim_successes: float, sim_n: float, real_successes: float, real_n: float
) -> EProcess:
    """The state after one more block of `sim_n` and `real_n` attempts.

    Formula: ln E grows by Σ_s ln θ_s(x) + Σ_r ln θ_r(x) − Σ ln θ₀(x), with θ(1) = θ and θ(0) = 1 − θ; θ_s, θ_r
    are the plug-in rates from earlier blocks only and θ₀ = (n_s θ_s + n_r θ_r)/(n_s + n_r). With a direction, a
    block counts only if the plug-ins lie on that side; the null is then "not worse" instead of "equal".
    Source: Turner & Grünwald 2023; the directed priors Beta(2, 1) and Beta(1, 2) give the stopping times of the
    TRI data, see the test. Assumes attempts that are independent given the past, and block sizes fixed before
    their outcomes are seen; sizes may differ from block to block and side to side (5 sim : 1 real).
    Where attempts come in sessions false alarms rise with their likeness (22 % at ICC 0.3): give session means
    instead, `successes` the sum of the means and `n` the number of sessions. Any outcome between 0 and 1 keeps the
    promise, because E, convex in the outcome, is on average at most that of a coin of the same mean.
    Smallest n: one attempt on each side; a block with only one side updates the estimates and adds no evidence.
    """
    sim, real = state.estimates
    wrong_side = {"real worse": sim <= real, "real better": sim >= real, "different": False}[state.alternative]
    growth = 0.0
    if sim_n and real_n and not wrong_side:
        common = (sim_n * sim + real_n * real) / (sim_n + real_n)
        growth = sim_successes * log(sim / common) + (sim_n - sim_successes) * log((1 - sim) / (1 - common))
        growth += real_successes * log(real / common) + (real_n - real_successes) * log((1 - real) / (1 - common))
    log_e = state.log_e + growth
    return replace(
        state,
        log_e=log_e,
        highest_log_e=max(state.highest_log_e, log_e),
        sim_successes=state.sim_successes + sim_successes,
        sim_n=state.sim_n + sim_n,
        real_successes=state.real_successes + real_successes,
        real_n=state.real_n + real_n,
        blocks=state.blocks + 1,
    )
