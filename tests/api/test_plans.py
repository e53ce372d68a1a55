"""Plans over the API: made for each goal, carried out by episodes that name them, and read back."""

import csv
import io

import pytest

from parts import episode

SIMULATOR = {"name": "mujoco", "version": "3.3.0"}
LIGHTS = ("day", "dim", "dark")


def sims(seeds=True):
    return [
        episode(
            domain="sim",
            deployment=None,
            simulator=SIMULATOR,
            conditions={"light": LIGHTS[place % 3], "mug": "blue" if place % 2 else "red"},
            provenance={"seed": str(place)} if seeds else None,
            outcome="failure" if place % 12 == 0 else "success",
        )
        for place in range(240)
    ]


def reals(count=40, **more):
    """By day and in dim light, where it fails more; never in the dark."""
    return [
        episode(
            conditions={"light": LIGHTS[place % 2], "mug": "blue" if place % 4 < 2 else "red"},
            duration_s=60.0,
            outcome="failure" if place % 2 and place % 3 else "success",
            **more,
        )
        for place in range(count)
    ]


@pytest.fixture
def planned(project, settled):
    with project.client() as client:
        answer = client.post("/episodes/batch", json=[*sims(), *reals()])
    assert answer.json()["accepted"] == 280, answer.text
    settled(project)
    return project


def plan(project, expected=201, **body):
    with project.client("admin") as client:
        answer = client.post("/deployments/berlin-line-3/plans", json=body)
    assert answer.status_code == expected, answer.text
    return answer.json()


def read(project, path):
    with project.client("read") as client:
        answer = client.get(path)
    assert answer.is_success, answer.text
    return answer


def test_a_plan_is_made_carried_out_and_compared(planned, settled):
    made = plan(planned, goal="verdict", episodes=60)
    assert sum(cell["episodes"] for cell in made["cells"]) == 60
    assert min(cell["episodes"] for cell in made["cells"]) >= 5
    first = made["cells"][0]
    assert first["conditions"]["light"] == "dark", "what real never met comes first"
    assert "no real episode yet" in first["why"]
    assert made["predicted"]["probability"] == 0.8
    low, high = made["predicted"]["between"]
    assert low < made["predicted"]["interval_width"] < high
    assert all(len(cell["seeds"]) == min(cell["episodes"], 40) for cell in made["cells"])
    before = read(planned, f"/plans/{made['id']}").json()["obtained"]
    assert (before["state"], before["episodes"], before["remaining"]) == ("not begun", 0, 60)

    trials = [
        episode(plan=made["id"], conditions=cell["conditions"], outcome="failure" if at % 5 == 0 else "success")
        for cell in made["cells"]
        for at in range(cell["episodes"])
    ]
    half = len(trials) // 2
    strays = [
        episode(plan=made["id"], conditions={"light": "day"}),
        episode(plan=made["id"], policy={"name": "bin-pick", "version": "9"}, conditions=first["conditions"]),
    ]
    with planned.client() as client:
        assert client.post("/episodes/batch", json=[*trials[:half], *strays]).json()["accepted"] == half + 2
        by_session = [{**one, "session": f"plan-{made['id']}", "plan": None} for one in trials[half:]]
        by_session = [{name: value for name, value in one.items() if value is not None} for one in by_session]
        read_back = read(planned, f"/episodes/{trials[0]['id']}").json()
        assert read_back["plan"] == made["id"]
        under_way = read(planned, f"/plans/{made['id']}").json()["obtained"]
        assert under_way["state"] == "under way"
        assert under_way["elsewhere"] == 2
        assert client.post("/episodes/batch", json=by_session).json()["accepted"] == len(by_session)
    after = read(planned, f"/plans/{made['id']}").json()["obtained"]
    assert (after["state"], after["remaining"]) == ("done", 0)
    assert after["interval"][0] < after["value"] < after["interval"][1]
    assert after["of_predicted"] == pytest.approx(
        after["interval_width"] / made["predicted"]["interval_width"], abs=1e-3
    )
    listed = read(planned, "/deployments/berlin-line-3/plans").json()
    assert [one["id"] for one in listed["plans"]] == [made["id"]]
    assert listed["calibration"]["plans"] == 1
    assert listed["calibration"]["points"][0]["obtained"] == after["interval_width"]


def test_an_operator_gets_a_table_and_the_same_question_the_same_plan(planned):
    made, again = (plan(planned, goal="verdict", episodes=30) for _ in range(2))
    assert made["cells"] == again["cells"]
    assert made["predicted"] == again["predicted"]
    answer = read(planned, f"/plans/{made['id']}?format=csv")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == len(made["cells"])
    assert rows[0]["light"] == made["cells"][0]["conditions"]["light"]
    assert sum(int(row["remaining"]) for row in rows) == 30


