"""Wrappers for Gymnasium environments, single and vector, that record every episode.

    env = RecordEpisodes(gymnasium.make("CartPole-v1"), gw, policy="balance@1")

Outcome, return, length, seed, summaries of observations and actions, and the contract taken from the spaces.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate

from gapwatch_client.client import Gapwatch
from gapwatch_client.env_recorder import Ended, EnvRecorder, Judge
from gapwatch_client.episode import Episode

__all__ = ["Ended", "RecordEpisodes", "RecordVectorEpisodes"]

log = logging.getLogger("gapwatch_client")


def _guarded(call: Callable[..., None], *arguments: Any, **named: Any) -> None:
    """Recording must not stop a training run."""
    try:
        call(*arguments, **named)
    except Exception:
        log.exception("an episode could not be recorded")


class RecordEpisodes(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Wrap one environment. Fields are those of `Gapwatch.episode`; the task defaults to the environment's id."""

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        gw: Gapwatch,
        *,
        success: Judge | None = None,
        observation_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        proposes: Callable[[Any], Any] | None = None,
        executed_by: Any = None,
        tolerance: Any = None,
        **fields: Any,
    ) -> None:
        """In shadow, `proposes` is the candidate: it is given every observation, and what it would do is compared
        with the action that `executed_by` chose. That is of a real robot: `deployment=` is needed."""
        super().__init__(env)
        spaces = (env.observation_space, env.action_space)
        if proposes is not None:
            _check_shadow(executed_by, fields)
        self._proposes, self._executed_by, self._tolerance = proposes, executed_by, tolerance
        self._seen: Any = None
        self._recorder = EnvRecorder(gw, env, spaces, success, (observation_names, action_names), fields, 1)

    @property
    def episode(self) -> Episode | None:
        """The running episode, for conditions and signals of your own."""
        return self._recorder.episodes[0]

    def describe_next(self, **fields: Any) -> None:
        """Set fields of the episode that the next reset begins, and of no other: `pair=`, `conditions=`."""
        self._recorder.next_fields = fields

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        _guarded(self._recorder.begin, 0, seed)
        self._seen = observation
        if self._proposes is not None and self.episode is not None:
            self.episode.shadow(self._executed_by, tolerance=self._tolerance)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if self._proposes is not None:
            _guarded(self._propose, action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        _guarded(self._note, observation, action, float(reward), terminated, truncated, info)
        self._seen = observation
        return observation, reward, terminated, truncated, info

    def _propose(self, executed: Any) -> None:
        if self._proposes is not None and self.episode is not None:
            self.episode.proposed(self._proposes(self._seen), executed)

    def _note(
        self, observation: Any, action: Any, reward: float, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> None:
        recorder = self._recorder
        recorder.rewards[0] += reward
        recorder.lengths[0] += 1
        recorder.see(observation, slice(None))
        recorder.act(action, slice(None))
        if terminated or truncated:
            recorder.end(0, info, terminated=bool(terminated), truncated=bool(truncated))

    def close(self) -> None:
        _guarded(self._recorder.abandon, 0, "closed before it ended")
        super().close()


class RecordVectorEpisodes(VectorWrapper):
    """Wrap a vector environment: an episode for each of its environments, in every autoreset mode.

    In shadow, `proposes` is given the observations of all environments and returns an action for each.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        gw: Gapwatch,
        *,
        success: Judge | None = None,
        observation_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        proposes: Callable[[Any], Any] | None = None,
        executed_by: Any = None,
        tolerance: Any = None,
        **fields: Any,
    ) -> None:
        super().__init__(env)
        if proposes is not None:
            _check_shadow(executed_by, fields)
        self._proposes, self._executed_by, self._tolerance = proposes, executed_by, tolerance
        self._seen: Any = None
        spaces = (env.single_observation_space, env.single_action_space)
        names = (observation_names, action_names)
        self._recorder = EnvRecorder(gw, env, spaces, success, names, fields, env.num_envs)
        self._mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self._ended = np.zeros(env.num_envs, bool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        mask = (options or {}).get("reset_mask")  # the environment removes it from the options
        observations, infos = self.env.reset(seed=seed, options=options)
        for index in range(self.num_envs):
            if mask is None or mask[index]:
                env_seed = seed + index if isinstance(seed, int) else seed[index] if seed is not None else None
                _guarded(self._begin, index, env_seed)
                self._ended[index] = False
        self._seen = observations
        return observations, infos

    def _begin(self, index: int, seed: Any) -> None:
        self._recorder.begin(index, seed)
        episode = self._recorder.episodes[index]
        if self._proposes is not None and episode is not None:
            episode.shadow(self._executed_by, tolerance=self._tolerance)

    def _propose(self, executed: Any) -> None:
        """Of the environments whose episode goes on; where one ended, the next step only resets it."""
        if self._proposes is None:
            return
        space = self.action_space
        proposed = list(iterate(space, self._proposes(self._seen)))
        done = list(iterate(space, executed))
        for index in np.flatnonzero(~self._ended).tolist():
            episode = self._recorder.episodes[index]
            if episode is not None:
                episode.proposed(proposed[index], done[index])

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        _guarded(self._propose, actions)
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        _guarded(self._note, observations, actions, rewards, terminated, truncated, infos)
        self._seen = observations
        return observations, rewards, terminated, truncated, infos

    def _note(
        self, observations: Any, actions: Any, rewards: Any, terminated: Any, truncated: Any, infos: dict[str, Any]
    ) -> None:
        recorder = self._recorder
        # In NEXT_STEP mode this step only reset the environments that ended in the last one: no episode has it.
        running = ~self._ended
        if self._mode == AutoresetMode.NEXT_STEP:
            for index in np.flatnonzero(self._ended).tolist():
                self._begin(index, None)
        recorder.rewards[running] += np.asarray(rewards)[running]
        recorder.lengths[running] += 1
        recorder.act(actions, running)
        done = (np.asarray(terminated) | np.asarray(truncated)) & running
        # In SAME_STEP mode the observation of an environment that is done is the first of its next episode.
        recorder.see(observations, running & ~done if self._mode == AutoresetMode.SAME_STEP else running)
        for index in np.flatnonzero(done).tolist():
            info = _info_of(infos.get("final_info", infos), index)
            recorder.end(index, info, terminated=bool(terminated[index]), truncated=bool(truncated[index]))
            if self._mode == AutoresetMode.SAME_STEP:
                self._begin(index, None)
        if self._mode == AutoresetMode.NEXT_STEP:
            self._ended = done
        elif self._mode == AutoresetMode.DISABLED:
            self._ended |= done

    def close(self, **named: Any) -> None:
        for index in range(self.num_envs):
            _guarded(self._recorder.abandon, index, "closed before it ended")
        super().close(**named)


def _check_shadow(executed_by: Any, fields: dict[str, Any]) -> None:
    if executed_by is None or "deployment" not in fields:
        raise ValueError("in shadow, say executed_by= and deployment=: something else drives a real robot")
    fields["stage"] = "shadow"


def _info_of(infos: Mapping[str, Any], index: int) -> dict[str, Any]:
    """The info of one environment of a vector environment: `_name` masks which of them have `name`."""
    info = {}
    for name, values in infos.items():
        mask = infos.get(f"_{name}")
        if not name.startswith("_") and (mask is None or mask[index]):
            info[name] = _info_of(values, index) if isinstance(values, dict) else values[index]
    return info
