import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapwatch.statistics.estimates.predictive import (
    PredictionCell,
    best_effective_n,
    predicted_by_cells,
    predicted_mean,
    prediction_powered,
    tuned_weight,
)

steady = settings(deadline=None, derandomize=True, database=None)
# The toy of ppi-python 0.2.3: ten pairs and a hundred further predictions.
REAL = np.array([1, 0, 1, 1, 0, 1, 0, 1, 1, 0], float)
SIM = np.array([1, 0, 1, 1, 1, 1, 0, 1, 1, 1], float)
EXTRA = np.repeat([1.0, 0.0], [75, 25])


def normal_interval(weight):
    value, of_mean, of_correction = prediction_powered(REAL, SIM, EXTRA, weight)
    half = 1.959963984540054 * np.sqrt(of_mean + of_correction)
    return value, value - half, value + half


def test_formula_at_weights_1_tuned_and_0():
    assert normal_interval(1.0) == pytest.approx((0.55, 0.2879578728144891, 0.8120421271855109))
    assert tuned_weight(REAL, SIM, EXTRA) == pytest.approx(0.58366800535)
    tuned = normal_interval(tuned_weight(REAL, SIM, EXTRA))
    assert tuned == pytest.approx((0.5708165997322624, 0.3222686337037766, 0.8193645657607482))
    assert normal_interval(0.0) == pytest.approx((0.6, 0.2963636851484016, 0.9036363148515983))


@pytest.mark.parametrize(("rho", "worth"), [(0.3, 54.8), (0.5, 66.1), (0.7, 95.8), (0.8, 133.1), (0.9, 238.4)])
def test_what_50_pairs_and_2000_sim_episodes_are_worth_at_most(rho, worth):
    assert best_effective_n(50, 2000, rho) == pytest.approx(worth, abs=0.06)


def draw(random, n, p, agreement, extra=1000, otherwise="opposite"):
    """Real outcomes, sim outcomes that agree with them to that share, and further sim outcomes."""
    real = random.random(n) < p
    other = ~real if otherwise == "opposite" else random.random(n) < p
    sim = np.where(random.random(n) < agreement, real, other)
    rate = p * agreement + (1 - p) * (1 - agreement) if otherwise == "opposite" else p
    return real.astype(float), sim.astype(float), (random.random(extra) < rate).astype(float)


@pytest.mark.parametrize(
    ("n", "p", "weight_1", "tuned"),
    [
        (10, 0.8, 0.966, 0.876),
        (10, 0.95, 0.958, 0.398),
        (20, 0.8, 0.967, 0.900),
        (20, 0.95, 0.966, 0.608),
        (50, 0.8, 0.942, 0.912),
        (50, 0.95, 0.973, 0.879),
        (100, 0.8, 0.942, 0.936),
        (100, 0.95, 0.969, 0.891),
    ],
)
def test_a_tuned_weight_misses_too_often_where_weight_1_does_not(n, p, weight_1, tuned):
    """Why the weight is 1 below a hundred pairs: agreement 0.7, otherwise drawn anew."""
    random, held = np.random.default_rng(n), []
    for _ in range(500):
        sample = draw(random, n, p, 0.7, otherwise="anew")
        each = []
        for weight in (1.0, tuned_weight(*sample)):
            value, of_mean, of_correction = prediction_powered(*sample, weight)
            each.append(abs(value - p) <= 1.96 * np.sqrt(of_mean + of_correction))
        held.append(each)
    assert np.mean(held, axis=0) == pytest.approx((weight_1, tuned), abs=0.05)


def coverage(random, n, p, agreement, runs=400):
    """The shares of answers, and of the answers' intervals that hold p."""
    answers = [predicted_mean(*draw(random, n, p, agreement)) for _ in range(runs)]
    given = [answer for answer in answers if answer.value is not None]
    return len(given) / runs, np.mean([answer.low <= p <= answer.high for answer in given])


@pytest.mark.parametrize("n", [20, 50, 100, 200])
@pytest.mark.parametrize(("p", "agreement"), [(0.5, 0.85), (0.5, 0.95), (0.8, 0.95), (0.8, 0.99)])
def test_predicted_rates_hold_the_truth(n, p, agreement):
    answered, held = coverage(np.random.default_rng(n), n, p, agreement)
    assert answered > 0.3
    assert held > 0.925


def test_pairs_that_all_agree_do_not_make_certain():
    """The normal interval covers three quarters here, because a third of the samples show no disagreement at all."""
    random, normal, ours = np.random.default_rng(1), [], []
    for _ in range(400):
        sample = draw(random, 20, 0.8, 0.95)
        value, of_mean, of_correction = prediction_powered(*sample, 1.0)
        normal.append(abs(value - 0.8) <= 1.96 * np.sqrt(of_mean + of_correction))
        answer = predicted_mean(*sample)
        ours.append(answer.value is None or answer.low <= 0.8 <= answer.high)
    assert np.mean(normal) < 0.85
    assert np.mean(ours) > 0.95


def test_a_good_simulator_is_worth_real_episodes():
    answer = predicted_mean(*draw(np.random.default_rng(2), 200, 0.5, 0.95, 5000))
    assert 0.85 < answer.rho < 0.95
    assert 2.5 * answer.n < answer.effective_n < best_effective_n(answer.n, answer.extra, answer.rho) * 1.05


