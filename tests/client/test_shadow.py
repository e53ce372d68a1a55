"""What a candidate proposes, counted by the client: against what was done, and against the contract's limits."""

import gymnasium
import numpy as np
import pytest
from gapwatch_client import Contract, Gapwatch
from gapwatch_client.gymnasium import RecordEpisodes, RecordVectorEpisodes
from gapwatch_client.shadow import executor, limits_of
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv


class Recorder(Gapwatch):
    """Keeps what it would send."""

    def __init__(self, tmp_path, **defaults):
        super().__init__("http://127.0.0.1:9", "gw_test", tmp_path, **defaults)
        self.sent = []

    def send(self, record):
        self.sent.append(record)


@pytest.fixture
def gw(tmp_path):
    with Recorder(tmp_path, deployment="lisbon", task="pick", policy="bin-pick@1.4.0") as client:
        yield client


def test_steps_are_compared_within_a_tolerance_and_with_the_limits_of_the_contract(gw):
    contract = Contract().action("arm", order=["j1", "j2"], unit="rad/s", limits=[-1, 1])
    with gw.episode(contract=contract) as episode:
        episode.shadow("bin-pick@1.3.0", tolerance=0.05)
        episode.proposed([0.0, 0.5], [0.04, 0.5])
        episode.proposed([0.0, 0.5], [0.06, 0.5])
        episode.proposed([1.2, 0.0], [1.2, 0.0], critical=True)
        episode.proposed({"arm": [0.97, 0.0]}, {"arm": [0.97, 0.0]}, critical=True)
        episode.proposed([float("nan"), 0.0], [0.0, 0.0])
    [record] = gw.sent
    assert record["stage"] == "shadow"
    assert record["shadow"] == {
        "executed_by": {"name": "bin-pick", "version": "1.3.0"},
        "steps": 5,
        "agree": 3,
        "infeasible": 2,
        "near_limit": 1,
        "critical": {"steps": 2, "agree": 2, "infeasible": 1, "near_limit": 1},
    }


def test_what_was_not_looked_at_is_left_out(gw):
    with gw.episode() as episode:
        episode.shadow("human", tolerance=[0.1, 0.2])
        episode.proposed([0.0, 0.0], [0.05, 0.15], out_of_distribution=True)
    assert gw.sent[0]["shadow"] == {
        "executed_by": "human",
        "steps": 1,
        "agree": 1,
        "out_of_distribution": 1,
    }


def test_counts_of_the_caller_are_sent_as_they_are(gw):
    with gw.episode() as episode:
        episode.shadow("other", steps=10, agree=9, critical={"steps": 2, "agree": 1})
    assert gw.sent[0]["shadow"] == {
        "executed_by": "other", "steps": 10, "agree": 9, "critical": {"steps": 2, "agree": 1},
    }  # fmt: skip


def test_steps_around_the_first_contact_are_critical(gw, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("gapwatch_client.shadow.time.monotonic", lambda: now[0])
    with gw.episode() as episode:
        episode.shadow("human", tolerance=0.1, critical_s=0.5)
        for tenth in range(30):
            now[0] = 100 + tenth / 10
            if tenth in (10, 20):
                episode.contact()
            episode.proposed([0.0], [0.0 if tenth != 12 else 1.0])
    assert gw.sent[0]["shadow"]["critical"] == {"steps": 11, "agree": 10}


def test_a_wrong_call_loses_only_itself(gw):
    with gw.episode() as episode:
        episode.proposed([0.0], [0.0])
        episode.shadow("human", tolerance=0.1)
        episode.proposed("no numbers", [0.0])
        episode.proposed([0.0], [0.0])
    assert gw.sent[0]["shadow"]["steps"] == 1
    assert gw.status()["complaints"]["proposed"] == 2


def test_limits_are_read_however_they_are_written():
    written = Contract().action("a", limits=[-1, 1]).action("b", limits=[[-1, 1], [-2, 2]]).action("c").as_dict()
    assert limits_of(written) == {"a": (-1, 1), "b": ([-1, -2], [1, 2])}
    assert limits_of(None) == limits_of({"action": None}) == {}
    assert executor(("pick", 2)) == executor({"name": "pick", "version": "2"}) == executor("pick@2")


class Line(gymnasium.Env):
    observation_space = Box(-1, 1, (1,), np.float32)
    action_space = Box(-0.5, 0.5, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return np.array([0.0], np.float32), {}

    def step(self, action):
        self.at += 1
        return np.array([self.at / 10], np.float32), 0.0, self.at == 4, False, {"is_success": True}


def test_a_wrapped_environment_asks_the_candidate_beside_what_drives(gw):
    env = RecordEpisodes(
        Line(),
        gw,
        proposes=lambda seen: seen * 2,
        executed_by="bin-pick@1.3.0",
        tolerance=0.25,
        deployment="lisbon",
    )
    env.reset()
    for _ in range(4):
        env.step(np.array([0.0], np.float32))
    [record] = gw.sent
    assert record["stage"] == "shadow" and record["domain"] == "real"
    # It proposes 0.0, 0.2, 0.4 and 0.6, the last beyond the space.
    assert record["shadow"] == {
        "executed_by": {"name": "bin-pick", "version": "1.3.0"},
        "steps": 4, "agree": 2, "infeasible": 1, "near_limit": 0,
    }  # fmt: skip
    with pytest.raises(ValueError, match="executed_by"):
        RecordEpisodes(Line(), gw, proposes=lambda seen: seen)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_environment_asks_the_candidate_for_each_of_its_robots(gw, mode):
    def propose(seen):
        return np.concatenate([seen[:1] * 2, seen[1:] * 0])

    env = SyncVectorEnv([Line, Line], autoreset_mode=mode)
    env = RecordVectorEpisodes(
        env, gw, proposes=propose, executed_by="bin-pick@1.3.0", tolerance=0.25, deployment="lisbon"
    )
    env.reset()
    # Twice: the step in which some modes only reset is nobody's.
    for _ in range(9 if mode == AutoresetMode.NEXT_STEP else 8):
        _, _, ended, *_ = env.step(np.zeros((2, 1), np.float32))
        if mode == AutoresetMode.DISABLED and ended.all():
            env.reset(options={"reset_mask": ended})
    counts = [{name: record["shadow"][name] for name in ("steps", "agree", "infeasible")} for record in gw.sent]
    assert counts == [{"steps": 4, "agree": 2, "infeasible": 1}, {"steps": 4, "agree": 4, "infeasible": 0}] * 2
    assert {record["stage"] for record in gw.sent} == {"shadow"}
    with pytest.raises(ValueError, match="executed_by"):
        RecordVectorEpisodes(SyncVectorEnv([Line]), gw, proposes=propose)