def test_set_ups_leave_fewer_cells_and_coverage_visits_what_real_has_not_seen(planned):
    free = plan(planned, goal="verdict", robot_hours=2)
    costly = plan(planned, goal="verdict", robot_hours=2, setup_minutes=30)
    assert len(costly["cells"]) < len(free["cells"])
    assert costly["budget"]["planned_hours"] <= 2
    assert costly["budget"]["episode_minutes"] == 1.0
    uncovered = plan(planned, goal="coverage", episodes=10)
    assert {cell["conditions"]["light"] for cell in uncovered["cells"]} == {"dark"}
    assert all(cell["empty"] for cell in uncovered["cells"])


def test_a_cause_is_told_apart_by_changing_one_thing(planned):
    made = plan(planned, goal="cause", episodes=40)
    usual = next(cell for cell in made["cells"] if "held against" in cell["why"])
    others = [cell for cell in made["cells"] if cell is not usual]
    assert "dim" in {cell["conditions"]["light"] for cell in others}
    for cell in others:
        assert len(usual["conditions"].items() - cell["conditions"].items()) == 1
    assert 0 <= made["predicted"]["reaches_goal"] <= 1


def test_a_gate_is_run_ahead(planned):
    assert plan(planned, 422, goal="gate", episodes=40)["errors"][0]["pointer"] == "/body/goal"
    criteria = [
        {"id": "drop", "kind": "max_drop", "stage": "supervised"},
        {"id": "many", "kind": "min_episodes", "limit": 30, "stage": "supervised"},
        {
            "id": "cells",
            "kind": "cells_covered",
            "limit": 0.99,
            "episodes": 6,
            "conditions": {"light": list(LIGHTS)},
            "stage": "supervised",
        },
    ]
    with planned.client("admin") as client:
        body = {"margin": 0.2, "budget": {"episodes": 400}, "criteria": criteria}
        answer = client.put("/deployments/berlin-line-3/rollout", json={"stage": "supervised", "plan": body})
    assert answer.is_success, answer.text
    made = plan(planned, goal="gate", episodes=60)
    assert {cell["conditions"]["light"] for cell in made["cells"]} == set(LIGHTS)
    assert all(cell["episodes"] >= 6 for cell in made["cells"])
    evidence = {one["id"]: one for one in made["predicted"]["evidence"]}
    assert evidence["many"]["reaches"] == evidence["cells"]["reaches"] == 1.0
    assert 0 <= evidence["drop"]["reaches"] <= 1
    assert evidence["drop"]["e_range"][0] <= evidence["drop"]["e_range"][1]
    assert made["predicted"]["reaches_goal"] == evidence["drop"]["reaches"]


def test_what_cannot_be_planned_says_why(planned):
    for body, field in (
        ({"goal": "verdict"}, "episodes"),
        ({"goal": "verdict", "episodes": 10, "robot_hours": 1}, "episodes"),
        ({"goal": "verdict", "episodes": 4}, "episodes"),
        ({"goal": "verdict", "robot_hours": 0.01}, "robot_hours"),
        ({"goal": "verdict", "robot_hours": 9999, "episode_minutes": 0.001}, "robot_hours"),
        ({"goal": "luck", "episodes": 50}, "goal"),
        ({"goal": "verdict", "episodes": 0}, "episodes"),
    ):
        assert plan(planned, 422, **body)["errors"][0]["pointer"] == f"/body/{field}"


def test_a_deployment_without_sim_cannot_be_compared(project, settled):
    with project.client() as client:
        client.post("/episodes/batch", json=reals(10))
    settled(project)
    assert "No sim episodes" in plan(project, 422, goal="verdict", episodes=50)["detail"]
    with project.client("admin") as client:
        assert (
            client.post("/deployments/nowhere/plans", json={"goal": "verdict", "episodes": 9}).status_code == 404
        )


def test_without_seeds_nothing_is_paired(project, settled):
    with project.client() as client:
        client.post("/episodes/batch", json=[*sims(seeds=False), *reals()])
    settled(project)
    made = plan(project, goal="verdict", episodes=40, paired=True)
    assert not any("seeds" in cell for cell in made["cells"])
    assert "provenance" in made["reason"]
    assert plan(project, goal="verdict", episodes=40)["reason"] is None


def test_a_plan_number_is_a_number(project):
    with project.client() as client:
        for wrong in (0, "twelve", 1.5, 2**31):
            answer = client.post("/episodes", json=episode(plan=wrong))
            assert answer.status_code == 422, answer.text
            assert answer.json()["errors"][0]["pointer"].endswith("/plan")
        assert client.post("/episodes", json=episode(plan=7)).is_success
    with project.client("read") as client:
        assert client.get("/plans/7").status_code == 404
