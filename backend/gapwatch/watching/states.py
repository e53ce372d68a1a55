"""The states of an alert, and every move between them in one table.

`ok` and `resolved` are both "no open alert"; the first has never been one. An alert whose data stopped waits in
`no_data` and returns to where it was: missing data resolves nothing.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

State = Literal["ok", "pending", "firing", "acknowledged", "no_data", "resolved"]
Input = Literal["suspect", "breach", "recovery", "data_stopped", "data_again", "acknowledge", "resolve"]
NotificationAction = Literal["trigger", "acknowledge", "resolve"]

STATES: tuple[State, ...] = ("ok", "pending", "firing", "acknowledged", "no_data", "resolved")
INPUTS: tuple[Input, ...] = (
    "suspect",
    "breach",
    "recovery",
    "data_stopped",
    "data_again",
    "acknowledge",
    "resolve",
)
# Not a state of its own: the one before the data stopped.
BEFORE: Literal["before"] = "before"


class Move(NamedTuple):
    to: State | Literal["before"]
    notify: NotificationAction | None = None


# A breach that has to last is first a suspect; the same breach is sent again once it has lasted.
MOVES: dict[tuple[State, Input], Move] = {
    ("ok", "suspect"): Move("pending"),
    ("ok", "breach"): Move("firing", "trigger"),
    ("ok", "recovery"): Move("ok"),
    ("ok", "data_stopped"): Move("ok"),
    ("ok", "data_again"): Move("ok"),
    ("ok", "acknowledge"): Move("ok"),
    ("ok", "resolve"): Move("ok"),
    ("pending", "suspect"): Move("pending"),
    ("pending", "breach"): Move("firing", "trigger"),
    # Nobody was told of it, so nobody is told that it is over.
    ("pending", "recovery"): Move("resolved"),
    ("pending", "data_stopped"): Move("pending"),
    ("pending", "data_again"): Move("pending"),
    ("pending", "acknowledge"): Move("pending"),
    ("pending", "resolve"): Move("resolved"),
    ("firing", "suspect"): Move("firing"),
    ("firing", "breach"): Move("firing"),
    ("firing", "recovery"): Move("resolved", "resolve"),
    ("firing", "data_stopped"): Move("no_data"),
    ("firing", "data_again"): Move("firing"),
    ("firing", "acknowledge"): Move("acknowledged", "acknowledge"),
    ("firing", "resolve"): Move("resolved", "resolve"),
    ("acknowledged", "suspect"): Move("acknowledged"),
    ("acknowledged", "breach"): Move("acknowledged"),
    ("acknowledged", "recovery"): Move("resolved", "resolve"),
    ("acknowledged", "data_stopped"): Move("no_data"),
    ("acknowledged", "data_again"): Move("acknowledged"),
    ("acknowledged", "acknowledge"): Move("acknowledged"),
    ("acknowledged", "resolve"): Move("resolved", "resolve"),
    ("no_data", "suspect"): Move("no_data"),
    ("no_data", "breach"): Move(BEFORE),
    ("no_data", "recovery"): Move("resolved", "resolve"),
    ("no_data", "data_stopped"): Move("no_data"),
    ("no_data", "data_again"): Move(BEFORE),
    # It stays without data; what changes is where it returns to.
    ("no_data", "acknowledge"): Move("no_data", "acknowledge"),
    ("no_data", "resolve"): Move("resolved", "resolve"),
    # A new alert begins; the old one keeps its history.
    ("resolved", "suspect"): Move("pending"),
    ("resolved", "breach"): Move("firing", "trigger"),
    ("resolved", "recovery"): Move("resolved"),
    ("resolved", "data_stopped"): Move("resolved"),
    ("resolved", "data_again"): Move("resolved"),
    ("resolved", "acknowledge"): Move("resolved"),
    ("resolved", "resolve"): Move("resolved"),
}


class Moved(NamedTuple):
    """Where an alert stands after an input, where it will return to from `no_data`, and what people are told."""

    state: State
    before: State | None
    notify: NotificationAction | None


def move(state: State, given: Input, before: State | None = None) -> Moved:
    to, notify = MOVES[state, given]
    if to == BEFORE:
        return Moved(before or "firing", None, notify)
    if to == "no_data":
        if given == "acknowledge":
            # Acknowledged once is enough.
            return Moved("no_data", "acknowledged", None if before == "acknowledged" else notify)
        return Moved("no_data", before if state == "no_data" else state, notify)
    return Moved(to, None, notify)
