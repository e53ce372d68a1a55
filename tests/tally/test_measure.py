"""Moments and bins of many columns at once are those of each column alone."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tally.made import DAY, HOUR_S, NAMES, packed, row, rows, steady

from gapwatch.statistics.estimates.sketches import (
    bin_index,
    fold,
    moments,
    whole_steps,
)
from gapwatch.tally.measure import measure
from gapwatch.tally.rows import Columns, unpack
from gapwatch.tally.sums import DAY_S
from gapwatch.tally.values import ValueSum

SCOPE = ("real", 1, 2, 3)
ONE = 1 << 80  # the number 1 in steps of 2^−80


def measured(*episodes):
    return measure(Columns(episodes), NAMES)


def alone(values) -> ValueSum:
    """One column by itself, as the statistics define it."""
    sketch, sums = fold(values), moments(values)
    return ValueSum(sums.n, sums.total, sums.total_sq, sketch.zero, dict(sketch.positive), dict(sketch.negative))


def test_a_duration_by_hand():
    found = measured(row(duration_s=3.0), row(duration_s=0.5), row(duration_s=3.0))
    assert found == {
        (SCOPE, DAY, "metric", "success"): {
            "duration_s": ValueSum(3, 13 * ONE // 2, 73 * ONE * ONE // 4, 0, {bin_index(3): 2, bin_index(0.5): 1})
        }
    }


def test_signs_and_zeros_have_bins_of_their_own():
    found = measured(*(row(reward=value) for value in (-2.0, 2.0, 0.0, -0.0, 1e-310, -2.0)))
    [value] = found[SCOPE, DAY, "metric", "success"].values()
    assert (value.zero, value.bins, value.negative) == (3, {bin_index(2): 1}, {bin_index(2): 2})
    assert (value.n, value.total, value.total_sq) == (6, -2 * ONE, 12 * ONE * ONE)


def test_only_what_was_judged_is_measured_and_by_outcome():
    found = measured(
        row(reward=1.0),
        row(reward=2.0, outcome="failure"),
        row(reward=4.0, outcome="aborted"),
        row(reward=8.0, outcome="abandoned"),
    )
    assert {key[3]: named["reward"].total // ONE for key, named in found.items()} == {"success": 1, "failure": 2}


def test_days_and_scopes_stay_apart():
    found = measured(
        row(reward=1.0, hour=DAY + 23 * HOUR_S),
        row(reward=2.0, hour=DAY + DAY_S),
        row(reward=4.0, policy_id=5),
    )
    assert {key[:2]: named["reward"].total // ONE for key, named in found.items()} == {
        (SCOPE, DAY): 1,
        (SCOPE, DAY + DAY_S): 2,
        (("real", 5, 2, 3), DAY): 4,
    }


def test_one_signal_in_two_sets_of_names_is_one_signal():
    found = measured(
        row(signal_names_id=2, signals=packed(5.0)),
        row(signal_names_id=3, signals=packed(7.0, -1.0)),
        row(),
    )
    assert found == {(SCOPE, DAY, "signal", "success"): {"force_n": alone([5.0, 7.0]), "slip_mm": alone([-1.0])}}


def test_a_metric_called_like_a_field_of_the_record_is_not_counted_beside_it():
    found = measured(row(reward=1.0, metric_names_id=4, metrics=packed(30.0, 99.0)))
    assert found == {(SCOPE, DAY, "metric", "success"): {"reward": alone([1.0]), "energy_j": alone([30.0])}}


def test_a_signal_may_be_called_like_a_field():
    names = NAMES._replace(name_sets={2: ("reward",)})
    found = measure(Columns([row(signal_names_id=2, signals=packed(9.0), reward=1.0)]), names)
    assert {key[2]: named["reward"].total // ONE for key, named in found.items()} == {"signal": 9, "metric": 1}


def test_no_numbers_are_no_values():
    assert measured(row(), row(outcome="failure")) == {}


@pytest.mark.parametrize("value", [1e308, -1e308, 5e-324, 2.2250738585072014e-308, 0.1, 2.0**900, 3.8e-9])
def test_numbers_of_every_size_are_summed_exactly(value):
    found = measured(row(reward=value), row(reward=value), row(reward=1.0))
    total = 2 * whole_steps([value])[0] + ONE
    assert found[SCOPE, DAY, "metric", "success"]["reward"].total == total


def numbers_of(episode):
    """Kind, name and value of what one episode measured; a sender's metric called like a field is left out."""
    yield from (("metric", name, getattr(episode, name)) for name in ("duration_s", "reward"))
    for kind in ("signal", "metric"):
        number = getattr(episode, f"{kind}_names_id")
        if number is not None:
            names = NAMES.name_sets[number]
            [values] = unpack([getattr(episode, f"{kind}s")], len(names)).tolist()
            pairs = zip(names, values, strict=True)
            yield from ((kind, name, value) for name, value in pairs if (kind, name) != ("metric", "reward"))


@steady
@given(st.lists(rows, min_size=1, max_size=25))
def test_every_column_is_that_of_its_numbers_alone(episodes):
    expected = defaultdict(list)
    for episode in episodes:
        if episode.outcome in {"success", "failure"}:
            for kind, name, value in numbers_of(episode):
                if value is not None:
                    day = episode.hour // DAY_S * DAY_S
                    expected[episode[1:5], day, kind, episode.outcome, name].append(value)
    found = measured(*episodes)
    assert {(*key, name): value for key, named in found.items() for name, value in named.items()} == {
        key: alone(values) for key, values in expected.items()
    }
