"""A signal's distribution against its own past: no shape assumed, no promise broken by looking."""

import json
import time
from dataclasses import asdict

import numpy as np
import pytest

from gapwatch.statistics.change.drift_shape import (
    ShapeState,
    ShapeWatch,
    declare_shape,
    shape_strength,
    update_shape,
    update_shape_block,
)

SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "with ties": lambda rng, n: rng.exponential(size=n).round(1),
    "heavy tails": lambda rng, n: rng.standard_t(2, size=n),
    "two values": lambda rng, n: (rng.random(n) < 0.3).astype(float),
}


def first_breach(values, watch=ShapeWatch()):  # noqa: B008 - frozen
    crossings = update_shape(watch, ShapeState(), np.asarray(values, dtype=float).tolist())
    return next((crossing for crossing in crossings if crossing.kind == "breach"), None)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_thousand_unchanged_signals_rarely_alarm_whatever_their_shape(shape):
    """250 of each of four shapes, 600 looks each after the reference."""
    rng = np.random.default_rng(1)
    alarmed = sum(first_breach(SHAPES[shape](rng, 800)) is not None for _ in range(250))
    assert alarmed / 250 <= 0.065


def test_a_shift_of_one_deviation_is_found_and_dated():
    rng = np.random.default_rng(2)
    found = [first_breach([*rng.normal(size=300), *rng.normal(1, 1, size=100)]) for _ in range(100)]
    assert np.mean([f is not None and f.number >= 300 for f in found]) >= 0.95
    assert abs(np.median([f.change for f in found if f]) - 300) <= 10
    assert all(f.facts["since"]["direction"] == "higher" for f in found if f and f.number >= 300)


def test_a_change_of_spread_alone_is_found():
    rng = np.random.default_rng(3)
    found = [first_breach([*rng.normal(size=300), *rng.normal(0, 3, size=400)]) for _ in range(50)]
    assert np.mean([f is not None for f in found]) >= 0.9


def test_only_the_direction_that_matters_alarms():
    rng = np.random.default_rng(4)
    better, worse = (
        [*rng.normal(size=300), *rng.normal(2, 1, 200)],
        [*rng.normal(size=300), *rng.normal(-2, 1, 200)],
    )
    assert first_breach(better, ShapeWatch(worse="lower")) is None
    assert first_breach(worse, ShapeWatch(worse="lower")).facts["since"]["direction"] == "lower"


def test_a_signal_that_comes_back_recovers_and_one_that_does_not_does_not():
    rng = np.random.default_rng(5)
    values = [*rng.normal(size=300), *rng.normal(2, 1, 100), *rng.normal(size=300)]
    kinds = [c.kind for c in update_shape(ShapeWatch(), ShapeState(), values)]
    assert kinds == ["breach", "recovery"]
    values = [*rng.normal(size=300), *rng.normal(2, 1, 1000)]
    assert [c.kind for c in update_shape(ShapeWatch(), ShapeState(), values)] == ["breach"]


def test_a_series_can_be_declared_below_its_own_threshold_and_starts_anew():
    rng = np.random.default_rng(6)
    state = ShapeState()
    update_shape(ShapeWatch(), state, [*rng.normal(size=250), *rng.normal(1, 1, 20)])
    strength = shape_strength(state)
    assert 1 < strength < 10_000
    alarm = declare_shape(ShapeWatch(), state, 3, 50.0)
    assert (alarm.index, alarm.number, alarm.value, alarm.threshold) == (3, 269, strength, 50.0)
    assert state.alarmed
    assert shape_strength(state) == 0


def test_batches_and_stored_state_give_the_same_to_the_bit():
    rng = np.random.default_rng(7)
    values = [*rng.normal(size=300), *rng.normal(2, 1, 100), *rng.normal(size=300)]
    whole, state, found = ShapeState(), ShapeState(), []
    expected = update_shape(ShapeWatch(), whole, values)
    for at in range(0, len(values), 41):
        state = ShapeState.load(json.loads(json.dumps(asdict(state))))
        found += update_shape(ShapeWatch(), state, values[at : at + 41])
    assert [(c.kind, c.number, c.value) for c in found] == [(c.kind, c.number, c.value) for c in expected]
    assert asdict(state) == asdict(whole)


