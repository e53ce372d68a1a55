"""Every state with every input: 42 moves, each written out, and the promises that follow from them."""

import itertools
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapwatch.watching.states import MOVES, Input, State, move

STATES, INPUTS = get_args(State), get_args(Input)

OPEN = {"pending", "firing", "acknowledged", "no_data"}
# State after each input, in the order of INPUTS; a star is a notification of the kind that the input stands for.
TABLE = {
    #               suspect         breach          recovery      data_stopped  data_again      acknowledge      resolve
    "ok": ("pending", "firing*", "ok", "ok", "ok", "ok", "ok"),
    "pending": ("pending", "firing*", "resolved", "pending", "pending", "pending", "resolved"),
    "firing": ("firing", "firing", "resolved*", "no_data", "firing", "acknowledged*", "resolved*"),
    "acknowledged": (
        *("acknowledged", "acknowledged", "resolved*", "no_data"),
        *("acknowledged", "acknowledged", "resolved*"),
    ),
    "no_data": ("no_data", "firing", "resolved*", "no_data", "firing", "no_data*", "resolved*"),
    "resolved": ("pending", "firing*", "resolved", "resolved", "resolved", "resolved", "resolved"),
}
NOTIFICATIONS = {"breach": "trigger", "recovery": "resolve", "acknowledge": "acknowledge", "resolve": "resolve"}


def test_the_table_is_complete():
    assert set(MOVES) == set(itertools.product(STATES, INPUTS))


@pytest.mark.parametrize(("state", "given_input"), list(itertools.product(STATES, INPUTS)))
def test_each_move(state, given_input):
    expected = TABLE[state][INPUTS.index(given_input)]
    moved = move(state, given_input, before="firing" if state == "no_data" else None)
    assert moved.state == expected.rstrip("*")
    assert moved.notify == (NOTIFICATIONS[given_input] if expected.endswith("*") else None)


@pytest.mark.parametrize("state", sorted(OPEN))
def test_missing_data_resolves_nothing_and_tells_nobody(state):
    moved = move(state, "data_stopped", before="acknowledged" if state == "no_data" else None)
    assert moved.state in OPEN
    assert moved.notify is None


@pytest.mark.parametrize("state", ["firing", "acknowledged"])
def test_an_alert_returns_to_where_it_was_before_its_data_stopped(state):
    stopped = move(state, "data_stopped")
    assert stopped == ("no_data", state, None)
    still = move("no_data", "data_stopped", stopped.before)
    assert still.before == state
    assert move("no_data", "data_again", still.before) == (state, None, None)


def test_acknowledging_without_data_is_told_once_and_remembered():
    first = move("no_data", "acknowledge", "firing")
    assert first == ("no_data", "acknowledged", "acknowledge")
    assert move("no_data", "acknowledge", first.before).notify is None
    assert move("no_data", "data_again", first.before).state == "acknowledged"


@given(st.lists(st.sampled_from(INPUTS), max_size=40))
def test_whatever_happens_triggers_and_resolves_alternate(inputs):
    """Per alert: no second trigger before a resolve, no resolve and no acknowledge without a trigger."""
    state, before, told = "ok", None, []
    for one in inputs:
        state, before, notify = move(state, one, before)
        if notify is not None:
            told.append(notify)
    opened = False
    for notify in told:
        if notify == "trigger":
            assert not opened
            opened = True
        else:
            assert opened
            opened = notify != "resolve"
    assert opened == (state in {"firing", "acknowledged", "no_data"})
