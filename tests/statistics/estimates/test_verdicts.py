import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from gapwatch.statistics.estimates.drops import Side, rate_drop
from gapwatch.statistics.estimates.verdicts import (
    episodes_for_precision,
    episodes_needed,
    verdict,
)

steady = settings(deadline=None, derandomize=True, database=None)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.05, 0.12, "large"),
        (0.184, 0.269, "large"),
        (0.0499, 0.12, "small"),
        (0.039, 0.081, "small"),
        (0.001, 0.02, "small"),
        (0.0, 0.049, "none"),
        (-0.005, 0.019, "none"),
        (-0.30, -0.10, "none"),
        (-0.034, 0.055, "too few episodes"),
        (0.0, 0.05, "too few episodes"),
        (-1.0, 1.0, "too few episodes"),
    ],
)
def test_the_word_follows_the_interval(low, high, word):
    assert verdict(low, high, (low + high) / 2) == word


def test_without_an_interval_there_are_too_few_episodes():
    assert verdict(None, None, 0.3) == "too few episodes"
    assert verdict(-1.0, 1.0, None) == "too few episodes"


def test_another_metric_brings_its_own_smallest_that_matters():
    assert verdict(1.5, 4.0, 2.5, smallest_that_matters=1.0) == "large"
    assert verdict(-0.5, 0.9, 0.2, smallest_that_matters=1.0) == "none"


def settled(sim, rate, n):
    """The exact probability that n real episodes of this rate settle the verdict; the interval falls with k."""

    def first(holds):
        few, many = -1, n + 1
        while many - few > 1:
            middle = (few + many) // 2
            few, many = (few, middle) if holds(rate_drop(sim, Side(middle, n))) else (middle, many)
        return many

    no_certain_loss, none = first(lambda drop: drop.low <= 0), first(lambda drop: drop.high < 0.05)
    return binom.cdf(no_certain_loss - 1, n, rate) + binom.sf(max(none, no_certain_loss) - 1, n, rate)


@pytest.mark.parametrize(
    ("sim", "real"),
    [
        (Side(1800, 2000), Side(9, 10)),
        (Side(1800, 2000), Side(16, 20)),
        (Side(1900, 2000), Side(93, 100)),
        (Side(1900, 2000), Side(19, 20)),
        (Side(4500, 5000), Side(43, 50)),
        (Side(1000, 2000), Side(9, 20)),
        (Side(1000, 2000), Side(4, 10)),
        (Side(1980, 2000), Side(49, 50)),
        (Side(720, 800), Side(22, 25)),
        (Side(1600, 2000), Side(41, 50)),
        (Side(4750, 5000), Side(37, 40)),
        (Side(180, 200), Side(8, 10)),
    ],
)
def test_episodes_needed_are_right_within_20_percent(sim, real):
    """With a fifth fewer the verdict is settled in less than 80 % of cases, with a fifth more in more."""
    total = real.n + episodes_needed(sim, real).more
    rate = real.successes / real.n
    assert total > real.n
    assert settled(sim, rate, round(0.8 * total)) < 0.8 < settled(sim, rate, round(1.2 * total))


def test_a_settled_verdict_needs_nothing():
    assert episodes_needed(Side(1900, 2000), Side(350, 500)).more == 0


def test_no_number_of_real_episodes_makes_up_for_a_small_simulation():
    needed = episodes_needed(Side(18, 20), Side(9, 10))
    assert needed.more is None
    assert "sim has too few" in needed.reason
    assert episodes_for_precision(Side(18, 20), Side(9, 10), 0.01).more is None


def test_without_a_real_episode_there_is_nothing_to_plan_with():
    assert episodes_needed(Side(18, 20), Side(0, 0)).reason == "no rate to plan with yet"
    assert episodes_for_precision(Side(0, 0), Side(1, 2), 0.1).reason == "no rate to plan with yet"


def test_sessions_that_resemble_themselves_need_more_episodes():
    sessions = ((10, 10), (10, 10), (4, 10), (10, 10), (6, 10), (10, 10))
    alone, together = Side(50, 60), Side(50, 60, sessions)
    sim = Side(1740, 2000)
    assert episodes_needed(sim, together).more > 2 * episodes_needed(sim, alone).more


@pytest.mark.parametrize("half_width", [0.1, 0.05, 0.03, 0.02])
def test_episodes_for_precision_give_just_that_precision(half_width):
    sim, real = Side(4500, 5000), Side(8, 10)
    total = real.n + episodes_for_precision(sim, real, half_width).more
    drop = rate_drop(sim, Side(round(0.8 * total), total))
    assert drop.high - drop.low == pytest.approx(2 * half_width, rel=0.02)
    textbook = 1.96**2 * 0.16 / (half_width**2 - 1.96**2 * 0.09 / 5000)
    assert total == pytest.approx(textbook, rel=0.05)


def test_a_precision_that_is_there_needs_nothing():
    assert episodes_for_precision(Side(900, 1000), Side(800, 1000), 0.1).more == 0


counts = st.integers(0, 400).flatmap(lambda n: st.builds(Side, st.integers(0, n), st.just(n)))


@steady
@given(counts, counts)
def test_any_counts_get_a_number_or_a_reason(sim, real):
    for needed in (episodes_needed(sim, real), episodes_for_precision(sim, real, 0.05)):
        assert (needed.more is None) == (needed.reason is not None)
        assert needed.more is None or needed.more >= 0


@steady
@given(counts, counts)
def test_more_is_asked_exactly_while_the_verdict_is_open(sim, real):
    drop = rate_drop(sim, real)
    word = verdict(drop.low, drop.high, drop.value)
    assert (episodes_needed(sim, real).more == 0) == (word != "too few episodes")
