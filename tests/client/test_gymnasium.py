"""Gymnasium's own environments, wrapped: single and vector, in every mode of automatic reset."""

import gymnasium
import numpy as np
import pytest
from gapwatch_client import Gapwatch
from gapwatch_client.gymnasium import RecordEpisodes, RecordVectorEpisodes
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv


class Countdown(gymnasium.Env):
    """Ends after as many steps as its seed says; succeeds when that is even. Its observation counts the steps."""

    observation_space = Dict({"joints": Box(-1, 1, (2,)), "camera": Box(0, 255, (8, 8, 3), np.uint8)})
    action_space = Discrete(3)
    dt = 0.02

    def __init__(self, length=4):
        self.length = length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = self.length
        return self._seen(), {}

    def step(self, action):
        self.left -= 1
        over = self.left == 0
        return self._seen(), 0.5, over, False, {"is_success": self.length % 2 == 0} if over else {}

    def _seen(self):
        steps = (self.length - self.left) / 10
        return {"joints": np.array([steps, -1.0], np.float32), "camera": np.zeros((8, 8, 3), np.uint8)}


class Recorder(Gapwatch):
    """Keeps what it would send."""

    def __init__(self, tmp_path):
        super().__init__("http://127.0.0.1:9", "gw_test", tmp_path)
        self.sent = []

    def send(self, record):
        self.sent.append(record)


@pytest.fixture
def gw(tmp_path):
    with Recorder(tmp_path) as client:
        yield client


def test_a_single_environment_records_outcome_return_length_seed_and_summaries(gw):
    env = RecordEpisodes(Countdown(4), gw, policy="count@1")
    for seed in (7, 8):
        env.reset(seed=seed)
        env.episode.condition("lighting", "dim")
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(2)
            over = terminated or truncated
    first, second = gw.sent
    assert (first["outcome"], first["reward"], first["metrics"]) == ("success", 2.0, {"steps": 4})
    assert [r["provenance"]["seed"] for r in gw.sent] == [7, 8]
    assert first["conditions"] == {"lighting": "dim"}
    assert first["signals"]["obs_joints_0_peak"] == pytest.approx(0.4)
    assert first["signals"]["obs_joints_1_mean"] == pytest.approx(-1)
    assert first["signals"]["action_rms"] == 2
    assert first["domain"] == "sim"
    assert first["simulator"]["name"] == "gymnasium"
    assert first["contract"]["control_hz"] == 50
    assert first["contract"]["action"]["spaces"]["space"] == {"kind": "Discrete", "n": 3, "start": 0}
    assert first["contract"]["observation"]["spaces"]["space"]["spaces"]["joints"]["high"] == 1
    assert second["signals"] == first["signals"], "nothing is carried over"


def test_success_is_told_by_info_by_a_function_or_by_the_threshold_and_else_by_nobody(gw, caplog):
    def run(env):
        env.reset(seed=1)
        while not any(env.step(env.action_space.sample())[2:4]):
            pass
        return gw.sent[-1]

    assert run(RecordEpisodes(Countdown(3), gw))["outcome"] == "failure"
    assert run(RecordEpisodes(Countdown(3), gw, success=lambda ended: ended.length == 3))["outcome"] == "success"
    cart = gymnasium.make("CartPole-v1")
    record = run(RecordEpisodes(cart, gw, observation_names=["x", "v", "theta", "omega"]))
    assert (record["outcome"], record["task"]) == ("failure", "CartPole-v1"), "chance does not reach 475"
    assert record["signals"]["obs_theta_peak"] > 0
    assert record["contract"]["observation"]["spaces"]["order"] == ["x", "v", "theta", "omega"]
    pendulum = run(RecordEpisodes(gymnasium.make("Pendulum-v1"), gw))
    assert pendulum["outcome"] == "abandoned"
    assert "nothing tells success" in caplog.text


def test_an_episode_that_is_reset_or_closed_early_is_abandoned_and_an_error_of_ours_stops_nobody(gw, caplog):
    env = RecordEpisodes(Countdown(4), gw, success=lambda ended: 1 / 0)
    env.reset()
    env.step(0)
    env.reset()
    env.step(0)
    env.close()
    assert [r["outcome"] for r in gw.sent] == ["abandoned", "abandoned"]
    env.reset()
    for _ in range(4):
        env.step(0)
    assert "could not be recorded" in caplog.text


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_each_environment_of_a_vector_has_episodes_of_its_own(gw, mode):
    lengths = [2, 3, 5]
    env = SyncVectorEnv([lambda n=n: Countdown(n) for n in lengths], autoreset_mode=mode)
    env = RecordVectorEpisodes(env, gw, policy="count@1")
    env.reset(seed=10)
    for _ in range(12):
        _, _, terminated, truncated, _ = env.step(np.array([1, 1, 1]))
        over = terminated | truncated
        if mode == AutoresetMode.DISABLED and over.any():
            env.reset(options={"reset_mask": over})
    env.close()
    ended = [r for r in gw.sent if r["outcome"] != "abandoned"]
    per_length = {n: [r for r in ended if r["metrics"]["steps"] == n] for n in lengths}
    # Resetting in the next step takes a step of its own.
    cost = 1 if mode == AutoresetMode.NEXT_STEP else 0
    assert {n: len(found) for n, found in per_length.items()} == {n: (12 + cost) // (n + cost) for n in lengths}
    assert sum(map(len, per_length.values())) == len(ended)
    for n, found in per_length.items():
        assert {r["outcome"] for r in found} == {"success" if n % 2 == 0 else "failure"}
        assert {r["reward"] for r in found} == {n * 0.5}
        last = n if mode != AutoresetMode.SAME_STEP else n - 1
        assert all(r["signals"]["obs_joints_0_peak"] == pytest.approx(last / 10) for r in found)
    assert sorted(r["provenance"]["seed"] for r in ended if "provenance" in r) == [10, 11, 12]


def test_a_vector_of_a_real_environment_arrives_at_the_service(project, tmp_path):
    env = gymnasium.make_vec("CartPole-v1", num_envs=4)
    with Gapwatch(project.url, project.keys["ingest"], tmp_path, policy="random@1") as gw:
        wrapped = RecordVectorEpisodes(env, gw)
        wrapped.reset(seed=3)
        wrapped.action_space.seed(3)
        for _ in range(200):
            wrapped.step(wrapped.action_space.sample())
        wrapped.close()
        assert gw.flush()
        assert gw.status()["refused"] == 0
    assert project.stored() > 20
