from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pages.answers_made import a_present

from gapwatch.answers.now import NowMoved, NowRobot
from gapwatch.pages.sentences.present import odd_robot, standing, was

TODAY = datetime(2026, 11, 18, tzinfo=UTC)


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("fell", "51 % now, 96 % until 30 Oct"),
        ("falling", "51 % now, 96 % until 30 Oct, still falling"),
        ("rising", "51 % now, 96 % until 30 Oct, still rising"),
        ("steady", "51 % now, steady"),
        ("too few episodes", "51 % now, of 84 episodes"),
    ],
)
def test_where_it_stands(verdict, said):
    now = replace(a_present(), moved=NowMoved(-45.0, (-56.0, -34.0), verdict))
    assert standing(now, TODAY) == said


def test_a_day_of_another_year_names_it():
    assert was(a_present(), datetime(2027, 2, 1, tzinfo=UTC)) == "96 % until 30 Oct 2026"


def test_nothing_was_before_the_first_episodes():
    now = replace(a_present(), before=None)
    assert was(now, TODAY) is None
    assert standing(now, TODAY) == "51 % now, still falling"


def test_the_odd_robot_is_named_with_the_others():
    robots = tuple(
        NowRobot(name, value, (0.5, 0.99), 100, False, None)
        for name, value in (("osaka-1", 0.93), ("osaka-2", 0.94), ("osaka-3", 0.62), ("osaka-4", 0.92))
    )
    assert odd_robot(replace(a_present(), robots=robots)) == "osaka-3 alone: 62 %, the others 93 %."
    assert odd_robot(replace(a_present(), robots=robots[:2])) is None
    assert odd_robot(a_present()) is None
