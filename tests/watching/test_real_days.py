"""The short version of `bench/oncall.py`: days that differ are not news, a fall is, and so is one robot's."""

import json

import numpy as np
import pytest

from bench import oncall
from bench.oncall_worlds import (
    FAULTS,
    NULL_WORLDS,
    ROUND_THE_CLOCK,
    WORKING_WEEK,
    episodes_of,
    rotating,
    with_fault,
)
from gapwatch.watching.detector_run import StoredDetector
from gapwatch.watching.engine import watch_episodes
from gapwatch.watching.phrases import AlertReason, series_phrase
from gapwatch.watching.sim_mix import SimCell, sim_mix

WORLDS = {world.name: world for world in NULL_WORLDS}


@pytest.mark.parametrize(
    ("world", "most"),
    [
        ("sessions not named, robots in turn", 3),
        ("days, logit sd .35", 3),
        ("sim 20 % hard, real 45 %", 3),
    ],
)
def test_a_month_on_which_nothing_is_wrong_hardly_ever_pages(world, most):
    """12 months each; before, these worlds had 18, 7 and 16 pages in as many."""
    pages = [oncall.null_month(WORLDS[world], ROUND_THE_CLOCK, (1, i)).pages for i in range(12)]
    assert sum(pages) <= most


def test_a_fall_of_20_points_and_one_robot_are_found_in_time():
    twenty, robot = (
        next(i for i, fault in enumerate(FAULTS) if fault.name == name)
        for name in ("step −20", "one robot of five −25")
    )

    def delays(fault):
        months = [oncall.faulty_month(WORLDS["independent"], fault, WORKING_WEEK, (2, i)) for i in range(11)]
        return [np.inf if one.delay is None else one.delay for one in months if not one.paged_before]

    assert np.median(delays(twenty)) <= 110
    found = delays(robot)
    assert np.median(found) <= 450
    assert np.mean(np.isfinite(found)) >= 0.9


def test_one_robot_is_named_with_the_others_beside_it_however_episodes_are_batched():
    rng = np.random.default_rng(3)
    fault = next(fault for fault in FAULTS if fault.name == "one robot of five −25")
    stream = with_fault(fault, WORLDS["independent"].make, rng, ROUND_THE_CLOCK)
    given = episodes_of(stream, rng, 2200)

    def watched(size):
        stored, found = {}, []
        for at in range(0, len(given), size):
            fresh, states = watch_episodes(
                oncall.PAGING, stored, given[at : at + size], count=at, sim_counts=lambda _: (1740, 2000)
            )
            stored |= {key: StoredDetector(s.params, json.loads(json.dumps(s.state))) for key, s in states.items()}
            found += [(one.rule.name, one.series, one.input, at + one.index, one.evidence) for one in fresh]
        return found, stored

    whole, states = watched(len(given))
    rule, series, _, at, evidence = next(one for one in whole if "@robot:" in one[1] and one[2] == "breach")
    assert series == "success@robot:robot-2"
    assert at >= 1000
    reason = AlertReason(rule, "drift", "warning", series, evidence, given[at].started_at)
    assert series_phrase(reason).startswith("robot-2: success ")
    assert ", others 8" in series_phrase(reason)
    assert watched(130) == (whole, states)


def test_a_robot_that_is_new_is_no_news():
    rng = np.random.default_rng(4)
    stream = rotating(rng, ROUND_THE_CLOCK)
    found = oncall.watch(episodes_of(stream, rng, 1500), stream, rng)
    assert [one.series for one in found if one.input == "breach"] == []


def test_sim_is_compared_in_the_mix_of_reality():
    cells = [
        SimCell({"case": "hard", "site": "a"}, 300, 400),
        SimCell({"case": "easy", "site": "a"}, 760, 800),
        SimCell({"case": "easy", "site": "b"}, 760, 800),
    ]
    mix = sim_mix(cells)
    assert mix.conditions[0] == "case"
    assert mix.shift({"case": "hard"}) == pytest.approx(0.75 - 0.91)
    assert mix.shift({"case": "easy", "site": "b"}) == pytest.approx(0.95 - 0.91)
    # A level that sim never had is compared with all of sim, and told.
    assert mix.shift({"case": "unheard of"}) == 0
    assert mix.missing({"case": "unheard of"}) == "case=unheard of"
    assert mix.missing({"case": "hard", "wind": "strong"}) is None
    assert sim_mix([]).shift({"case": "hard"}) == 0


