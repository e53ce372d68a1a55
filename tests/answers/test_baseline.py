"""Choosing what a deployment is compared with."""

import pytest
from answers.lab import attempts, real, sim

BERLIN = "/deployments/berlin-line-3"
ISAAC = {"simulator": "isaac", "version": "4.5"}


def test_a_deployment_is_pinned_and_let_go(lab):
    lab.send([*attempts(sim, 20, 0), *attempts(sim, 5, 5, simulator={"name": "isaac", "version": "4.5"})])
    lab.send(attempts(real, 7, 3))
    with lab.project.client("admin") as client:
        pinned = client.put(f"{BERLIN}/baseline", json=ISAAC)
        assert (pinned.status_code, pinned.json()) == (200, {"deployment": "berlin-line-3", **ISAAC})
        drop = lab.ask(f"{BERLIN}/drop")
        assert (drop["baseline"]["simulator"], drop["baseline"]["chosen"]) == ("isaac", "pinned")
        assert drop["drop"]["value"] == pytest.approx(-0.2)
        assert client.delete(f"{BERLIN}/baseline").status_code == 204
    assert lab.ask(f"{BERLIN}/drop")["baseline"]["simulator"] == "mujoco"
    trail = lab.project.rows("SELECT action FROM audit_entries WHERE project_id = :p AND action LIKE 'baseline%'")
    assert len(trail) == 2


def test_a_pinned_simulator_without_episodes_of_this_policy_is_said(lab):
    lab.send([*attempts(sim, 5, 5), *attempts(real, 5, 5)])
    lab.send(attempts(sim, 5, 5, task="t2", simulator={"name": "isaac", "version": "4.5"}))
    with lab.project.client("admin") as client:
        client.put(f"{BERLIN}/baseline", json=ISAAC).raise_for_status()
    answer = lab.ask(f"{BERLIN}/drop")
    assert (answer["reason"], answer["sim"]["n"]) == ("No sim episodes of bin-pick 1.4.0 on pick-mug.", 0)
    assert [other["simulator"] for other in answer["baseline"]["alternatives"]] == ["mujoco"]


def test_what_is_not_there_cannot_be_pinned(lab):
    lab.send(attempts(real, 1, 0))
    with lab.project.client("admin") as client:
        unknown = client.put(f"{BERLIN}/baseline", json=ISAAC)
        assert (unknown.status_code, unknown.json()["errors"][0]["pointer"]) == (422, "/simulator")
        assert client.put("/deployments/elsewhere/baseline", json=ISAAC).status_code == 404
        assert client.delete("/deployments/elsewhere/baseline").status_code == 404
    with lab.project.client("read") as client:
        assert client.put(f"{BERLIN}/baseline", json=ISAAC).status_code == 403
