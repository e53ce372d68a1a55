"""Real success by robot and by site, through the API and by hand."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from answers.lab import attempts, real, sim

from gapwatch.answers.robots_sites import _events_of, compare_units, odd_sentence
from gapwatch.store.read.directory import DatedEvent

BERLIN = "/deployments/berlin-line-3"
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def test_the_robot_that_stands_out_is_named_with_its_events_and_the_others_are_not(lab):
    for number, (k, failures) in enumerate(((93, 7), (94, 6), (69, 31), (92, 8))):
        lab.send(attempts(real, k, failures, robot=f"osaka-{number + 1}", site="osaka"))
    lab.send([*attempts(real, 2, 10, robot="osaka-9", site="osaka"), *attempts(sim, 95, 5)])
    answer = lab.ask(f"{BERLIN}/robots")
    units = {unit["name"]: unit for unit in answer["robots"]["units"]}
    assert [name for name, unit in units.items() if unit["stands_out"]] == ["osaka-3"]
    assert next(iter(units)) == "osaka-3" and list(units)[-1] == "osaka-9"
    assert (units["osaka-3"]["verdict"], units["osaka-9"]["verdict"]) == ("worse", "too few episodes")
    assert units["osaka-9"]["few"] and not units["osaka-3"]["few"]
    assert units["osaka-3"]["lost"] == pytest.approx(0.93 - 0.69)
    assert (answer["robots"]["others"]["n"], answer["robots"]["others"]["successes"]) == (300, 279)
    # One site is no figure.
    assert answer["sites"] is None
    assert answer["sentence"].startswith("osaka-3 alone: 69 %, the others 93 %.")


def test_one_robot_of_one_site_has_nothing_to_be_compared_with(lab):
    lab.send([*attempts(real, 50, 10, robot="r-1", site="here"), *attempts(sim, 95, 5)])
    answer = lab.ask(f"{BERLIN}/robots")
    assert (answer["robots"], answer["sites"], answer["sentence"]) == (None, None, None)
    assert answer["reason"] == "The real episodes name no two robots and no two sites."


def test_a_site_is_named_before_its_robots_and_one_robot_before_its_site():
    two = compare_units(
        {"a-1": (60, 100), "a-2": (61, 100), "b-1": (93, 100), "b-2": (95, 100), "b-3": (94, 100)}, "robot"
    )
    sites = compare_units({"a": (121, 200), "b": (282, 300)}, "site")
    assert odd_sentence(two, sites) == "a alone: 60 %, the other site 94 %."
    assert odd_sentence(two, None) == "a-1 60 %, a-2 61 %; the others 94 %."
    one = compare_units({"a-1": (60, 100), "b-1": (93, 100), "b-2": (95, 100)}, "robot")
    assert odd_sentence(one, compare_units({"a": (60, 100), "b": (188, 200)}, "site")) == (
        "a-1 alone: 60 %, the others 94 %."
    )
    assert odd_sentence(None, None) is None


def test_who_does_better_than_the_others_is_no_headline():
    robots = compare_units({"a": (99, 100), "b": (70, 100), "c": (72, 100), "d": (71, 100)}, "robot")
    assert robots is not None and [unit.name for unit in robots.odd] == ["a"]
    assert odd_sentence(robots, None) is None
    both = compare_units({"a": (99, 100), "b": (70, 100), "c": (72, 100), "d": (71, 100), "e": (30, 100)}, "robot")
    assert (odd_sentence(both, None) or "").startswith("e alone: 30 %, the others 71 %.")


def test_a_difference_that_does_not_matter_is_no_headline():
    """Three points, established by two hundred thousand episodes."""
    group = compare_units({"a": (45_000, 50_000), "b": (46_500, 50_000), "c": (46_500, 50_000)}, "robot")
    assert group is not None and group.odd == [] and group.others.n == 150_000


def test_days_that_differ_make_episodes_worth_less():
    counts = {"a": (85, 100), "b": (70, 100), "c": (86, 100), "d": (85, 100)}
    assert [unit.name for unit in compare_units(counts, "robot").odd] == ["b"]
    assert compare_units(counts, "robot", design_effect=3.0).odd == []


def test_events_that_name_a_robot_are_its_own_and_have_an_age():
    events = [
        DatedEvent("other", NOW - timedelta(days=40), "osaka-3 moved to the wireless network"),
        DatedEvent("release", NOW - timedelta(days=9), "3.1.0"),
        DatedEvent("calibration", NOW - timedelta(days=3), "wrist", ("osaka-3",)),
        DatedEvent("other", NOW - timedelta(days=2), "osaka-33 repaired"),
    ]
    found = _events_of("osaka-3", "robot", events, NOW)
    assert [(event.title, event.age_days) for event in found] == [
        ("wrist", 3.0),
        ("osaka-3 moved to the wireless network", 40.0),
    ]
    assert _events_of("osaka", "site", events, NOW) == ()


def test_one_robot_far_below_is_found_and_among_equal_ones_mostly_nobody():
    """Five robots of 100 episodes, 400 fleets each: −25 points found in 90 % or more, nobody in 95 % but noise."""
    generator = np.random.default_rng(16)
    found = alone = 0
    for _ in range(400):
        draws = generator.binomial(100, [0.93, 0.93, 0.93, 0.93, 0.68]), generator.binomial(100, 0.9, 5)
        lower, equal = (
            compare_units({f"r-{i}": (int(k), 100) for i, k in enumerate(counts)}, "robot") for counts in draws
        )
        found += [unit.name for unit in lower.odd] == ["r-4"]
        alone += bool(equal.odd)
    assert found / 400 >= 0.9, found
    assert alone / 400 <= 0.05 + 0.02, alone
