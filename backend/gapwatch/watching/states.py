"""The states of an alert, and every move between them in one table.

`ok` and `resolved` are both "no open alert"; the first has never been one. An alert whose data stopped waits in
`no_data` and returns to where it was: missing data resolves nothing.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

State = Literal["ok", "pending", "firing", "acknowledged", "no_data", "resolved"]
Input = Literal["suspect", "breach", "recovery", "data_stopped", "data_again", "acknowledge", "resolve"]
NotificationAction = Literal["trigger", "acknowledge", "resolve"]

# Not a state of its own: the one before the data stopped.
BEFORE: Literal["before"] = "before"


class Transition(NamedTuple):
    to: State | Literal["before"]
    notify: NotificationAction | None = None


# A breach that has to last is first a suspect; the same breach is sent again once it has lasted.
MOVES: dict[tuple[State, Input], Transition] = {
    ("ok", "suspect"): Transition("pending"),
    ("ok", "breach"): Transition("firing", "trigger"),
    ("ok", "recovery"): Transition("ok"),
    ("ok", "data_stopped"): Transition("ok"),
    ("ok", "data_again"): Transition("ok"),
    ("ok", "acknowledge"): Transition("ok"),
    ("ok", "resolve"): Transition("ok"),
    ("pending", "suspect"): Transition("pending"),
    ("pending", "breach"): Transition("firing", "trigger"),
    # Nobody was told of it, so nobody is told that it is over.
    ("pending", "recovery"): Transition("resolved"),
    ("pending", "data_stopped"): Transition("pending"),
    ("pending", "data_again"): Transition("pending"),
    ("pending", "acknowledge"): Transition("pending"),
    ("pending", "resolve"): Transition("resolved"),
    ("firing", "suspect"): Transition("firing"),
    ("firing", "breach"): Transition("firing"),
    ("firing", "recovery"): Transition("resolved", "resolve"),
    ("firing", "data_stopped"): Transition("no_data"),
    ("firing", "data_again"): Transition("firing"),
    ("firing", "acknowledge"): Transition("acknowledged", "acknowledge"),
    ("firing", "resolve"): Transition("resolved", "resolve"),
    ("acknowledged", "suspect"): Transition("acknowledged"),
    ("acknowledged", "breach"): Transition("acknowledged"),
    ("acknowledged", "recovery"): Transition("resolved", "resolve"),
    ("acknowledged", "data_stopped"): Transition("no_data"),
    ("acknowledged", "data_again"): Transition("acknowledged"),
    ("acknowledged", "acknowledge"): Transition("acknowledged"),
    ("acknowledged", "resolve"): Transition("resolved", "resolve"),
    ("no_data", "suspect"): Transition("no_data"),
    ("no_data", "breach"): Transition(BEFORE),
    ("no_data", "recovery"): Transition("resolved", "resolve"),
    ("no_data", "data_stopped"): Transition("no_data"),
    ("no_data", "data_again"): Transition(BEFORE),
    # It stays without data; what changes is where it returns to.
    ("no_data", "acknowledge"): Transition("no_data", "acknowledge"),
    ("no_data", "resolve"): Transition("resolved", "resolve"),
    # A new alert begins; the old one keeps its history.
    ("resolved", "suspect"): Transition("pending"),
    ("resolved", "breach"): Transition("firing", "trigger"),
    ("resolved", "recovery"): Transition("resolved"),
    ("resolved", "data_stopped"): Transition("resolved"),
    ("resolved", "data_again"): Transition("resolved"),
    ("resolved", "acknowledge"): Transition("resolved"),
    ("resolved", "resolve"): Transition("resolved"),
}


class StateChange(NamedTuple):
    """Where an alert stands after an input, where it will return to from `no_data`, and what people are told."""

    state: State
    before: State | None
    notify: NotificationAction | None


def move(state: State, alert_input: Input, before: State | None = None) -> StateChange:
    to, notify = MOVES[state, alert_input]
    if to == BEFORE:
        return StateChange(before or "firing", None, notify)
    if to == "no_data":
        if alert_input == "acknowledge":
            # Acknowledged once is enough.
            return StateChange("no_data", "acknowledged", None if before == "acknowledged" else notify)
        return StateChange("no_data", before if state == "no_data" else state, notify)
    return StateChange(to, None, notify)
