"""Gymnasium's spaces: which of their numbers are summarised, and the contract they imply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from gapwatch_client.contract import Contract

# A vector of more numbers than this is summarised by its norm alone; images are skipped.
MOST_NAMED = 16
LARGEST_VECTOR = 1024


class Channel:
    """A vector of an observation or action: its key and the names of its numbers."""

    def __init__(self, key: str | None, space: Any, base: str, names: Sequence[str] | None) -> None:
        self._key = key
        size = int(np.prod(space.shape)) if space.shape else 1
        self._dimensions = len(space.shape or ())
        self._by_length = size > MOST_NAMED
        labels = list(names) if names is not None and len(names) == size else [str(n) for n in range(size)]
        self.names = [f"{base}_norm"] if self._by_length else [f"{base}_{name}" for name in labels]
        if size == 1 and names is None:
            self.names = [base]

    def numbers(self, value: Any) -> Any:
        """One row per environment."""
        vector = value[self._key] if self._key is not None else value
        rows = np.asarray(vector, float)
        many = rows.ndim > self._dimensions
        rows = rows.reshape(rows.shape[0] if many else 1, -1)
        return np.linalg.norm(rows, axis=1, keepdims=True) if self._by_length else rows


class Tallies:
    """Peak, sum of squares and sum of each number of a channel, for many environments at once."""

    def __init__(self, count: int, channel: Channel) -> None:
        shape = (count, len(channel.names))
        self._count = np.zeros(count, int)
        self._sum, self._square, self._peak = np.zeros(shape), np.zeros(shape), np.zeros(shape)

    def clear(self, index: int) -> None:
        self._count[index] = 0
        for numbers in (self._sum, self._square, self._peak):
            numbers[index] = 0

    def add(self, rows: Any, running: Any) -> None:
        chosen = rows[running]
        self._count[running] += 1
        self._sum[running] += chosen
        self._square[running] += chosen * chosen
        self._peak[running] = np.maximum(self._peak[running], np.abs(chosen))

    def signals(self, index: int, channel: Channel) -> dict[str, float]:
        count = self._count[index]
        if not count:
            return {}
        signals = {}
        for column, name in enumerate(channel.names):
            signals[f"{name}_peak"] = float(self._peak[index, column])
            signals[f"{name}_rms"] = float(np.sqrt(self._square[index, column] / count))
            signals[f"{name}_mean"] = float(self._sum[index, column] / count)
        return signals


def channels(base: str, space: Any, names: Sequence[str] | None) -> list[Channel]:
    """What can be summarised: vectors and single numbers, also one level down in a dictionary."""
    if isinstance(space, spaces.Dict):
        return [Channel(key, inner, f"{base}_{key}", None) for key, inner in space.items() if _is_vector(inner)]
    return [Channel(None, space, base, names)] if _is_vector(space) else []


def _is_vector(space: Any) -> bool:
    if isinstance(space, spaces.Box):
        return len(space.shape) <= 1 and int(np.prod(space.shape)) <= LARGEST_VECTOR
    return (
        isinstance(space, (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary))
        and len(space.shape or ()) <= 1
    )


def contract_of(
    env: Any, of: tuple[Any, Any], names: tuple[Sequence[str] | None, Sequence[str] | None] = (None, None)
) -> Contract:
    """The interface that the spaces describe, and the control rate if the environment has a time step."""
    step_s = step_of(env)
    contract = Contract(control_hz=round(1 / step_s, 6) if step_s else None)
    contract.observation("spaces", order=names[0], space=_describe(of[0]))
    return contract.action("spaces", order=names[1], space=_describe(of[1]))


def _describe(space: Any) -> dict[str, Any]:
    description: dict[str, Any] = {"kind": type(space).__name__}
    if isinstance(space, spaces.Box):
        description |= {"shape": list(space.shape), "dtype": str(space.dtype)}
        description |= {"low": _bound(space.low), "high": _bound(space.high)}
    elif isinstance(space, spaces.Discrete):
        description |= {"n": int(space.n), "start": int(space.start)}
    elif isinstance(space, spaces.MultiDiscrete):
        description["n"] = np.asarray(space.nvec).tolist()
    elif isinstance(space, spaces.Dict):
        description["spaces"] = {key: _describe(inner) for key, inner in space.items()}
    elif isinstance(space, spaces.Tuple):
        description["spaces"] = [_describe(inner) for inner in space]
    else:
        description["shape"] = list(space.shape or ())
    return description


def _bound(values: Any) -> Any:
    """One number if all are equal, rounded to single precision. JSON has no infinity, so that becomes a word."""
    words = [float(f"{value:.6g}") if np.isfinite(value) else str(value) for value in np.ravel(values)]
    return words[0] if len(set(words)) == 1 else words if len(words) <= LARGEST_VECTOR else "various"


def step_of(env: Any) -> float | None:
    """Seconds per step, if the environment has them."""
    inside = getattr(env, "unwrapped", env)
    inside = inside.envs[0].unwrapped if getattr(inside, "envs", None) else inside
    for name in ("dt", "tau", "control_timestep"):
        step_s = getattr(inside, name, None)
        if isinstance(step_s, (int, float)) and step_s > 0:
            return float(step_s)
    return None
