"""What episodes add up to, counted by hand and held to what must hold of any."""

from dataclasses import fields
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tally.made import DAY, HOUR_S, NAMES, packed, row, rows, steady

from gapwatch.tally.aggregate import Episodes
from gapwatch.tally.sums import DAY_S, Sums

SCOPE = ("real", 1, 2, 3)
NOWHERE = (None, None, None, ())


def counted(*episodes, names=NAMES) -> Sums:
    return Episodes(episodes, names).counted()


def tidy(sums: Sums) -> dict:
    """Without what is zero: that a row was there and is gone is no difference."""

    def left(value):
        return (
            not value.is_empty if hasattr(value, "is_empty") else any(value) if isinstance(value, list) else value
        )

    found = {part.name: getattr(sums, part.name) for part in fields(sums)}
    found["values"] = {
        (*key, name): value.copy() for key, named in sums.values.items() for name, value in named.items()
    }
    for value in found["values"].values():
        value.bins = {index: count for index, count in value.bins.items() if count}
        value.negative = {index: count for index, count in value.negative.items() if count}
    return {name: {key: value for key, value in part.items() if left(value)} for name, part in found.items()}


def test_hours_are_counted_by_outcome():
    found = counted(
        row(),
        row(),
        row(outcome="failure"),
        row(outcome="aborted", hour=DAY + 10 * HOUR_S),
        row(outcome="abandoned", hour=DAY + 10 * HOUR_S),
        row(domain="sim"),
    )
    assert found.hours == {
        (SCOPE, DAY + 9 * HOUR_S): [2, 1, 0, 0],
        (SCOPE, DAY + 10 * HOUR_S): [0, 0, 1, 1],
        (("sim", 1, 2, 3), DAY + 9 * HOUR_S): [1, 0, 0, 0],
    }


def test_an_hour_is_the_same_whatever_the_day_before_it_held():
    """The hours of one scope on two days, and of two scopes in one hour, stay apart."""
    found = counted(row(hour=DAY), row(hour=DAY + DAY_S), row(hour=DAY, source_id=4))
    assert found.hours == {
        (SCOPE, DAY): [1, 0, 0, 0],
        (SCOPE, DAY + DAY_S): [1, 0, 0, 0],
        (("real", 1, 2, 4), DAY): [1, 0, 0, 0],
    }


def test_contracts_are_counted_by_day_and_none_is_number_zero():
    found = counted(row(contract_id=8), row(contract_id=8, hour=DAY), row(), row(outcome="aborted"))
    assert found.contracts == {(SCOPE, DAY, 8): 2, (SCOPE, DAY, 0): 2}


def test_a_session_counts_what_was_judged():
    found = counted(
        row(session="a"),
        row(session="a", outcome="failure"),
        row(session="a", outcome="failure", hour=DAY),
        row(session="a", outcome="aborted"),
        row(session="b", outcome="abandoned"),
        row(outcome="failure"),
        row(session="a", hour=DAY + DAY_S),
    )
    assert found.sessions == {(SCOPE, DAY, "a"): [1, 2], (SCOPE, DAY + DAY_S, "a"): [1, 0]}


def test_a_cell_is_a_place_and_the_levels_of_words_and_numbers_in_the_order_of_names():
    where = {"robot_id": 1, "site_id": 6, "stage": "full"}
    found = counted(
        row(**where, condition_set_id=1, number_names_id=1, numbers=packed(0.31, 3.0)),
        row(**where, condition_set_id=1, number_names_id=1, numbers=packed(0.45, 3.0), outcome="failure"),
        row(**where, condition_set_id=1, number_names_id=1, numbers=packed(0.5, 3.0)),
        row(condition_set_id=2),
        row(),
        row(condition_set_id=3, outcome="abandoned"),
        row(robot_id=1, outcome="aborted"),
    )

    def cell(mass):
        levels = (("clutter", "3"), ("gripper", "true"), ("lighting", "dim"), ("mass_kg", mass))
        return (1, 6, "full", levels)

    assert found.cells == {
        (SCOPE, DAY, cell("0.2 to 0.5")): [1, 1, 0, 0],
        (SCOPE, DAY, cell("0.5 to 1")): [1, 0, 0, 0],
        (SCOPE, DAY, (None, None, None, (("lighting", "bright"),))): [1, 0, 0, 0],
        (SCOPE, DAY, NOWHERE): [1, 0, 0, 1],
        (SCOPE, DAY, (1, None, None, ())): [0, 0, 1, 0],
    }


@pytest.mark.parametrize(
    ("pooled", "levels"),
    [
        ({}, (("clutter", "3"), ("gripper", "true"), ("lighting", "dim"), ("mass_kg", "0.2 to 0.5"))),
        ({"lighting"}, (("clutter", "3"), ("gripper", "true"), ("mass_kg", "0.2 to 0.5"))),
        ({"mass_kg"}, (("clutter", "3"), ("gripper", "true"), ("lighting", "dim"))),
        ({"clutter", "mass_kg", "scene"}, (("gripper", "true"), ("lighting", "dim"))),
        ({"clutter", "gripper", "lighting", "mass_kg"}, ()),
    ],
)
def test_conditions_that_are_pooled_stand_in_no_cell(pooled, levels):
    names = NAMES._replace(pooled={(1, 2): frozenset(pooled)})
    one = {"condition_set_id": 1, "number_names_id": 1, "numbers": packed(0.31, 3.0)}
    found = counted(row(**one), row(**one, task_id=9), names=names)
    whole = (("clutter", "3"), ("gripper", "true"), ("lighting", "dim"), ("mass_kg", "0.2 to 0.5"))
    assert found.cells == {
        (SCOPE, DAY, (None, None, None, levels)): [1, 0, 0, 0],
        (("real", 1, 9, 3), DAY, (None, None, None, whole)): [1, 0, 0, 0],
    }


