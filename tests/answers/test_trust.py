"""Whether a simulator can be believed, on the published SIMPLER figures."""

import pytest
from answers.lab import attempts, real, sim

# SimplerEnv (MIT), pick_coke_can: policy → (successes of 75 in real, successes of 300 in sim).
PICK_COKE_CAN = {
    "rt-2-x": (68, 236),
    "rt-1-converged": (64, 257),
    "rt-1-15pct": (69, 213),
    "rt-1-x": (57, 170),
    "rt-1-begin": (10, 8),
    "octo-base": (22, 51),
}
SIMPLER = {"simulator": {"name": "simpler", "version": "1.0"}}


def pick_coke_can():
    for policy, (k_real, k_sim) in PICK_COKE_CAN.items():
        fields = {"policy": {"name": policy, "version": "1"}, "task": "pick_coke_can"}
        yield from attempts(real, k_real, 75 - k_real, deployment=f"bench-{policy}", **fields)
        yield from attempts(sim, k_sim, 300 - k_sim, **fields, **SIMPLER)


def test_the_published_ranking_of_six_policies(lab):
    # A task that was tried in sim only, and a policy that never ran on a robot, say nothing of the ranking.
    lab.send(
        [
            *pick_coke_can(),
            *attempts(sim, 0, 50, policy={"name": "rt-2-x", "version": "1"}, task="move_near", **SIMPLER),
            *attempts(sim, 50, 0, policy={"name": "dreamer", "version": "1"}, task="pick_coke_can", **SIMPLER),
        ]
    )
    answer = lab.ask("/simulators/simpler/trust", metric="success")
    assert answer["pearson"] == pytest.approx(0.9754, abs=1e-3)
    # 0.0618 with the arguments swapped.
    assert answer["mmrv"] == pytest.approx(0.0313, abs=1e-3)
    assert "real side" in answer["convention"]
    assert answer["interval"] == pytest.approx([0.78, 0.999], abs=0.015)
    assert answer["mmrv_interval"][0] <= answer["mmrv"] <= answer["mmrv_interval"][1]
    points = {point["policy"]: point for point in answer["policies"]}
    assert points.keys() == PICK_COKE_CAN.keys()
    assert points["rt-2-x"]["sim"] == pytest.approx(236 / 300)
    assert points["rt-2-x"]["real"] == pytest.approx(68 / 75)
    # Wilson's, of 68 of 75.
    assert points["rt-2-x"]["real_interval"] == pytest.approx([0.8197, 0.9541], abs=1e-3)
    assert (points["rt-2-x"]["n_sim"], points["rt-2-x"]["n_real"], points["rt-2-x"]["tasks"]) == (300, 75, 1)
    assert len(answer["leave_one_out"]) == 6
    # Sim's favourite is rt-1-converged; the really best is rt-1-15pct.
    assert answer["regret"] == pytest.approx((69 - 64) / 75)
    assert answer["verdict"] in ("trustworthy", "undecided")
    assert (answer["simulator"], answer["version"], answer["spearman"]) == (
        "simpler",
        "1.0",
        pytest.approx(0.771, abs=1e-3),
    )


def test_below_four_policies_there_is_no_verdict(lab):
    for policy, k in (("a", 9), ("b", 5)):
        fields = {"policy": {"name": policy, "version": "1"}}
        lab.send([*attempts(sim, k, 10 - k, **fields), *attempts(real, k - 1, 11 - k, **fields)])
    answer = lab.ask("/simulators/mujoco/trust", version="3.3.0")
    assert (answer["verdict"], answer["interval"], answer["n_policies"]) == ("too few policies", None, 2)
    assert (answer["pearson"], answer["spearman"], answer["mmrv"], answer["regret"]) == (None, None, None, None)
    assert answer["reason"]


def test_versions_of_a_simulator_are_not_mixed_and_a_task_can_be_named(lab):
    other = {"simulator": {"name": "mujoco", "version": "2.0"}}
    lab.send(
        [
            *attempts(sim, 8, 2),
            *attempts(sim, 0, 4, **other),
            *attempts(real, 5, 5),
            *attempts(sim, 1, 1, task="t2"),
        ]
    )
    chosen = lab.ask("/simulators/mujoco/trust")
    assert (chosen["version"], chosen["alternatives"]) == (
        "3.3.0",
        [{"simulator": "mujoco", "version": "2.0", "n": 4}],
    )
    assert chosen["policies"][0]["sim"] == pytest.approx(0.8)
    assert lab.ask("/simulators/mujoco/trust", version="2.0")["policies"][0]["sim"] == 0
    assert lab.ask("/simulators/mujoco/trust", task="t2")["policies"] == []
    assert lab.get("/simulators/mujoco/trust", task="t3").status_code == 422
    assert lab.get("/simulators/gazebo/trust").status_code == 404
    assert lab.get("/simulators/mujoco/trust", version="9").status_code == 404


def test_policies_are_ranked_by_another_metric_in_the_direction_that_is_better(lab):
    for number, (in_sim, in_real) in enumerate([(1.0, 2.0), (2.0, 3.0), (3.0, 5.0), (4.0, 4.0)]):
        fields = {"policy": {"name": f"p{number}", "version": "1"}}
        lab.send(
            [
                *(sim(metrics={"energy_j": in_sim}, **fields) for _ in range(3)),
                *(real(metrics={"energy_j": in_real}, **fields) for _ in range(3)),
            ]
        )
    answer = lab.ask("/simulators/mujoco/trust", metric="energy_j")
    assert [(p["sim"], p["real"]) for p in answer["policies"]] == [(1, 2), (2, 3), (3, 5), (4, 4)]
    # Less energy is better: sim's favourite is the really best.
    assert answer["regret"] == 0
    assert answer["pearson"] == pytest.approx(0.8)


def test_every_task_in_every_simulator_has_its_bias(lab):
    other = {"simulator": {"name": "isaac", "version": "5.0"}}
    for policy, k_real in (("a", 60), ("b", 40)):
        fields = {"policy": {"name": policy, "version": "1"}, "task": "wipe"}
        lab.send([*attempts(real, k_real, 100 - k_real, **fields), *attempts(sim, 350, 150, **fields)])
        lab.send(attempts(sim, 5 * k_real, 500 - 5 * k_real, **fields, **other))
    lab.send(attempts(sim, 10, 0, task="never-real"))
    rows = lab.ask("/simulators/mujoco/trust")["tasks"]
    assert [(row["task"], row["simulator"], row["policies"]) for row in rows] == [
        ("wipe", "isaac", 2),
        ("wipe", "mujoco", 2),
    ]
    isaac, mujoco = rows
    assert (mujoco["sim"], mujoco["real"]) == (pytest.approx(0.7), pytest.approx(0.5))
    assert mujoco["bias"] == pytest.approx(0.2)
    assert mujoco["verdict"] == "promises 20 points too much"
    assert 0.1 < mujoco["interval"][0] < 0.2 < mujoco["interval"][1] < 0.3
    assert (isaac["bias"], isaac["verdict"]) == (pytest.approx(0.0, abs=1e-9), "too few episodes")
