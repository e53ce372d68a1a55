"""The present through the API: what it says, the windows named after it, and the fleet in its order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from answers.lab import NOON, attempts, real, sim

from gapwatch.answers.catalogue import DEPLOYMENT_ANSWERS
from gapwatch.answers.window_words import span_words

BERLIN = "/deployments/berlin-line-3"
PROMISED = (
    *("since", "why", "estimate", "regime", "sim", "drop", "verdict"),
    *("before", "moved", "robots", "computed_at"),
)


def run(successes: int, n: int, first: int = 0, **fields):
    """Successes spread evenly, one attempt every ten minutes from `first` on."""
    for i in range(n):
        good = (i * successes) // n != ((i + 1) * successes) // n
        at = NOON + timedelta(minutes=10 * (first + i))
        yield real("success" if good else "failure", at=at, **fields)


def test_the_present_of_a_deployment_that_fell(lab):
    lab.send([*run(288, 300), *run(75, 150, 300), *attempts(sim, 95, 5)])
    answer = lab.ask(f"{BERLIN}/now")
    assert set(PROMISED) <= set(answer)
    assert answer["why"] == "change"
    assert answer["estimate"]["n"] == 100
    assert answer["estimate"]["value"] == pytest.approx(0.5, abs=0.02)
    assert answer["estimate"]["window"] == "newest 100 episodes"
    assert answer["regime"]["chosen_from_data"]
    assert answer["before"]["value"] == pytest.approx(0.96, abs=0.01)
    assert answer["before"]["until"] == answer["since"]
    assert answer["moved"]["verdict"] == "fell"
    assert answer["moved"]["points"] == pytest.approx(-46, abs=2)
    assert answer["drop"]["value"] == pytest.approx(0.45, abs=0.02)
    assert answer["verdict"] == "large"
    assert answer["sim"]["n"] == 100
    # The whole history says something else: this is what the present is for.
    assert lab.ask(f"{BERLIN}/drop")["real"]["value"] == pytest.approx(0.807, abs=0.01)


def test_windows_by_name_speak_of_the_present_in_every_answer(lab):
    lab.send([*run(288, 300), *run(75, 150, 300), *attempts(sim, 95, 5, at=NOON - timedelta(days=90))])
    regime = lab.ask(f"{BERLIN}/now")["regime"]
    for kind in DEPLOYMENT_ANSWERS:
        answer = lab.ask(f"{BERLIN}/{kind.name}", window="now")
        assert answer["n_real"] == regime["n"], kind.name
        assert answer["n_sim"] == 100
        assert answer["window"]["name"] == "since the change on 7 Oct"
        assert "whole-baseline" not in [warning["code"] for warning in answer["warnings"]]
    version = lab.ask(f"{BERLIN}/drop", window="version")
    assert version["n_real"] == 450
    assert version["window"]["name"] == "release 1.4.0 since 5 Oct"
    everything = lab.ask(f"{BERLIN}/drop", window="all")
    assert everything["n_real"] == 450
    assert everything["window"]["name"] == "everything stored"
    assert lab.ask("/policies/bin-pick/drop", window="now")["n_real"] == regime["n"]
    assert lab.ask("/simulators/mujoco/trust", window="now")["policies"][0]["n_real"] == regime["n"]
    (row,) = lab.ask("/deployments", window="now")["deployments"]
    assert row["real"]["n"] == regime["n"]
    (filtered,) = lab.ask("/deployments", window="now", robot="nobody")["deployments"]
    assert filtered["real"]["n"] == 0


def test_a_release_names_its_window(lab):
    old = {"policy": {"name": "bin-pick", "version": "1.3.0"}}
    lab.send([*run(90, 100, **old), *run(28, 30, 200), *attempts(sim, 95, 5)])
    answer = lab.ask(f"{BERLIN}/now")
    assert answer["why"] == "release"
    assert answer["window"]["name"] == "release 1.4.0 since 6 Oct"
    assert (answer["before"]["n"], answer["moved"]["verdict"]) == (100, "steady")
    assert answer["estimate"]["window"] == "newest 30 episodes"


def test_another_baseline_starts_a_regime_once_it_has_episodes(lab):
    gazebo = {"simulator": {"name": "gazebo", "version": "8"}}
    lab.send([*run(45, 50), *attempts(sim, 95, 5), *attempts(sim, 8, 2, **gazebo)])
    lab.pin("berlin-line-3", "gazebo")
    assert lab.ask(f"{BERLIN}/now")["why"] == "start"
    soon = datetime.now(UTC) + timedelta(minutes=1)
    lab.send(attempts(real, 27, 3, at=soon))
    answer = lab.ask(f"{BERLIN}/now")
    assert (answer["why"], answer["regime"]["n"]) == ("baseline", 30)


def test_two_windows_at_once_are_refused(lab):
    lab.send([*run(5, 5), *attempts(sim, 5, 0)])
    answer = lab.get(f"{BERLIN}/drop", window="now", since="7d")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"][0]["pointer"] == "/query/window"
    assert lab.get(f"{BERLIN}/drop", window="yesterday").status_code == 422
    assert lab.get(f"{BERLIN}/now", since="7d").status_code == 422
    assert lab.get("/deployments/nobody/now").status_code == 404


def test_few_episodes_are_called_few_and_say_what_is_there(lab):
    lab.send([*run(3, 5), *attempts(sim, 5, 0)])
    answer = lab.ask(f"{BERLIN}/now")
    assert answer["moved"] == {"points": None, "interval": None, "verdict": "too few episodes"}
    assert answer["estimate"]["n"] == 5


def test_the_fleet_carries_the_present_and_comes_in_its_order(lab):
    fallen = [*run(288, 300, deployment="turin"), *run(60, 100, 300, deployment="turin")]
    poor = run(255, 300, deployment="lyon")
    lab.send([*fallen, *poor, *run(95, 100, 500, deployment="oslo"), *attempts(sim, 95, 5)])
    everything = lab.ask("/deployments")
    assert [row["slug"] for row in everything["deployments"]] == ["lyon", "oslo", "turin"]
    assert everything["deployments"][2]["now"]["moved"]["verdict"] == "fell"
    by_now = lab.ask("/deployments", order="now")["deployments"]
    assert [row["slug"] for row in by_now] == ["turin", "lyon", "oslo"]
    assert lab.ask("/deployments", order="newest")["deployments"][0]["slug"] == "oslo"
    first = lab.ask("/deployments", order="now", limit=2)
    assert first["next"] == "lyon"
    assert [row["slug"] for row in lab.ask("/deployments", order="now", after="lyon")["deployments"]] == ["oslo"]
    assert lab.get("/deployments", order="now", after="nobody").status_code == 422


def test_the_robot_that_stands_out_is_marked(lab):
    robots = [
        record
        for number, successes in enumerate((93, 92, 60, 94))
        for record in run(successes, 100, 100 * number, robot=f"osaka-{number + 1}")
    ]
    # They worked side by side.
    for number, record in enumerate(robots):
        record["started_at"] = (NOON + timedelta(minutes=(number % 100) * 4 + number // 100)).isoformat()
    lab.send([*robots, *attempts(sim, 95, 5)])
    marked = {one["robot"]: one["than_others"] for one in lab.ask(f"{BERLIN}/now")["robots"]}
    assert marked == {"osaka-1": None, "osaka-2": None, "osaka-3": "below", "osaka-4": None}


@pytest.mark.parametrize(
    ("since", "until", "spelled", "words"),
    [
        (None, None, None, "everything stored"),
        (datetime(2026, 11, 11, tzinfo=UTC), None, "7d", "last 7 days"),
        (datetime(2026, 10, 24, tzinfo=UTC), None, "2026-10-24T00:00:00Z", "since 24 Oct"),
        (datetime(2025, 10, 24, tzinfo=UTC), None, None, "since 24 Oct 2025"),
        (None, datetime(2026, 10, 30, tzinfo=UTC), None, "until 30 Oct"),
        (datetime(2026, 10, 24, tzinfo=UTC), datetime(2026, 10, 30, tzinfo=UTC), None, "24 Oct to 30 Oct"),
    ],
)
def test_a_window_is_named_after_what_it_is(since, until, spelled, words):
    assert span_words(since, until, datetime(2026, 11, 18, tzinfo=UTC), spelled) == words
