"""Which episodes an answer is about: windows to the second, filters on both sides, and what they leave."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest
from answers.lab import NOON, attempts, real, sim

BERLIN = "/deployments/berlin-line-3"
DROP = f"{BERLIN}/drop"
DAY = timedelta(days=1)


def test_a_window_is_exact_where_it_begins_and_ends_within_a_day(lab):
    """Hand-counted: one success every hour for three days, one failure at every noon."""
    hours = [real(at=NOON + timedelta(hours=n)) for n in range(72)]
    noons = [real("failure", at=NOON + n * DAY) for n in range(3)]
    lab.send([*hours, *noons, *attempts(sim, 10, 0)])
    answer = lab.ask(DROP, since="2026-10-05T12:00:01Z", until="2026-10-07T12:00:00Z")
    # 47 hours after the first noon and before the third, and the failure of the second.
    assert (answer["real"]["successes"], answer["real"]["n"]) == (47, 48)
    assert answer["window"] == {
        "since": "2026-10-05T12:00:01Z",
        "until": "2026-10-07T12:00:00Z",
        "name": answer["window"]["name"],
    }
    within_an_hour = lab.ask(DROP, since="2026-10-06T11:30:00Z", until="2026-10-06T12:30:00Z")
    assert (within_an_hour["real"]["successes"], within_an_hour["real"]["n"]) == (1, 2)
    from_noon_on = lab.ask(DROP, since="2026-10-07T12:00:00Z")
    assert (from_noon_on["real"]["successes"], from_noon_on["real"]["n"]) == (24, 25)
    everything = lab.ask(DROP)
    assert (everything["real"]["successes"], everything["real"]["n"]) == (72, 75)
    # The other answers speak of the same episodes.
    ledger = lab.ask(f"{BERLIN}/ledger", since="2026-10-05T12:00:01Z", until="2026-10-07T12:00:00Z")
    assert (ledger["n_real"], ledger["drop"]) == (48, pytest.approx(1 / 48))
    failures = lab.ask(f"{BERLIN}/failures", since="2026-10-05T12:00:01Z", until="2026-10-07T12:00:00Z")
    assert failures["groups"][0]["real"]["failures"] == 1


def test_a_window_over_months_and_days_adds_up(lab):
    start = datetime(2026, 6, 28, 6, tzinfo=UTC)
    lab.send([*(real(at=start + n * DAY) for n in range(80)), *attempts(sim, 5, 0)])
    # From 28 June 06:00 daily; the window leaves out the first two and everything from 1 September 06:00 on.
    answer = lab.ask(DROP, since="2026-06-29T06:00:01Z", until="2026-09-01T06:00:00Z")
    assert answer["real"]["n"] == 63
    assert lab.ask(DROP, since="2026-06-29T06:00:00Z", until="2026-09-01T06:00:01Z")["real"]["n"] == 65


def test_without_sim_episodes_in_the_window_the_whole_baseline_is_used_and_said(lab):
    lab.send(
        [*attempts(sim, 9, 1, at=NOON - 90 * DAY), *attempts(real, 5, 5), *attempts(real, 5, 0, at=NOON - DAY)]
    )
    answer = lab.ask(DROP, since="2026-10-05T00:00:00Z")
    assert (answer["sim"]["n"], answer["real"]["n"]) == (10, 10)
    assert answer["baseline"]["window"] is None
    assert [w["code"] for w in answer["warnings"]] == ["whole-baseline"]
    lab.send(attempts(sim, 3, 0))
    within = lab.ask(DROP, since="2026-10-05T00:00:00Z")
    assert (within["sim"]["n"], within["baseline"]["n"]) == (3, 3)
    assert within["baseline"]["window"] == {"since": "2026-10-05T00:00:00Z", "until": None}
    assert within["warnings"] == []


def test_a_condition_acts_on_both_sides(lab):
    dim, bright = {"conditions": {"lighting": "dim"}}, {"conditions": {"lighting": "bright"}}
    lab.send([*attempts(sim, 8, 2, **dim), *attempts(sim, 10, 0, **bright), *attempts(sim, 1, 0)])
    lab.send([*attempts(real, 2, 8, **dim), *attempts(real, 9, 1, **bright), *attempts(real, 1, 1)])
    answer = lab.ask(DROP, condition="lighting:dim")
    assert (answer["sim"]["n"], answer["real"]["n"]) == (10, 10)
    assert answer["drop"]["value"] == pytest.approx(0.6)
    assert answer["filter"] == {"condition": ["lighting:dim"]}
    either = lab.ask(DROP, condition=["lighting:dim", "lighting:bright"])
    assert (either["sim"]["n"], either["real"]["n"]) == (20, 20)
    not_given = lab.ask(DROP, condition="lighting:")
    assert (not_given["sim"]["n"], not_given["real"]["n"]) == (1, 2)
    ledger = lab.ask(f"{BERLIN}/ledger", condition="lighting:dim")
    assert (ledger["n_real"], ledger["drop"]) == (10, pytest.approx(0.6))
    assert lab.ask("/deployments", condition="lighting:dim")["deployments"][0]["real"]["n"] == 10


def test_numbers_and_truth_values_are_conditions_too(lab):
    lab.send([*attempts(sim, 4, 0, conditions={"mass_kg": 0.3, "human_present": True, "clutter": 3})])
    lab.send([*attempts(real, 2, 0, conditions={"mass_kg": 0.45, "human_present": True, "clutter": 3})])
    lab.send([*attempts(real, 0, 3, conditions={"mass_kg": 0.8, "human_present": False, "clutter": 4})])
    # 0.3 and 0.45 lie in one bin.
    by_number = lab.ask(DROP, condition="mass_kg:0.25")
    assert (by_number["sim"]["n"], by_number["real"]["n"]) == (4, 2)
    assert lab.ask(DROP, condition="mass_kg:0.2 to 0.5")["real"]["n"] == 2
    assert lab.ask(DROP, condition="human_present:false")["real"]["n"] == 3
    assert lab.ask(DROP, condition=["clutter:3", "human_present:true"])["real"]["n"] == 2
    assert lab.ask(DROP, condition=["clutter:3", "human_present:false"])["real"]["n"] == 0


def test_robot_site_and_stage_act_on_sim_only_where_it_names_them(lab):
    here = {"robot": "ur5e-012", "site": "berlin", "stage": "full"}
    lab.send([*attempts(sim, 10, 0), *attempts(real, 5, 5, **here), *attempts(real, 9, 1, robot="ur5e-013")])
    answer = lab.ask(DROP, robot="ur5e-012", site="berlin", stage="full")
    assert (answer["sim"]["n"], answer["real"]["n"]) == (10, 10)
    assert answer["drop"]["value"] == pytest.approx(0.5)
    [warning] = answer["warnings"]
    assert (warning["code"], "robot or site or stage" in warning["message"]) == ("filter-not-on-sim", True)
    lab.send(attempts(sim, 1, 3, robot="ur5e-012"))
    answer = lab.ask(DROP, robot="ur5e-012")
    assert (answer["sim"]["n"], answer["warnings"]) == (4, [])


def test_a_filter_that_leaves_nothing_says_so(lab):
    lab.send([*attempts(sim, 10, 0), *attempts(real, 5, 5, robot="r1", conditions={"lighting": "dim"})])
    assert lab.ask(DROP, robot="r2")["reason"] == "The filter leaves no real episodes."
    assert lab.ask(DROP, condition="lighting:dim")["reason"] == "The filter leaves no sim episodes."
    answer = lab.ask(DROP, robot="r2")
    assert (answer["real"]["n"], answer["drop"]["value"], answer["verdict"]) == (0, None, "too few episodes")
    assert answer["episodes_needed"] == 93
    assert lab.ask(DROP, until="2020-01-01T00:00:00Z")["reason"].startswith("No real episodes")


def test_an_unknown_deployment_or_one_of_another_project_is_404(lab, service, service_database):
    from answers.lab import Lab

    from parts import make_project

    lab.send(attempts(real, 1, 0))
    other = Lab(make_project(service, service_database))
    other.send(attempts(real, 1, 0, deployment="elsewhere"))
    for path in ("", "/drop", "/ledger", "/slices", "/signals", "/trend", "/failures", "/contract", "/onset"):
        for slug in ("elsewhere", "unheard-of", "%00"):
            answer = lab.get(f"/deployments/{slug}{path}")
            assert (answer.status_code, answer.json()["type"]) == (404, "/problems/not-found")
    assert [d["slug"] for d in lab.ask("/deployments")["deployments"]] == ["berlin-line-3"]


@pytest.mark.parametrize(
    ("path", "parameters", "pointer"),
    [
        ("/drop", {"metrics": "success"}, "/query/metrics"),
        ("/drop", {"condition": "dim"}, "/query/condition/0"),
        ("/drop", {"since": "yesterday"}, "/query/since"),
        ("/drop", {"since": "1d", "until": "2d"}, "/query/since"),
        ("/drop", {"precision": 0}, "/query/precision"),
        ("/drop", {"metric": ["a", "b"]}, "/query/metric"),
        ("/drop", {"stage": "half"}, "/query/stage/0"),
        ("/ledger", {"metric": "success"}, "/query/metric"),
        ("/trend", {"tier": "week"}, "/query/tier"),
        ("/trend", {"tier": "hour", "robot": "r1"}, "/query/tier"),
        ("/slices", {"outcome": "failure"}, "/query/outcome"),
    ],
)
def test_what_is_not_a_parameter_or_not_a_value_is_422(lab, path, parameters, pointer):
    lab.send(attempts(real, 1, 0))
    answer = lab.get(BERLIN + path, **parameters)
    assert (answer.status_code, [fault["pointer"] for fault in answer.json()["errors"]]) == (422, [pointer])


def test_the_fleet_comes_in_pages_and_knows_windows(lab):
    lab.send(
        [
            *(real(deployment=f"line-{n}", at=NOON - n * DAY) for n in range(5)),
            *attempts(sim, 3, 1, at=NOON - 50 * DAY),
        ]
    )
    first = lab.ask("/deployments", limit=2)
    assert ([d["slug"] for d in first["deployments"]], first["next"]) == (["line-0", "line-1"], "line-1")
    last = lab.ask("/deployments", limit=2, after="line-3")
    assert ([d["slug"] for d in last["deployments"]], last["next"]) == (["line-4"], None)
    row = first["deployments"][0]
    assert (row["sim"]["n"], row["real"]["n"], row["drop"]["value"]) == (4, 1, pytest.approx(-0.25))
    assert row["verdict"] == "too few episodes"
    recent = lab.ask("/deployments", since="2026-10-04T00:00:00Z")["deployments"]
    assert [d["real"]["n"] for d in recent] == [1, 1, 0, 0, 0]
    # No sim episode lies in the window, so the whole baseline stands.
    assert recent[0]["sim"]["n"] == 4


# The present is its own window, and a calendar holds for all time.
NO_WINDOW = {
    f"/api/v1/deployments/{{slug}}/{name}" for name in ("calendar", "gate", "now", "permit", "plans", "rollout")
}


def test_every_answer_about_a_deployment_takes_a_window_by_name(service):
    """From the table of routes, so that a new answer is asked as well."""
    paths = httpx.get(f"{service.url}/api/v1/openapi.json").json()["paths"]
    taking = {
        path: {parameter["name"] for parameter in methods["get"].get("parameters", [])}
        for path, methods in paths.items()
        if "get" in methods and ("/deployments/" in path or "/policies/" in path)
    }
    assert len(taking) > 10
    assert {path for path, names in taking.items() if "window" not in names} == NO_WINDOW
