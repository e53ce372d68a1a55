"""Records the episodes of running environments: what is counted for each, and how it ends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from gapwatch_client.client import Gapwatch
from gapwatch_client.episode import Episode
from gapwatch_client.gymnasium_spaces import Channel, Tallies, channels, contract_of, step_of

log = logging.getLogger("gapwatch_client")

# Keys under which environments report success in `info`.
_SUCCESS = ("is_success", "success", "task_success")


@dataclass(frozen=True)
class Ended:
    """An episode at its end, for a `success=` function to judge."""

    info: Mapping[str, Any]
    reward: float
    length: int
    terminated: bool
    truncated: bool


Judge = Callable[[Ended], bool]


class EnvRecorder:
    """What both wrappers share: one running episode per environment."""

    def __init__(
        self,
        gw: Gapwatch,
        env: Any,
        spaces: tuple[Any, Any],
        judge: Judge | None,
        names: tuple[Sequence[str] | None, Sequence[str] | None],
        fields: dict[str, Any],
        count: int,
    ) -> None:
        self._gw = gw
        self._judge = judge
        spec = getattr(env, "spec", None)
        self._threshold = getattr(spec, "reward_threshold", None)
        self.fields = {"task": getattr(spec, "id", None) or type(env.unwrapped).__name__} | fields
        if "deployment" not in fields and fields.get("domain") != "real":
            self.fields.setdefault("simulator", ("gymnasium", gymnasium.__version__))
        seen = channels("obs", spaces[0], names[0])
        done = channels("action", spaces[1], names[1])
        described = contract_of(env, spaces, (names[0], names[1]))
        self.fields.setdefault("contract", described)
        self._step_s = step_of(env)
        self.seen: list[tuple[Channel, Tallies]] = [(channel, Tallies(count, channel)) for channel in seen]
        self.done: list[tuple[Channel, Tallies]] = [(channel, Tallies(count, channel)) for channel in done]
        self.rewards = np.zeros(count)
        self.lengths = np.zeros(count, int)
        self.episodes: list[Episode | None] = [None] * count
        self.next_fields: dict[str, Any] = {}
        self._unjudged = False

    def begin(self, index: int, seed: int | None) -> None:
        self.abandon(index, "reset before it ended")
        episode = self.episodes[index] = self._gw.episode(**self.fields | self.next_fields)
        self.next_fields = {}
        if seed is not None:
            episode.provenance("seed", int(seed))
        self.rewards[index] = self.lengths[index] = 0
        for _, tallies in (*self.seen, *self.done):
            tallies.clear(index)

    def see(self, observation: Any, running: Any) -> None:
        """`running` selects the environments that the observation counts for."""
        for channel, tallies in self.seen:
            tallies.add(channel.numbers(observation), running)

    def act(self, action: Any, running: Any) -> None:
        for channel, tallies in self.done:
            tallies.add(channel.numbers(action), running)

    def end(self, index: int, info: Mapping[str, Any], *, terminated: bool, truncated: bool) -> None:
        episode = self.episodes[index]
        if episode is None:
            return
        self.episodes[index] = None
        ended = Ended(info, float(self.rewards[index]), int(self.lengths[index]), terminated, truncated)
        episode.reward(ended.reward)
        episode.metric("steps", ended.length)
        if self._step_s:
            episode.duration(ended.length * self._step_s)
        for channel, tallies in (*self.seen, *self.done):
            for name, value in tallies.signals(index, channel).items():
                episode.signal(name, value)
        succeeded = self._succeeded(ended)
        if succeeded is None:
            episode.abandon("nothing says whether it succeeded")
        elif succeeded:
            episode.succeed()
        else:
            episode.fail(labels=["truncated"] if truncated and not terminated else [])
        episode.end()

    def abandon(self, index: int, why: str) -> None:
        episode = self.episodes[index]
        self.episodes[index] = None
        if episode is not None and self.lengths[index]:
            episode.reward(float(self.rewards[index]))
            episode.metric("steps", int(self.lengths[index]))
            episode.abandon(why)
            episode.end()

    def _succeeded(self, ended: Ended) -> bool | None:
        if self._judge is not None:
            return bool(self._judge(ended))
        for name in _SUCCESS:
            if name in ended.info:
                return bool(ended.info[name])
        if self._threshold is not None:
            return bool(ended.reward >= self._threshold)
        if not self._unjudged:
            self._unjudged = True
            log.warning("nothing tells success: no is_success in info, no reward threshold, no success=…")
        return None