def _watched(given, size, sim, cells=None):
    stored, found = {}, []
    for at in range(0, len(given), size):
        fresh, states = watch_episodes(
            oncall.PAGING, stored, given[at : at + size], count=at, sim_counts=lambda _: sim, sim_cells=cells
        )
        stored |= {key: StoredDetector(s.params, json.loads(json.dumps(s.state))) for key, s in states.items()}
        found += [(one.rule.name, one.series, one.input, at + one.index, one.evidence) for one in fresh]
    return found, stored


def test_one_level_of_a_condition_is_named_however_episodes_are_batched():
    rng = np.random.default_rng(7)
    fault = next(fault for fault in FAULTS if fault.name == "one condition level −25")
    given = episodes_of(with_fault(fault, WORLDS["independent"].make, rng, ROUND_THE_CLOCK), rng, 2500)
    found, states = _watched(given, len(given), (1740, 2000))
    rule, series, _, at, evidence = next(one for one in found if "@level:" in one[1])
    assert (series, evidence["level"]) == ("success@level:case=hard", "case=hard")
    assert at >= 1000
    reason = AlertReason(rule, "drift", "warning", series, evidence, given[at].started_at)
    assert series_phrase(reason).startswith("case=hard: success ")
    assert _watched(given, 170, (1740, 2000)) == (found, states)


def test_a_level_that_sim_has_not_is_told_with_the_drop():
    rng = np.random.default_rng(6)
    stream = WORLDS["sim 20 % hard, real 45 %"].make(rng, ROUND_THE_CLOCK)
    stream.rate = np.where(stream.hard, 0.3, stream.rate)
    given = episodes_of(stream, rng, 400)
    cells = [SimCell({"case": "easy"}, 1900, 2000)]
    found, _ = _watched(given, len(given), (1900, 2000), lambda _: cells)
    rule, series, _, at, evidence = next(one for one in found if one[0] == "success-below-sim")
    assert evidence["mix"]["share"] == pytest.approx(0.45, abs=0.2)
    reason = AlertReason(rule, "drop", "warning", series, evidence, given[at].started_at)
    assert "; the mix changed: case=hard, which sim has not, among " in series_phrase(reason)
    assert _watched(given, 33, (1900, 2000), lambda _: cells)[0] == found


def test_a_level_that_is_new_is_expected_where_sim_has_it():
    for seed in range(3):
        rng = np.random.default_rng((9, seed))
        stream = WORLDS["hard 0 % → 45 % on day 10"].make(rng, ROUND_THE_CLOCK)
        found = oncall.watch(episodes_of(stream, rng, 2000), stream, rng)
        assert [one.series for one in found if one.input == "breach"] == []


def test_a_fall_says_that_the_mix_changed_where_nobody_knows_the_level():
    rng = np.random.default_rng(10)
    stream = WORLDS["hard 0 % → 45 % on day 10"].make(rng, ROUND_THE_CLOCK)
    stream.rate = np.where(stream.hard, 0.5, stream.rate)
    given = episodes_of(stream, rng, 1600)
    found, states = _watched(given, len(given), (0, 0))
    rule, series, _, at, evidence = next(one for one in found if one[:2] == ("success-drift", "success"))
    assert evidence["mix"]["share"] == pytest.approx(0.45, abs=0.15)
    reason = AlertReason(rule, "drift", "warning", series, evidence, given[at].started_at)
    assert "; the mix changed: case=hard in " in series_phrase(reason)
    assert series_phrase(reason).endswith(" % before")
    assert _watched(given, 70, (0, 0)) == (found, states)


def test_named_sessions_of_other_levels_are_no_news_however_episodes_are_batched():
    rng = np.random.default_rng(11)
    stream = WORLDS["sessions named, hard 20 % → 45 %"].make(rng, WORKING_WEEK)
    given = episodes_of(stream, rng, 1800)
    cells = [SimCell({"case": "hard"}, 300, 400), SimCell({"case": "easy"}, 1520, 1600)]
    found, states = _watched(given, len(given), (1820, 2000), lambda _: cells)
    assert [one for one in found if one[2] == "breach"] == []
    assert states["success-drift", "success"].state["detector"]["strata"]["factors"][1]["shifts"]
    again, other = _watched(given, 90, (1820, 2000), lambda _: cells)
    assert again == found
    assert {key: s.state["detector"] for key, s in other.items()} == {
        key: s.state["detector"] for key, s in states.items()
    }
