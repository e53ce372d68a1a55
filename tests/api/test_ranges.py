"""Ranges over the API: declared, identified and measured, judged, and watched by the clock."""

from datetime import UTC, datetime, timedelta

import pytest

from gapwatch.alerts.range_watch import watch_ranges
from parts import episode

SIMULATOR = {"name": "isaac/lab", "version": "5.1"}
PARAMETERS = [
    {"name": "friction", "low": 0.4, "high": 0.8, "signal": "friction"},
    {"name": "payload", "low": 0.5, "high": 1.5, "operation": "scale", "nominal": 2.0, "unit": "kg"},
    {"name": "delay", "low": 0.0, "high": 40.0, "unit": "ms", "condition": "delay_ms"},
    {"name": "kp", "low": 40.0, "high": 40.0},
    {"name": "kd", "low": 0.9, "high": 1.1, "operation": "scale"},
    {"name": "armature", "low": 0.01, "high": 0.02},
]


def sims(count=60):
    return [
        episode(
            domain="sim",
            deployment=None,
            simulator=SIMULATOR,
            signals={"friction": 0.4 + 0.4 * (place % 20) / 20},
            conditions={"delay_ms": 20.0},
        )
        for place in range(count)
    ]


def reals(friction, count=40, robot="kuka-1"):
    return [
        episode(
            robot=robot,
            site="berlin",
            signals={"friction": friction + 0.002 * (place % 10)},
            conditions={"delay_ms": 18.0},
        )
        for place in range(count)
    ]


def send(project, records):
    with project.client() as client:
        answer = client.post("/episodes/batch", json=records)
    assert answer.json()["accepted"] == len(records), answer.text


def identify(project, expected=201, **body):
    with project.client() as client:
        answer = client.post("/events", json={"kind": "system_identification", "title": "chirps", **body})
    assert answer.status_code == expected, answer.text
    return answer.json()


def declare(project, parameters=PARAMETERS, expected=200):
    with project.client() as client:
        answer = client.put("/simulators/isaac/lab/5.1/ranges", json={"parameters": parameters})
    assert answer.status_code == expected, answer.text
    return answer.json()


def judged(project):
    with project.client("read") as client:
        answer = client.get("/deployments/berlin-line-3/ranges")
    assert answer.is_success, answer.text
    return answer.json()


def alerts(project):
    with project.client("read") as client:
        return [one for one in client.get("/alerts?state=open").json()["alerts"] if one["kind"] == "range"]


def test_each_parameter_is_judged_by_what_was_measured(project, settled):
    send(project, [*sims(), *reals(0.6), *reals(0.7, robot="kuka-2")])
    settled(project)
    nothing = judged(project)
    assert nothing["parameters"] == []
    assert "No ranges were declared" in nothing["reason"]
    declare(project)
    earlier = (datetime.now(UTC) - timedelta(days=20)).isoformat()
    identify(
        project, deployment="berlin-line-3", at=earlier, values={"payload": {"value": 1.2, "interval": [1.1, 1.3]}}
    )
    identify(
        project,
        deployment="berlin-line-3",
        values={
            "payload": {"value": 3.2, "interval": [3.0, 3.4], "unit": "kg"},
            "gravity": {"interval": [9.80, 9.82]},
            "kd": {"value": 1.0},
        },
    )
    found = judged(project)
    by_name = {one["name"]: one for one in found["parameters"]}
    verdicts = {name: one["verdict"] for name, one in by_name.items()}
    assert verdicts == {
        "friction": "inside",
        "payload": "outside",
        "delay": "declared, not applied",
        "kp": "not randomised",
        "kd": "not measured",
        "armature": "not measured",
        "gravity": "not randomised",
    }
    assert (by_name["payload"]["low"], by_name["payload"]["high"]) == (1.0, 3.0)
    assert {one["robot"] for one in by_name["friction"]["measured"]} == {"kuka-1", "kuka-2"}
    assert "nominal" in by_name["kd"]["reason"]
    assert by_name["gravity"]["measured"][0]["value"] == pytest.approx(9.81)
    assert found["parameters"][0]["name"] == "payload", "the gravest first"
    [finding] = found["findings"]
    assert finding["parameter"] == "payload"
    assert "moved" in finding["words"]
    assert found["counts"]["not measured"] == 2


def test_reality_that_leaves_a_range_raises_an_alert_and_comes_back(project, settled):
    send(project, [*sims(), *reals(0.6)])
    settled(project)
    declare(project)
    watch_ranges(project.database, "http://gapwatch.test")
    assert alerts(project) == []
    send(project, reals(0.95, count=110))
    settled(project)
    watch_ranges(project.database, "http://gapwatch.test")
    [alert] = alerts(project)
    assert alert["series"] == "range:friction"
    assert alert["evidence"]["low"] == 0.4
    with project.client("read") as client:
        [incident] = client.get("/incidents?state=open").json()["incidents"]
    assert incident["severity"] == "warning"
    watch_ranges(project.database, "http://gapwatch.test")
    assert len(alerts(project)) == 1, "once"
    declare(project, [{**PARAMETERS[0], "high": 1.4}])
    watch_ranges(project.database, "http://gapwatch.test")
    assert alerts(project) == []


def test_an_identification_alone_raises_it(project, settled):
    send(project, [*sims(), *reals(0.6)])
    settled(project)
    declare(project)
    identify(
        project, site="berlin", robots=["kuka-1"], values={"armature": {"value": 0.05, "interval": [0.04, 0.06]}}
    )
    watch_ranges(project.database, "http://gapwatch.test")
    [alert] = alerts(project)
    assert (alert["series"], alert["evidence"]["place"]) == ("range:armature", "kuka-1")


def test_what_is_no_range_says_why(project):
    for parameter, words in (
        ({"name": "a", "low": 2, "high": 1}, "above"),
        ({"name": "a", "low": 0, "high": 1, "distribution": "log_uniform"}, "zero"),
        ({"name": "a", "low": 0, "high": -1, "distribution": "gaussian"}, "spread"),
        ({"name": "a", "low": 0, "high": 1, "signal": "x", "condition": "y"}, "both"),
        ({"name": "a", "low": 0}, "required"),
    ):
        problem = declare(project, [parameter], 422)
        assert problem["errors"][0]["pointer"].startswith("/body/parameters/0"), problem
        assert words in str(problem["errors"]).lower()
    twice = declare(project, [{"name": "a", "low": 0, "high": 1}] * 2, 422)
    assert twice["errors"][0]["pointer"] == "/body/parameters/1/name"
    assert identify(project, 422)["errors"][0]["pointer"] == "/body/values"
    assert identify(project, 422, values={"a": {}})["errors"][0]["pointer"].startswith("/body/values/a")
    assert (
        identify(project, 422, kind="site", values={"a": {"value": 1}})["errors"][0]["pointer"] == "/body/values"
    )
    with project.client("read") as client:
        assert client.get("/simulators/isaac/lab/5.1/ranges").status_code == 404
    declare(project, [])
    with project.client("read") as client:
        assert client.get("/simulators/isaac/lab/5.1/ranges").json()["parameters"] == []
