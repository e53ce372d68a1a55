from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pages.answers_made import a_present

from gapwatch.answers.now import NowEstimate, NowMoved, NowRobot, NowSim
from gapwatch.pages.sentences.present import (
    how_it_moved,
    is_it_worse,
    odd_robot,
    present_sentence,
    standing,
    was,
)

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


@pytest.mark.parametrize(
    ("verdict", "ending"),
    [
        ("falling", "; 96 % until 30 Oct; simulation 95 %. Still falling."),
        ("fell", "; 96 % until 30 Oct; simulation 95 %. It fell and stays there."),
        ("steady", "; simulation 95 %. Steady."),
        ("too few episodes", "; simulation 95 %. Too few episodes to say whether it moves."),
    ],
)
def test_the_present_in_a_sentence(verdict, ending):
    now = replace(a_present(), moved=NowMoved(-45.0, (-56.0, -34.0), verdict))
    said = present_sentence(now, TODAY)
    assert said is not None and str(said) == f"Now 51 % (43 of 84){ending}"
    assert said.emphasised("real") == ["51 %"] and said.emphasised("sim") == ["95 %"]


def test_without_simulation_or_episodes_the_sentence_says_so():
    now = replace(a_present(), sim=NowSim(0, None, None))
    assert "; no simulation to compare it with." in str(present_sentence(now, TODAY))
    nothing = NowEstimate(None, None, 0, 0, "newest 0 episodes")
    assert present_sentence(replace(now, estimate=nothing), TODAY) is None


def test_how_far_it_moved_is_told_with_its_interval():
    assert how_it_moved(a_present(), TODAY) == (
        "51 % in the newest 84 episodes, 45.0 points [34.0, 56.0] below the 96 % of 300 episodes until 30 Oct."
    )
    steady = replace(a_present(), moved=NowMoved(-2.0, (-9.0, 4.0), "steady"))
    assert how_it_moved(steady, TODAY) == (
        "51 % in the newest 84 episodes, 96 % of 300 before: a difference of "
        "\u22122.0 points [\u22129.0, 4.0], no sign of a change."
    )
    assert is_it_worse(a_present(), TODAY) == "Yes, falling since 30 Oct"
    assert is_it_worse(steady, TODAY) == "No, steady"
