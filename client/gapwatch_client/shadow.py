"""What a candidate proposes while something else drives: compared step by step, counted, sent with the episode."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

COUNTED = ("agree", "infeasible", "near_limit", "out_of_distribution")
# The share of the range between two limits that is near one of them.
NEAR_SHARE = 0.05
EXECUTORS = ("human", "other")


def limits_of(contract: Any) -> dict[str, tuple[Any, Any]]:
    """The limits of every action of a contract, by its name: low and high, each a number or one for each number.

    Written as `limits=[low, high]`, as one pair for each number, or by `RecordEpisodes` from the space.
    """
    found: dict[str, tuple[Any, Any]] = {}
    actions = contract.get("action") if isinstance(contract, Mapping) else None
    for name, channel in (actions or {}).items():
        if not isinstance(channel, Mapping):
            continue
        limits, space = channel.get("limits"), channel.get("space")
        if isinstance(limits, (list, tuple)) and limits:
            if all(isinstance(pair, (list, tuple)) for pair in limits):
                found[name] = ([pair[0] for pair in limits], [pair[1] for pair in limits])
            elif len(limits) == 2:  # noqa: PLR2004
                found[name] = (limits[0], limits[1])
        elif isinstance(space, Mapping) and "low" in space and "high" in space:
            found[name] = (space["low"], space["high"])
    return found


class ShadowTally:
    """Counts the steps of one episode. `tolerance` is in the units of the action: one for all, one for each
    number, or by the name of the action."""

    def __init__(self, contract: Any, tolerance: Any, critical_s: float | None) -> None:
        self._limits = limits_of(contract)
        self._tolerance = tolerance
        self._critical_s = critical_s
        self._counts = dict.fromkeys(COUNTED, 0)
        # When each step was, and what it counted for: which are critical is known only after the contact.
        self._steps: list[tuple[float, tuple[bool, ...]]] = []
        self._marked: list[bool] = []
        self._contact: float | None = None
        self._is_ood_known = False

    def add(self, action: Any, executed: Any, *, out_of_distribution: bool | None, critical: bool | None) -> None:
        proposed, done = dict(_channels(action)), dict(_channels(executed))
        is_infeasible = is_near = False
        for name, values in proposed.items():
            low, high = self._limits_for(name, len(proposed))
            for index, value in enumerate(values):
                at = _place(value, _of(low, index), _of(high, index))
                is_infeasible |= at == "outside"
                is_near |= at == "near"
        agrees = proposed.keys() == done.keys() and all(
            self._is_alike(name, values, done[name]) for name, values in proposed.items()
        )
        self._is_ood_known |= out_of_distribution is not None
        flags = (agrees, is_infeasible, is_near and not is_infeasible, bool(out_of_distribution))
        self._steps.append((time.monotonic(), flags))
        self._marked.append(bool(critical))

    def contact(self) -> None:
        if self._contact is None:
            self._contact = time.monotonic()

    def as_field(self) -> dict[str, Any]:
        """The counts of what was proposed; nothing where nothing was."""
        if not self._steps:
            return {}
        field: dict[str, Any] = self._sum([flags for _, flags in self._steps])
        critical = [
            flags for (at, flags), marked in zip(self._steps, self._marked) if marked or self._is_near_contact(at)
        ]
        if critical:
            field["critical"] = self._sum(critical)
        return field

    def _sum(self, steps: list[tuple[bool, ...]]) -> dict[str, Any]:
        counts: dict[str, Any] = {"steps": len(steps)}
        for index, name in enumerate(COUNTED):
            if self._is_told(name):
                counts[name] = sum(flags[index] for flags in steps)
        return counts

    def _is_told(self, name: str) -> bool:
        """What was not looked at is left out: a zero would say that it never happened."""
        if name == "agree":
            return self._tolerance is not None
        return self._is_ood_known if name == "out_of_distribution" else bool(self._limits)

    def _is_near_contact(self, at: float) -> bool:
        return (
            self._contact is not None
            and self._critical_s is not None
            and abs(at - self._contact) <= self._critical_s
        )

    def _limits_for(self, name: str, actions: int) -> tuple[Any, Any]:
        if not name and actions == 1 and len(self._limits) == 1:
            return next(iter(self._limits.values()))
        return self._limits.get(name, (None, None))

    def _is_alike(self, name: str, proposed: list[float], executed: list[float]) -> bool:
        tolerance = self._tolerance
        if isinstance(tolerance, Mapping):
            tolerance = tolerance.get(name)
        if tolerance is None or len(proposed) != len(executed):
            return False
        return all(
            abs(a - b) <= (_of(tolerance, index) or 0.0) for index, (a, b) in enumerate(zip(proposed, executed))
        )


def executor(who: Any) -> Any:
    """`human`, `other`, or a policy as `name@version`, a pair or a mapping."""
    if isinstance(who, str) and who in EXECUTORS:
        return who
    if isinstance(who, Mapping):
        return {"name": str(who["name"]), "version": str(who["version"])}
    if isinstance(who, (tuple, list)):
        name, version = who
        return {"name": str(name), "version": str(version)}
    name, at, version = str(who).rpartition("@")
    return {"name": name, "version": version} if at else {"name": str(who), "version": "unversioned"}


def _channels(action: Any) -> Iterator[tuple[str, list[float]]]:
    """An action by name, each a list of numbers: one without names has the name ""."""
    if isinstance(action, Mapping):
        for name, values in action.items():
            yield str(name), _numbers(values)
    else:
        yield "", _numbers(action)


def _numbers(values: Any) -> list[float]:
    values = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(values, (list, tuple)):
        return [float(values)]
    flat: list[float] = []
    for value in values:
        flat += _numbers(value)
    return flat


def _of(bound: Any, index: int) -> float | None:
    """A bound of one number of several; None where there is none, such as infinity as a word."""
    if isinstance(bound, (list, tuple)):
        bound = bound[index] if index < len(bound) else None
    return float(bound) if isinstance(bound, (int, float)) else None


def _place(value: float, low: float | None, high: float | None) -> str:
    if not math.isfinite(value) or (low is not None and value < low) or (high is not None and value > high):
        return "outside"
    if low is None or high is None:
        return "inside"
    near = NEAR_SHARE * (high - low)
    return "near" if value - low < near or high - value < near else "inside"
