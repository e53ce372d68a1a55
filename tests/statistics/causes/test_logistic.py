"""The home-made fit against statsmodels, and score tests against refits."""

import numpy as np
import pytest
import statsmodels.api as sm

from gapwatch.statistics.causes.logistic import fit_logistic, score_tests


def data(seed=1, n=600):
    chance = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), chance.standard_normal((n, 3))])
    y = (chance.random(n) < 1 / (1 + np.exp(-(x @ [-1.0, 0.8, 0.0, -0.5])))).astype(float)
    return x, y


def test_the_fit_is_that_of_statsmodels():
    x, y = data()
    offset = np.linspace(-0.5, 0.5, len(y))
    found = fit_logistic(x, y, offset, np.full(4, 1e-9))
    known = sm.GLM(y, x, family=sm.families.Binomial(), offset=offset).fit()
    assert found.place == pytest.approx(known.params, abs=1e-4)
    assert found.log_likelihood == pytest.approx(known.llf, abs=1e-6)


def test_a_score_test_is_close_to_what_a_refit_says():
    x, y = data(2)
    less = x[:, [0, 1]]
    fit = fit_logistic(less, y, np.zeros(len(y)), np.full(2, 1e-9))
    z = score_tests(fit, less, y, x[:, 2:])
    known = [sm.GLM(y, np.column_stack([less, x[:, j]]), family=sm.families.Binomial()).fit() for j in (2, 3)]
    assert z == pytest.approx([float(one.tvalues[-1]) for one in known], abs=0.3)


def test_what_is_in_the_fit_already_adds_nothing():
    x, y = data(3)
    fit = fit_logistic(x, y, np.zeros(len(y)), np.full(4, 1e-9))
    assert score_tests(fit, x, y, 2 * x[:, [1]])[0] == 0


def test_a_column_that_splits_all_rows_stays_finite():
    x = np.column_stack([np.ones(40), np.repeat([0.0, 1.0], 20)])
    fit = fit_logistic(x, x[:, 1], np.zeros(40), np.array([1e-6, 1 / 16]))
    assert np.isfinite(fit.place).all()
    assert 4 < fit.place[1] < 12
