"""Streaming summaries against the exact ones of all values."""

import math
import uuid

import numpy as np
import pytest
from gapwatch_client.ids import id_of, new_id
from gapwatch_client.summaries import Summary
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=300))
def test_peak_rms_and_mean_are_exact_and_p95_within_a_per_cent(values):
    summary = Summary()
    for value in values:
        summary.add(value)
    found = summary.signals("x")
    magnitudes = np.sort(np.abs(values))
    exact = magnitudes[math.ceil(0.95 * len(values)) - 1]
    assert found["x_peak"] == magnitudes[-1]
    assert found["x_p95"] == pytest.approx(exact, rel=0.0101, abs=1e-12)
    assert found["x_rms"] == pytest.approx(math.sqrt(np.mean(np.square(values))), rel=1e-9, abs=1e-150)
    assert found["x_mean"] == pytest.approx(np.mean(values), rel=1e-6, abs=1e-6)


def test_what_is_no_finite_number_is_counted_and_left_out():
    summary = Summary()
    for value in (math.nan, math.inf, -math.inf):
        summary.add(value)
    assert (summary.refused, summary.signals("x")) == (3, {})


def test_memory_grows_with_the_decades_of_the_values_not_with_their_number():
    summary = Summary()
    for value in np.random.default_rng(7).lognormal(0, 2, 100_000):
        summary.add(value)
    assert len(summary._bins) < 1200


def test_ids_are_of_version_7_sort_by_time_and_are_unique():
    ids = [new_id() for _ in range(10_000)]
    assert len(set(ids)) == len(ids)
    assert {uuid.UUID(identity).version for identity in ids} == {7}
    assert {uuid.UUID(identity).variant for identity in ids} == {uuid.RFC_4122}
    milliseconds = [uuid.UUID(identity).int >> 80 for identity in ids]
    assert milliseconds == sorted(milliseconds)


def test_ids_of_imports_depend_on_every_part():
    assert id_of("a", 1) == id_of("a", 1)
    assert len({id_of("a", 1), id_of("a", 2), id_of("b", 1)}) == 3
