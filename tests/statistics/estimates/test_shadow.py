import pytest

from bench.shadow import run_step_worlds, run_worlds
from gapwatch.statistics.estimates.shadow import (
    ShadowOutcome,
    episodes_that_halve,
    step_rate,
    success_bound,
)


def outcomes(agreed_good, agreed_bad, disagreed):
    return [
        *[ShadowOutcome(True, True)] * agreed_good,
        *[ShadowOutcome(True, False)] * agreed_bad,
        *[ShadowOutcome(False, True)] * disagreed,
    ]


def test_eight_percent_disagreeing_and_ninety_percent_success_among_the_others():
    bound = success_bound(outcomes(828, 92, 80))
    assert (bound.low, bound.high) == pytest.approx((0.828, 0.908))
    assert bound.interval == pytest.approx((0.8034, 0.9244), abs=2e-4)
    assert (bound.n, bound.agreed_and_succeeded, bound.disagreed) == (1000, 828, 80)
    # (0.121 − 0.08) + 0.08 z/√(m + z²) ≤ 0.0605 from m = 61 on.
    width = bound.interval[1] - bound.interval[0]
    z2 = 1.959963984540054**2

    def then(m):
        return width - 0.08 + 0.08 * (z2 / (m + z2)) ** 0.5

    assert then(bound.halved_by) <= width / 2 < then(bound.halved_by - 1)


def test_without_limits_of_counting_twelve_episodes_halve_a_bound():
    assert episodes_that_halve(0.08, 0.08) == 12
    assert episodes_that_halve(0.3, 0.08) is None
    assert episodes_that_halve(0.1, 0.0) is None


def test_what_executed_decides_nothing_where_the_candidate_disagreed():
    good = success_bound([ShadowOutcome(False, True)] * 10)
    bad = success_bound([ShadowOutcome(False, False)] * 10)
    assert good == bad
    assert (good.low, good.high, good.interval) == (0.0, 1.0, (0.0, 1.0))


def test_nothing_is_said_of_nothing():
    assert success_bound([]) is None
    assert step_rate([], []) is None
    assert step_rate([0, 0], [0, 0]) is None


def test_sessions_that_resemble_themselves_widen_the_bound():
    alone = success_bound(outcomes(160, 20, 20))
    sessions = [ShadowOutcome(True, True, f"s{i // 10}") for i in range(160)]
    sessions += [ShadowOutcome(True, False, f"t{i // 10}") for i in range(20)]
    sessions += [ShadowOutcome(False, True, f"u{i // 10}") for i in range(20)]
    together = success_bound(sessions)
    assert (together.low, together.high) == (alone.low, alone.high)
    assert together.interval[0] < alone.interval[0] and together.interval[1] > alone.interval[1]
    assert together.method == "wilson, clustered by session"


def test_a_rate_of_steps_is_known_by_its_episodes():
    spread = step_rate([2] * 50, [100] * 50)
    in_few = step_rate([100] + [0] * 49, [100] * 50)
    assert spread.value == in_few.value == 0.02
    assert spread.interval[1] < 0.025
    # One episode of fifty: what one of fifty is worth.
    assert in_few.interval[1] > 0.1
    assert (spread.episodes, spread.steps, spread.marked) == (50, 5000, 50)


def test_no_marked_step_is_no_proof_that_there_is_none():
    assert step_rate([0] * 59, [1000] * 59).interval == pytest.approx((0, 0.0637), abs=1e-3)
    assert step_rate([5], [100]).interval is None


def test_bounds_cover_the_truth_in_worlds_where_it_is_known():
    found = run_worlds(250, seed=19)
    assert found.covered >= 0.95 * 250
    # And they say something: they are not as wide as everything.
    assert found.mean_width < 0.5


def test_rates_of_steps_cover_the_truth_where_episodes_differ():
    found = run_step_worlds(250, seed=20)
    assert found.covered >= 0.93 * 250