@pytest.mark.parametrize(("n", "tuned"), [(99, False), (100, True)])
def test_the_weight_is_tuned_from_a_hundred_pairs_on(n, tuned):
    real, sim, extra = draw(np.random.default_rng(7), 100, 0.5, 0.8)
    assert predicted_mean(real[:n], sim[:n], extra).weight == (tuned_weight(real, sim, extra) if tuned else 1.0)


def test_a_metric_that_is_no_rate():
    random, held, worth = np.random.default_rng(3), [], []
    for _ in range(500):
        state = random.normal(0, 1, 1030)
        sim = state + random.normal(0, 0.3, 1030) + 0.5
        real = state[:30] + random.normal(0, 0.3, 30)
        answer = predicted_mean(real, sim[:30], sim[30:])
        held.append(answer.low <= 0 <= answer.high)
        worth.append(answer.effective_n)
    assert np.mean(worth) > 4 * 30
    assert 0.92 < np.mean(held) < 0.98


def test_refusals_are_results_with_a_reason():
    random = np.random.default_rng(4)
    assert predicted_mean(REAL[:9], SIM[:9], EXTRA).reason == "9 pairs; ten are needed"
    assert predicted_mean(REAL, SIM, []).reason == "no sim episodes beyond the pairs"
    assert predicted_mean(np.ones(20), SIM.repeat(2), EXTRA).reason == "real or sim outcomes do not vary"
    unrelated = predicted_mean(random.random(300) < 0.5, random.random(300) < 0.5, EXTRA)
    assert unrelated.value is None
    assert unrelated.reason.startswith("ρ is ")
    # Weight 1 on ten pairs makes the toy's interval wider than that of its ten real episodes.
    toy = predicted_mean(REAL, SIM, EXTRA)
    assert (toy.value, toy.weight, toy.reason) == (None, 1.0, "no gain over the real episodes alone")
    assert toy.effective_n < toy.n


@pytest.mark.parametrize("n", [20, 50, 300])
@pytest.mark.parametrize(
    ("sim", "real"),
    [((0.95, 0.2), (0.9, 0.15)), ((0.95, 0.7, 0.3), (0.8, 0.5, 0.2)), ((0.99, 0.5), (0.97, 0.4))],
)
def test_cells_predict_unpaired_episodes(n, sim, real):
    random, held = np.random.default_rng(n), []
    share = 1 / len(sim)
    for _ in range(400):
        real_n = random.multinomial(n, [share] * len(sim))
        numbers = zip(random.binomial(300, sim), random.binomial(real_n, real), real_n, strict=True)
        answer = predicted_by_cells([PredictionCell(int(s), 300, int(r), int(m), share) for s, r, m in numbers])
        if answer.value is not None:
            held.append(answer.low <= np.mean(real) <= answer.high)
            assert answer.effective_n > n
    assert len(held) > 280
    assert np.mean(held) > 0.925


def test_cells_correct_an_unlucky_mix():
    """Half the target is hard, but the real episodes happened to be mostly easy: 50 of 60 instead of 30."""
    answer = predicted_by_cells([PredictionCell(285, 300, 45, 50, 0.5), PredictionCell(60, 300, 1, 10, 0.5)])
    assert answer.value == pytest.approx(46 / 60 + (0.5 - 50 / 60) * 0.95 + (0.5 - 10 / 60) * 0.2)


def test_sim_rates_from_few_episodes_are_less_certain_where_they_must_shift_the_mix():
    few, many = (
        predicted_by_cells(
            [PredictionCell(19 * m, 20 * m, 45, 50, 0.5), PredictionCell(4 * m, 20 * m, 1, 10, 0.5)]
        )
        for m in (1, 100)
    )
    assert few.effective_n < 60 < many.effective_n
    assert few.reason == "no gain over the real episodes alone"


def test_cells_that_sim_never_saw_are_refused():
    cells = [PredictionCell(285, 300, 45, 50, 0.5), PredictionCell(0, 0, 3, 10, 0.5)]
    assert predicted_by_cells(cells).reason == "real episodes in cells that sim never saw"
    assert predicted_by_cells([]).reason == "0 real episodes; ten are needed"


outcomes = st.lists(st.tuples(*[st.sampled_from([0.0, 1.0])] * 3), max_size=40)


@steady
@given(outcomes)
def test_any_outcomes_get_an_interval_or_a_reason(triples):
    real, sim, extra = zip(*triples, strict=True) if triples else ((), (), ())
    answer = predicted_mean(real, sim, extra)
    assert (answer.value is None) == (answer.reason is not None)
    if answer.value is not None:
        assert 0 <= answer.low <= answer.value <= answer.high <= 1


cells = st.integers(0, 60).flatmap(
    lambda n: st.tuples(st.integers(0, 40), st.just(40), st.integers(0, n), st.just(n), st.floats(0.1, 1))
)


@steady
@given(st.lists(cells, min_size=1, max_size=6))
def test_any_cells_get_an_interval_or_a_reason(rows):
    total = sum(row[4] for row in rows)
    answer = predicted_by_cells([PredictionCell(*row[:4], row[4] / total) for row in rows])
    assert (answer.value is None) == (answer.reason is not None)
    if answer.value is not None:
        assert 0 <= answer.low <= answer.value <= answer.high <= 1