def test_what_was_said_of_a_failure_has_its_labels_once_and_in_order():
    found = counted(
        row(outcome="failure", phase="lift", labels=["slip", "dark"]),
        row(outcome="failure", phase="lift", labels=["dark", "slip", "dark"]),
        row(outcome="failure", phase="lift", labels=["slip"], category="visual"),
        row(outcome="failure", labels=None),
        row(outcome="failure", labels=[]),
        row(outcome="aborted", phase="lift", labels=["slip"]),
        row(labels=["slip"]),
    )
    assert found.failures == {
        (SCOPE, DAY, NOWHERE, ("lift", ("dark", "slip"), None)): 2,
        (SCOPE, DAY, NOWHERE, ("lift", ("slip",), "visual")): 1,
        (SCOPE, DAY, NOWHERE, (None, (), None)): 2,
    }


def test_no_episodes_are_no_sums():
    assert Episodes([], NAMES).sums() == Sums()


def test_an_episode_that_is_taken_away_counts_less_than_nothing():
    """A deletion may be folded before its episode: the counts are right when both have come."""
    found = counted(row(sign=-1, session="a", contract_id=8, outcome="failure"))
    assert found.hours == {(SCOPE, DAY + 9 * HOUR_S): [0, -1, 0, 0]}
    assert found.cells == {(SCOPE, DAY, NOWHERE): [0, -1, 0, 0]}
    assert (*found.failures.values(), *found.contracts.values()) == (-1, -1)
    assert found.sessions == {(SCOPE, DAY, "a"): [0, -1]}


@steady
@given(st.lists(rows, max_size=25))
def test_every_episode_is_counted_once_in_each_kind(episodes):
    found = Episodes(episodes, NAMES).sums()
    outcomes = [episode.outcome for episode in episodes]
    in_order = [outcomes.count(outcome) for outcome in ("success", "failure", "aborted", "abandoned")]
    for part in (found.hours, found.cells):
        assert [sum(counts) for counts in zip(*part.values(), strict=True)] == (in_order if episodes else [])
    assert sum(found.contracts.values()) == len(episodes)
    assert sum(found.failures.values()) == in_order[1]
    sessions = [episode.outcome for episode in episodes if episode.session is not None]
    judged = [sessions.count(outcome) for outcome in ("success", "failure")]
    assert [sum(each) for each in zip([0, 0], *found.sessions.values(), strict=True)] == judged
    rewarded = [e for e in episodes if e.reward is not None and e.outcome in {"success", "failure"}]
    assert sum(named["reward"].n for named in found.values.values() if "reward" in named) == len(rewarded)


@steady
@given(st.lists(rows, max_size=20), st.randoms(use_true_random=False), st.integers(1, 6))
def test_any_order_and_any_split_adds_up_to_the_same(episodes, chance, size):
    whole = Episodes(episodes, NAMES).sums()
    shuffled = list(episodes)
    chance.shuffle(shuffled)
    parts = Sums()
    for start in range(0, len(shuffled), size):
        parts.add(Episodes(shuffled[start : start + size], NAMES).sums())
    assert parts == whole


@steady
@given(st.lists(rows, max_size=12), st.lists(rows, max_size=12), st.randoms(use_true_random=False))
def test_what_is_taken_away_in_the_same_step_or_another_leaves_the_rest(kept, gone, chance):
    """A correction is the old row with −1 and the new one with +1."""
    taken = [episode._replace(sign=-1) for episode in gone]
    together = [*kept, *gone, *taken]
    chance.shuffle(together)
    apart = Episodes(taken, NAMES).sums()
    apart.add(Episodes([*gone, *kept], NAMES).sums())
    rest = tidy(Episodes(kept, NAMES).sums())
    assert tidy(Episodes(together, NAMES).sums()) == rest
    assert tidy(apart) == rest


@steady
@given(st.lists(rows, max_size=20))
def test_episodes_of_one_scope_are_counted_as_if_there_were_no_others(episodes):
    def mine(sums: Sums, scope) -> list[dict]:
        found = (getattr(sums, part.name) for part in fields(sums))
        return [{key: value for key, value in part.items() if key[0] == scope} for part in found]

    whole = Episodes(episodes, NAMES).sums()
    scopes = {episode[1:5] for episode in episodes}
    assert scopes == {key[0] for key in chain(whole.hours, whole.cells, whole.contracts)}
    for scope in scopes:
        alone = Episodes([episode for episode in episodes if episode[1:5] == scope], NAMES).sums()
        assert mine(alone, scope) == mine(whole, scope)