def test_the_state_holds_no_values_once_the_reference_is_learned():
    state = ShapeState()
    update_shape(ShapeWatch(), state, np.random.default_rng(8).normal(size=200).tolist())
    assert state.values == []
    assert len(json.dumps(asdict(state))) < 3000


@pytest.mark.parametrize("shape", SHAPES)
def test_whole_blocks_give_what_single_values_give(shape):
    rng = np.random.default_rng(9)
    values = [*SHAPES[shape](rng, 330), *(SHAPES[shape](rng, 90) + 0.3)]
    one, block = ShapeState(), ShapeState()
    update_shape(ShapeWatch(arl=1e300), one, values)
    for at in range(0, len(values), 30):
        assert update_shape_block(ShapeWatch(), block, values[at : at + 30]) == []
    assert block.n == one.n
    assert block.strength == pytest.approx(one.strength)
    assert block.best == pytest.approx(one.best)
    assert shape_strength(block) == pytest.approx(shape_strength(one))
    agreeing = [a == b for a, b, best in zip(block.began, one.began, one.best, strict=True) if best > 1]
    assert all(agreeing)


def test_a_block_series_that_was_declared_recovers_when_nothing_is_suspected_any_more():
    rng = np.random.default_rng(10)
    state = ShapeState()
    update_shape_block(ShapeWatch(), state, rng.normal(size=200))
    update_shape_block(ShapeWatch(), state, rng.normal(2, 1, size=40))
    declare_shape(ShapeWatch(), state, 0, 10.0)
    assert update_shape_block(ShapeWatch(), state, rng.normal(2, 1, size=60)) == []
    assert state.alarmed
    found = [c.kind for _ in range(10) for c in update_shape_block(ShapeWatch(), state, rng.normal(size=20))]
    assert found == ["recovery"]


def test_two_hundred_thousand_values_a_second_in_blocks():
    values = np.random.default_rng(11).normal(size=40_000).tolist()
    best = 0.0
    for _ in range(5):
        state, started = ShapeState(), time.process_time()
        for at in range(0, len(values), 20):
            update_shape_block(ShapeWatch(), state, values[at : at + 20])
        best = max(best, len(values) / (time.process_time() - started))
    assert best >= 200_000


@pytest.mark.parametrize("at", [100, 150])
def test_a_change_within_the_reference_is_dated_there(at):
    rng = np.random.default_rng(7)
    found = [first_breach([*rng.normal(size=at), *rng.normal(2, 1, size=400)]) for _ in range(30)]
    assert all(found)
    assert np.median([abs(f.change - at) for f in found]) <= 10


def test_days_that_differ_are_worth_less_and_a_slow_change_ends_slowly():
    generator = np.random.default_rng(5)
    days = np.repeat(np.arange(20), 100)
    alarms = {False: 0, True: 0}
    for _ in range(12):
        values = (generator.normal(size=20) * 0.4)[days] + generator.normal(size=2000)
        for with_days in alarms:
            found = update_shape(
                ShapeWatch("lower"), ShapeState(), values.tolist(), days.tolist() if with_days else ()
            )
            alarms[with_days] += any(crossing.kind == "breach" for crossing in found)
    assert alarms[True] <= 3
    assert alarms[False] >= 8
    # A small fall that shows after some hundred episodes is not over after sixty without suspicion.
    values = [generator.normal(size=400), generator.normal(-0.35, 1, size=600), generator.normal(size=1500)]
    watch = ShapeWatch("lower", learn=400, clear_episodes=60)
    breach, recovery, *_ = update_shape(watch, ShapeState(), np.concatenate(values).tolist())
    assert recovery.number - breach.number >= breach.facts["since"]["n"] > 60
