"""The filters of a page: read from its address, shown as words that can be taken off, and put into links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from gapwatch.answers.window_words import Before
from gapwatch.pages.forms import as_utc
from gapwatch.pages.links import Links

Model = TypeVar("Model", bound=BaseModel)

# Parameters of an address that say how to show, not what.
NOT_A_FILTER = {"project", "format", "table", "after", "page", "saved"}

# Filters that a field for date and time may give.
MOMENTS = {"since", "until"}

WINDOWS = {
    "24h": "last 24 hours",
    "7d": "last 7 days",
    "30d": "last 30 days",
    "90d": "last 90 days",
}


# What the windows of a page are called on their buttons; beside them one's own times.
PICKED = {"24h": "24 h", "7d": "7 d", "30d": "30 d"}
TIMES = ("window", "since", "until")


@dataclass(frozen=True)
class WindowChoice:
    label: str
    href: str
    is_chosen: bool


@dataclass(frozen=True)
class WindowPicker:
    """now · 24 h · 7 d · 30 d · all · custom. `name` says what the page speaks of; the times are one's own."""

    name: str
    choices: list[WindowChoice]
    since: str
    until: str

    @property
    def is_custom(self) -> bool:
        return not any(choice.is_chosen for choice in self.choices)


@dataclass(frozen=True)
class Applied:
    """A filter in force, and the address without it."""

    name: str
    value: str
    without: str


@dataclass(frozen=True)
class Asked(Generic[Model]):
    """`filter` holds what could be understood; `problems` what could not, in words."""

    filter: Model
    problems: list[str]
    # Every parameter that was understood, for links that keep them.
    given: dict[str, list[str]]


def read_filter(request: Request, model: type[Model]) -> Asked[Model]:
    """The filter of an address: a bad parameter becomes a problem in words, and the rest still applies."""
    parameters: dict[str, list[str]] = {}
    problems: list[str] = []
    for name, value in request.query_params.multi_items():
        if value == "" or "\0" in value or (name in NOT_A_FILTER and name not in model.model_fields):
            continue
        if name in MOMENTS and name in model.model_fields:
            # The last one counts: a moment of one's own stands behind the list of windows.
            parameters[name] = [as_utc(value)]
        elif name in model.model_fields:
            parameters.setdefault(name, []).append(value)
        else:
            problems.append(f"{name[:64]} is not a filter here.")
    if "window" in parameters and parameters.keys() & {"since", "until"}:
        problems.append("window: give either a window by name, or times of your own, not both.")
        del parameters["window"]
    while True:
        try:
            return Asked(model.model_validate(_as_fields(model, parameters)), problems, parameters)
        except ValidationError as error:
            bad = {str(fault["loc"][0]) for fault in error.errors() if fault["loc"]}
            if not bad & set(parameters):
                raise
            for fault in error.errors():
                message = str(fault["msg"]).removeprefix("Value error, ")
                problems.append(f"{fault['loc'][0]}: {message[0].lower()}{message[1:]}.")
            parameters = {name: values for name, values in parameters.items() if name not in bad}


def window_or_now(given: dict[str, list[str]]) -> dict[str, str]:
    """The window of a page's question: the present, unless its address asks for another."""
    asked = {name: values[-1] for name, values in given.items() if name in TIMES}
    return asked or {"window": "now"}


def window_picker(links: Links, path: tuple[str, ...], given: dict[str, list[str]], words: str) -> WindowPicker:
    rest = {name: values for name, values in given.items() if name not in TIMES}
    asked = window_or_now(given)

    def choice(label: str, **window: str) -> WindowChoice:
        is_now = window == {"window": "now"}
        # What was before is before the present.
        kept = rest if is_now else {name: values for name, values in rest.items() if name != "against"}
        return WindowChoice(label, links.to(*path, **kept, **({} if is_now else window)), asked == window)

    choices = [choice("now", window="now")]
    choices += [choice(label, since=span) for span, label in PICKED.items()]
    choices.append(choice("all", window="all"))
    return WindowPicker(words, choices, asked.get("since", ""), asked.get("until", ""))


def against_switch(
    links: Links, path: tuple[str, ...], given: dict[str, list[str]], before: Before | None
) -> list[WindowChoice]:
    """Simulation, or what was before the present; only the first where nothing was."""
    is_before = given.get("against", ["simulation"])[-1] == "before"
    rest = {name: values for name, values in given.items() if name != "against"}
    choices = [WindowChoice("simulation", links.to(*path, **rest), not is_before)]
    if before is not None:
        of_now = {name: values for name, values in rest.items() if name not in TIMES}
        href = links.to(*path, **of_now, against="before")
        choices.append(WindowChoice(before.words, href, is_before))
    return choices


def population_switch(
    links: Links, path: tuple[str, ...], given: dict[str, list[str]], words: dict[str, str]
) -> list[WindowChoice]:
    """Whom intervals speak for, by what each is called; none where there is nobody else to speak for."""
    if len(set(words.values())) < len(words):
        return []
    chosen = given.get("population", ["these"])[-1]
    rest = {name: values for name, values in given.items() if name != "population"}
    return [
        WindowChoice(label, links.to(*path, **rest, **_asks_for(name)), name == chosen)
        for name, label in words.items()
    ]


def _asks_for(population: str) -> dict[str, str]:
    return {} if population == "these" else {"population": population}


def applied(links: Links, path: tuple[str, ...], parameters: dict[str, list[str]]) -> list[Applied]:
    chips = []
    for name, values in parameters.items():
        for value in values:
            rest = {
                key: [other for other in kept if (key, other) != (name, value)] for key, kept in parameters.items()
            }
            chips.append(Applied(name, value, links.to(*path, **rest)))
    return chips


def _as_fields(model: type[BaseModel], parameters: dict[str, list[str]]) -> dict[str, object]:
    return {name: values if _is_list(model, name) else values[-1] for name, values in parameters.items()}


def _is_list(model: type[BaseModel], name: str) -> bool:
    return "list" in str(model.model_fields[name].annotation)
