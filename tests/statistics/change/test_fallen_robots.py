import numpy as np
import pytest

from gapwatch.statistics.change.fallen_robots import RobotSides, fallen_robots


def fleet(rates: list[float], *, before: float = 0.95, n: int = 60, n_before: int = 120, seed: int = 1) -> list:
    chance = np.random.default_rng(seed)
    return [
        RobotSides(f"r{place}", int(chance.binomial(n_before, before)), n_before, int(chance.binomial(n, rate)), n)
        for place, rate in enumerate(rates)
    ]


def verdicts(rates, runs: int = 60, **more) -> list[str]:
    return [fallen_robots(fleet(rates, seed=seed, **more)).verdict for seed in range(runs)]


def test_one_robot_that_fell_stands_alone():
    said = verdicts([0.95, 0.95, 0.5, 0.95])
    assert said.count("alone") >= 0.95 * len(said)
    assert fallen_robots(fleet([0.95, 0.95, 0.5, 0.95])).affected == ("r2",)
    assert fallen_robots(fleet([0.95, 0.95, 0.5, 0.95])).spared == ("r0", "r1", "r3")


def test_robots_that_fell_alike_are_all():
    said = verdicts([0.5, 0.5, 0.5, 0.5])
    assert said.count("all") >= 0.9 * len(said)


def test_where_nothing_fell_at_most_a_few_verdicts_name_a_robot():
    said = verdicts([0.95] * 5, runs=200)
    assert said.count("none") >= 0.93 * len(said)


def test_a_robot_that_was_always_bad_is_not_what_changed():
    sides = [
        RobotSides("old", 60, 120, 30, 60),
        RobotSides("a", 115, 120, 57, 60),
        RobotSides("b", 116, 120, 58, 60),
    ]
    found = fallen_robots(sides)
    assert found.verdict == "none"
    assert found.affected == ()


def test_without_a_past_the_reference_counts():
    sides = [RobotSides("a", 0, 0, 20, 60), RobotSides("b", 0, 0, 57, 60)]
    found = fallen_robots(sides, 0.95)
    assert found.verdict == "alone"
    assert found.affected == ("a",)
    assert fallen_robots(sides).verdict == "too few episodes"


@pytest.mark.parametrize(
    ("sides", "verdict"),
    [
        ([], "too few episodes"),
        ([RobotSides("a", 50, 50, 1, 4)], "too few episodes"),
        ([RobotSides("a", 50, 50, 1, 10)], "one robot"),
        ([RobotSides("a", 50, 50, 10, 10)], "none"),
        ([RobotSides("a", 0, 0, 0, 0), RobotSides("b", 5, 5, 5, 5)], "none"),
    ],
)
def test_few_robots_and_few_episodes(sides, verdict):
    assert fallen_robots(sides).verdict == verdict


def test_every_number_has_its_interval():
    [robot] = fallen_robots([RobotSides("a", 48, 50, 20, 40)]).robots
    assert robot.interval[0] < robot.value < robot.interval[1]
    assert robot.fall_interval[0] < robot.fall < robot.fall_interval[1]
    assert robot.q < 0.001
