"""The API of incidents (`api/incidents.py`): lists, one of them, and every action with what it refuses."""

import pytest

from parts import episode, make_project, minutes_ago, wait_until

SIM = {"domain": "sim", "deployment": None, "simulator": {"name": "mujoco", "version": "3.3.0"}}


@pytest.fixture
def client(watched):
    """A key of scope admin of a project whose deployments oslo and turin lose half."""
    records = [episode(**SIM, outcome="failure" if n % 25 == 0 else "success") for n in range(100)]
    records += [
        episode(
            deployment=deployment,
            robot=f"r{n % 2}",
            started_at=minutes_ago(240 - 2 * n),
            outcome="failure" if n % 2 else "success",
        )
        for deployment in ("oslo", "turin")
        for n in range(120)
    ]
    with watched.client() as sender:
        sender.post("/episodes/batch", json=records).raise_for_status()
    wait_until(
        lambda: watched.value("SELECT count(*) FROM incidents WHERE project_id = :p") == 2, 30, what="incidents"
    )
    with watched.client("admin") as client:
        yield client


def listed(client, **query) -> list[dict]:
    return client.get("/incidents", params=query).raise_for_status().json()["incidents"]


def test_incidents_are_listed_with_numbers_reasons_and_pages(client):
    everything = listed(client)
    assert sorted(one["deployment"] for one in everything) == ["oslo", "turin"]
    one = everything[0]
    assert one["state"] == "firing" and one["owner"] is None
    assert one["now"]["n"] == 100 and one["now"]["interval"][0] < one["now"]["value"] < one["now"]["interval"][1]
    assert (one["before_is"], one["before"]["n"]) == ("sim", 100)
    assert one["loss_interval"][0] < one["loss"] < one["loss_interval"][1]
    assert "success-below-sim" in [alert["rule"] for alert in one["alerts"]]
    assert one["changed_at"].endswith("Z") and one["alerts"][0]["opened_at"].endswith("Z")
    assert [one["deployment"] for one in listed(client, deployment="oslo")] == ["oslo"]
    assert listed(client, severity="critical") == listed(client, state="resolved") == []
    assert len(listed(client, owner="nobody", state="open")) == 2
    first = client.get("/incidents", params={"limit": 1}).json()
    rest = client.get("/incidents", params={"limit": 1, "after": first["next"]}).json()
    assert [first["incidents"][0]["id"], rest["incidents"][0]["id"]] == [one["id"] for one in everything]
    assert rest["next"] is None


def test_an_incident_is_taken_on_passed_on_silenced_and_resolved(client, watched):
    from people import somebody

    engineer = somebody(watched, "engineer")["email"]
    [incident] = listed(client, deployment="oslo")
    address = f"/incidents/{incident['id']}"
    read = client.get(address).json()
    assert read["robots"]["verdict"] and [robot["robot"] for robot in read["robots"]["robots"]] == ["r0", "r1"]
    assert read["failures"] > 0 and read["change"]["earliest"] <= read["change"]["at"] <= read["change"]["latest"]
    taken = client.post(f"{address}/acknowledge").json()
    assert taken["state"] == "acknowledged" and taken["owner"].startswith("key/")
    assert {alert["state"] for alert in taken["alerts"]} == {"acknowledged"}
    assert listed(client, state="acknowledged", owner=taken["owner"])[0]["id"] == incident["id"]
    passed = client.post(f"{address}/assign", json={"owner": engineer, "comment": "knows it"}).json()
    assert passed["owner"] == engineer
    assert client.post(f"{address}/silence", json={"reason": "pads", "minutes": 60}).status_code == 200
    assert client.get("/silences").json()["silences"][0]["match"] == {"deployment": ["oslo"]}
    assert client.post(f"{address}/comment", json={"comment": "hm"}).status_code == 200
    over = client.post(f"{address}/resolve", json={"comment": "new pads"}).json()
    assert over["state"] == "resolved" and over["resolved_at"]
    own = [(line["action"], line["alert"] is None) for line in over["history"] if line["alert"] is None]
    assert own == [(action, True) for action in ("acknowledge", "assign", "silence", "comment", "resolve")]
    assert {line["rule"] for line in over["history"] if line["alert"]} >= {"success-below-sim"}
    again = client.post(f"{address}/acknowledge")
    assert again.status_code == 409 and "resolved" in again.json()["detail"]
    assert client.post(f"{address}/resolve").status_code == 200
    assert [one["deployment"] for one in listed(client, state="open")] == ["turin"]


@pytest.mark.parametrize(
    ("action", "body", "pointer"),
    [
        ("assign", {"owner": "stranger@example.com"}, "/body/owner"),
        ("assign", {}, "/body/owner"),
        ("assign", {"owner": 7}, "/body/owner"),
        ("silence", {"minutes": 5}, "/body/reason"),
        ("silence", {"reason": "x"}, "/body/ends_at"),
        ("silence", {"reason": "x", "minutes": 5, "ends_at": "2030-01-01T00:00:00Z"}, "/body/ends_at"),
        ("silence", {"reason": "x", "ends_at": "tomorrow"}, "/body/ends_at"),
        ("silence", {"reason": "x", "ends_at": "1999-01-01T00:00:00Z"}, "/body/ends_at"),
        ("silence", {"reason": "x", "minutes": 0}, "/body/minutes"),
        ("comment", {}, "/body/comment"),
        ("comment", {"comment": "\0"}, "/body/comment"),
        ("acknowledge", {"coment": "x"}, "/body/coment"),
        ("resolve", {"comment": ""}, "/body/comment"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(client, action, body, pointer):
    [incident] = listed(client, deployment="turin")
    answer = client.post(f"/incidents/{incident['id']}/{action}", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"].startswith(pointer)
    assert listed(client, deployment="turin") == [incident]


def test_keys_that_only_read_act_on_nothing_and_other_projects_see_nothing(client, watched, alerting_service):
    [incident] = listed(client, deployment="turin")
    with watched.client("read") as reader:
        assert reader.get(f"/incidents/{incident['id']}").status_code == 200
        assert reader.post(f"/incidents/{incident['id']}/acknowledge").status_code == 403
    with make_project(alerting_service, watched.database).client("admin") as stranger:
        assert stranger.get("/incidents").json() == {"incidents": [], "next": None}
        for action in ("acknowledge", "resolve"):
            assert stranger.post(f"/incidents/{incident['id']}/{action}").status_code == 404
        assert stranger.get(f"/incidents/{incident['id']}").status_code == 404
    for query in ("state=nonsense", "owner=", "after=0", "limit=9999", "colour=red", "state=open&state=all"):
        assert client.get(f"/incidents?{query}").status_code == 422
    for number in ("0", "abc", "99999999999"):
        assert client.get(f"/incidents/{number}").status_code == 422
