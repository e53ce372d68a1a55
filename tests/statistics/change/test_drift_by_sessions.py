"""Bets on parts of sessions: their formula, their unit, how sessions are cut, and that state is all they need."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from gapwatch.statistics.change.drift import (
    BETS,
    LevelState,
    LevelWatch,
    level_strength,
    update_level,
)
from gapwatch.statistics.change.drift_against_sim import (
    SimState,
    SimWatch,
    update_against_sim,
)
from gapwatch.statistics.change.drift_by_sessions import (
    FIRST_SIZE,
    SessionPart,
    part_size,
    update_against_sim_by_sessions,
    update_level_by_sessions,
)
from gapwatch.statistics.estimates.rates import SessionSums, clustered_rate


def whole(means, n=10):
    """Sessions of n that are one part each."""
    return [SessionPart(float(mean), n, ended=(float(mean) * n, n)) for mean in means]


def summed(pairs):
    sums = SessionSums()
    for total, n in pairs:
        sums.add(total, n)
    return sums


def test_the_bet_on_a_part_counts_its_episodes():
    state = LevelState()
    update_level_by_sessions(LevelWatch(limit=0.8), state, [SessionPart(0.5, 10), SessionPart(0.9, 4)])
    for bet, strength in zip(BETS, state.strength, strict=True):
        first = (1 + bet * (0.8 - 0.5) / 0.2) * (0 + 10)
        assert strength == pytest.approx((1 + bet * (0.8 - 0.9) / 0.2) * (first + 4))
    assert (state.n, state.total) == (14, pytest.approx(8.6))


def test_parts_of_one_episode_are_bets_on_episodes():
    values = [float(x) for x in np.random.default_rng(1).random(300) < 0.7]
    single, parts = LevelState(), LevelState()
    watch = LevelWatch(limit=0.8, arl=1e9)
    update_level(watch, single, values)
    update_level_by_sessions(watch, parts, [SessionPart(value, 1) for value in values])
    assert level_strength(parts) == pytest.approx(level_strength(single))


def test_without_a_change_the_evidence_grows_by_no_more_than_one_an_episode():
    """The mean over 4000 series of sessions of very unlike rates and sizes, at the level of the limit itself."""
    rng = np.random.default_rng(2)
    found = []
    for _ in range(4000):
        state = LevelState()
        sizes = rng.integers(1, 30, 12)
        means = rng.binomial(sizes, rng.beta(0.8 * 2, 0.2 * 2, 12)) / sizes
        parts = [SessionPart(float(mean), int(n)) for mean, n in zip(means, sizes, strict=True)]
        update_level_by_sessions(LevelWatch(limit=0.8, arl=1e12), state, parts)
        found.append(level_strength(state) / state.n)
    assert np.mean(found) <= 1 + 3 * np.std(found) / np.sqrt(len(found))


def test_a_reference_of_sessions_is_the_lower_limit_that_knows_of_them():
    rng = np.random.default_rng(3)
    totals = rng.binomial(10, rng.beta(0.8 * 4, 0.2 * 4, 30))
    state = LevelState()
    update_level_by_sessions(LevelWatch(), state, whole(totals / 10))
    known = clustered_rate([int(total) for total in totals], [10] * 30)
    assert (state.reference_n, state.reference_value) == (300, pytest.approx(known.value))
    assert known.low - 0.01 < state.limit < known.value - 0.01
    independent = LevelState()
    update_level(LevelWatch(), independent, [1.0] * sum(totals) + [0.0] * (300 - sum(totals)))
    assert state.limit < independent.limit


def test_fewer_than_five_sessions_teach_nothing_and_more_go_on_teaching():
    state = LevelState()
    update_level_by_sessions(LevelWatch(), state, whole([0.8] * 4, n=50))
    assert state.limit is None
    update_level_by_sessions(LevelWatch(), state, whole([0.8], n=50))
    assert state.reference_n == 250
    update_level_by_sessions(LevelWatch(), state, whole([0.8] * 45, n=50))
    assert state.reference_n == 2500


def test_sessions_that_were_counted_one_by_one_are_not_counted_again():
    values = [1.0] * 90 + [0.0] * 10
    state = LevelState()
    update_level(LevelWatch(), state, values)
    ends = [SessionPart(0.0, 0, is_judged=False, ended=(18.0, 20), counted=True) for _ in range(5)]
    update_level_by_sessions(LevelWatch(), state, ends)
    assert (state.n, state.learned_n, state.sessions.sessions) == (100, 100, 5)
    update_level_by_sessions(LevelWatch(), state, whole([0.9] * 5))
    assert (state.learned_n, state.reference_n, state.reference_value) == (150, 150, pytest.approx(0.9))


def test_a_session_is_cut_the_less_the_more_alike_its_episodes_are():
    alike = summed([(10, 10), (10, 10), (2, 10), (9, 10), (10, 10), (3, 10)] * 5)
    unlike = summed([(8, 10), (8, 10), (9, 10), (7, 10), (8, 10)] * 20)
    assert alike.likeness().icc > 0.3
    assert unlike.likeness().icc < 0.01
    assert part_size(alike) == 10
    assert part_size(unlike) == 1
    assert part_size(summed([(8, 10)] * 4)) == FIRST_SIZE
    assert part_size(summed([(1, 1), (0, 1)] * 5)) == 1


def test_the_sums_of_sessions_give_the_clustered_rate():
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 30, 40)
    totals = rng.binomial(sizes, rng.beta(3, 1, 40))
    alike = summed(zip(totals.tolist(), sizes.tolist(), strict=True)).likeness()
    known = clustered_rate(totals.tolist(), sizes.tolist())
    assert (alike.icc, alike.design_effect) == (known.icc, known.design_effect)
    # By its definition, session by session.
    n, p = sizes.sum(), totals.sum() / sizes.sum()
    between = (sizes * (totals / sizes - p) ** 2).sum() / 39
    within = (totals * (sizes - totals) / sizes).sum() / (n - 40)
    n0 = (n - (sizes**2).sum() / n) / 39
    measured = max(0.0, (between - within) / (between + (n0 - 1) * within))
    rarer = min(totals.sum(), n - totals.sum())
    assert alike.icc == pytest.approx((5 * 0.2 + rarer * measured) / (5 + rarer))


def test_bets_against_sim_begin_with_alpha_or_with_what_was_shown_before():
    fresh = SimState()
    update_against_sim_by_sessions(SimWatch(arl=30_000, alpha=0.025), fresh, (1600, 2000), [SessionPart(0.8, 10)])
    assert level_strength(fresh.bets) == pytest.approx(750, rel=0.2)
    state = SimState()
    update_against_sim(SimWatch(), state, (1600, 2000), [0.0, 1.0, 1.0, 0.0, 1.0] * 4)
    shown = 50 * sum(process.value for process in state.processes)
    assert 750 < shown < 30_000
    update_against_sim_by_sessions(SimWatch(), state, (1600, 2000), [SessionPart(0.8, 10)])
    assert level_strength(state.bets) == pytest.approx(shown, rel=0.2)
    assert state.processes == []


def test_a_drop_that_is_certain_but_small_is_no_alarm():
    rng = np.random.default_rng(5)
    parts = whole(rng.binomial(10, 0.7, 300) / 10)
    assert update_against_sim_by_sessions(SimWatch(above=0.2), SimState(), (1600, 2000), parts) == []
    assert update_against_sim_by_sessions(SimWatch(above=0.05), SimState(), (1600, 2000), parts)


def test_without_sim_episodes_nothing_is_said():
    state = SimState()
    assert update_against_sim_by_sessions(SimWatch(), state, (0, 0), whole([0.0] * 50)) == []
    assert state.n == 500


def test_what_falls_and_comes_back_is_told_once_each_and_state_is_all_there_is():
    rng = np.random.default_rng(6)
    means = np.concatenate([rng.binomial(10, rate, n) / 10 for rate, n in ((0.9, 40), (0.3, 20), (0.9, 40))])
    parts = whole(means)
    for empty, update in (
        (LevelState(), lambda state, some: update_level_by_sessions(LevelWatch(), state, some)),
        (SimState(), lambda state, some: update_against_sim_by_sessions(SimWatch(), state, (1800, 2000), some)),
    ):
        load, at_once, state, found = type(empty).load, [], type(empty)(), []
        at_once = update(empty, parts)
        for part in parts:
            state = load(json.loads(json.dumps(asdict(state))))
            found += update(state, [part])
        assert [c.kind for c in at_once] == ["breach", "recovery"]
        assert [(c.kind, c.number, c.change, c.value, c.facts) for c in found] == [
            (c.kind, c.number, c.change, c.value, c.facts) for c in at_once
        ]
        assert asdict(state) == asdict(empty)
        breach = at_once[0]
        assert abs(breach.change - 400) <= 20
        assert breach.facts["since"]["n"] == breach.number + 10 - breach.change
