"""Over-dispersion between runs and days, against Pearson's χ² as others compute it, and strata that differ."""

import json

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import chi2_contingency

from gapwatch.statistics.change.dispersion import Spread, pearson_dispersion
from gapwatch.statistics.change.drift import LevelState
from gapwatch.statistics.change.drift_against_sim import SimState
from gapwatch.statistics.change.strata import Circumstance, KnownStrata
from gapwatch.statistics.estimates.rates import SessionSums


def fed(outcomes_by_day):
    spread = Spread()
    for day, outcomes in enumerate(outcomes_by_day):
        for y in outcomes:
            spread.add(float(y), day, is_calm=True)
    return spread


def days(rng, rates, size=100):
    return [rng.random(size) < rate for rate in rates]


def test_the_dispersion_is_pearsons_as_statsmodels_and_scipy_have_it():
    rng = np.random.default_rng(1)
    n = rng.integers(20, 120, size=12)
    k = rng.binomial(n, rng.uniform(0.6, 0.95, size=12))
    sums = SessionSums()
    for successes, attempts in zip(k, n, strict=True):
        sums.add(float(successes), int(attempts))
    model = sm.GLM(np.column_stack([k, n - k]), np.ones((12, 1)), family=sm.families.Binomial()).fit()
    assert pearson_dispersion(sums) == pytest.approx(model.pearson_chi2)
    assert pearson_dispersion(sums) == pytest.approx(chi2_contingency([k, n - k], correction=False).statistic)


def test_days_that_differ_are_noticed_and_equal_ones_are_not():
    rng = np.random.default_rng(2)
    assert np.median([fed(days(rng, [0.87] * 20)).effect for _ in range(20)]) < 1.15
    differing = [fed(days(rng, rng.choice([0.75, 0.95], size=20))) for _ in range(20)]
    assert np.median([spread.effect for spread in differing]) > 3
    assert all(spread.clusters is not None and spread.clusters[0] == "days" for spread in differing)


def test_runs_within_a_day_are_noticed_too():
    rng = np.random.default_rng(3)
    outcomes = np.concatenate([rng.random(10) < rng.beta(8.1, 0.9) for _ in range(150)])
    assert fed([outcomes]).effect > 1.3


def test_what_is_suspected_is_not_learned_from():
    spread = fed([np.ones(200)])
    before = spread.effect
    for _ in range(200):
        spread.add(0.0, 0, is_calm=False)
    assert spread.effect == before


def test_what_older_versions_stored_is_loaded_and_the_new_part_begins_anew():
    """Both kinds of state, without the fields that came later; and with them, through JSON."""
    level = LevelState(n=300, learned_n=300, learned_total=270.0, limit=0.85)
    from gapwatch.watching.detectors import LevelDetector

    dumped = json.loads(json.dumps(LevelDetector.dump(_holding(level))))
    assert LevelState.load(dumped) == level
    old = {name: value for name, value in dumped.items() if name not in ("spread", "strata")}
    assert LevelState.load(old) == level
    sim = json.loads(json.dumps(SimState(n=10).dump()))
    assert SimState.load({name: value for name, value in sim.items() if name != "spread"}) == SimState(n=10)


def _holding(state):
    from types import SimpleNamespace

    return SimpleNamespace(state=state)


def test_a_stratum_is_expected_to_differ_only_where_it_does_for_certain():
    rng = np.random.default_rng(4)
    equal, unequal = KnownStrata(), KnownStrata()
    for number in range(400):
        robot = f"r{number % 2}"
        for strata, rate in ((equal, 0.9), (unequal, 0.95 if robot == "r0" else 0.75)):
            strata.learn((robot, None), float(rng.random() < rate), None, 1.0, is_complete=False)
    assert equal.shift(("r0", None)) == 0
    assert unequal.shift(("r0", None)) == pytest.approx(0.1, abs=0.05)
    assert unequal.shift(("r1", None)) == pytest.approx(-0.1, abs=0.05)
    assert unequal.shift(("new", None)) == 0
    assert unequal.robot_shift(Circumstance(0, ("new", None)), 0.85) is None
