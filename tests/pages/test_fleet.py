from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from parts import episode, make_project, signed_in, wait_until


def test_an_empty_fleet_shows_how_to_send_the_first_episode(service, person, project):
    with signed_in(service, person) as browser:
        page = browser.get("/").text
    assert "No episodes yet" in page
    assert f"curl {service.url}/api/v1/episodes" in page


def test_each_deployment_shows_both_sides_with_interval_and_n(service, person, project):
    sim = {"domain": "sim", "deployment": None, "simulator": {"name": "mujoco", "version": "3.3.0"}}
    records = [episode(outcome="success" if n < 81 else "failure") for n in range(263)]
    records += [episode(**sim, outcome="success" if n < 15 else "failure") for n in range(148)]
    with project.client() as client:
        client.post("/episodes/batch", json=records).raise_for_status()
    with signed_in(service, person) as browser:
        page = wait_until(
            lambda: "n 263" in (text := browser.get("/?window=all").text) and "n 148" in text and text,
            what="the counts",
        )
        now = browser.get("/").text
        entry = entries(browser, "/")[0]
    # Newcombe 1998a, Table I.
    assert "31 %" in page
    assert "[25.5, 36.6]" in page and "n 263" in page
    assert entry["row"]["sim"]["interval"] == pytest.approx([0.062, 0.160], abs=5e-4)
    # Now is of the newest hundred.
    assert entry["shown"]["n"] == 100
    assert "newest 100 episodes" in now and "n 100" in now


def test_one_project_never_shows_another(service, service_database, person, project):
    other = make_project(service, service_database)
    with other.client() as client:
        client.post("/episodes", json=episode(deployment="somebody-elses")).raise_for_status()
    with signed_in(service, person) as browser:
        assert "somebody-elses" not in browser.get("/").text


def entries(browser, address: str) -> list[dict]:
    return browser.get(f"{address}{'&' if '?' in address else '?'}format=json").json()["page"]["entries"]


def test_the_fleet_is_ordered_filtered_and_glanced_at(service, person, project):
    sim = {"domain": "sim", "deployment": None, "simulator": {"name": "mujoco", "version": "3.3.0"}}
    slip, unseen = {"phase": "lift", "labels": ["slip"]}, {"phase": "grasp", "labels": ["not_detected"]}
    now = datetime.now(UTC)

    def attempts(deployment, site, failures, failure, days_ago):
        return [
            episode(
                deployment=deployment,
                site=site,
                started_at=(now - timedelta(days=days_ago + n % 9, seconds=2)).isoformat(),
                outcome="failure" if n < failures else "success",
                failure=failure if n < failures else None,
            )
            for n in range(90)
        ]

    records = [episode(**sim, outcome="failure" if n < 6 else "success") for n in range(300)]
    records += attempts("slips", "berlin", 45, slip, 0)
    records += attempts("misses", "lyon", 60, unseen, 3)
    records += attempts("steady", "lyon", 2, slip, 40)
    with project.client() as client:
        client.post("/episodes/batch", json=records).raise_for_status()
    with signed_in(service, person) as browser:
        wait_until(lambda: [one["row"]["real"]["n"] for one in entries(browser, "/?window=all")] == [90, 90, 90])
        wait_until(lambda: entries(browser, "/")[0]["row"]["sim"]["n"] == 300)
        page = browser.get("/?format=json").json()["page"]
        wait_until(lambda: [bool(one["lead"]) for one in entries(browser, "/")] == [True, True, False])
        page = browser.get("/?format=json").json()["page"]
        worst = [(one["row"]["slug"], one["lead"] and one["lead"]["category"]) for one in page["entries"]]
        assert worst == [("misses", "visual"), ("slips", "contact_dynamics"), ("steady", None)]
        own = browser.get("/deployments/misses?format=json").json()["page"]
        lead = {name: own["lead"][name] for name in ("category", "contribution", "interval")}
        lead |= {"drop": own["ledger"]["drop"]}
        wait_until(lambda: entries(browser, "/")[0]["lead"] == lead)
        words = f"{100 * lead['contribution']:.1f} of {100 * lead['drop']:.1f} points"
        assert words in browser.get("/").text
        assert page["worst"] == page["entries"][0]
        assert page["last_day"]["real"] == 10
        assert page["newest"] == max(one["newest"] for one in page["entries"])
        assert [one["spark"] is not None for one in page["entries"]] == [True, True, False]
        for address, slugs in {
            "/?sort=name": ["misses", "slips", "steady"],
            "/?sort=newest": ["slips", "misses", "steady"],
            "/?sort=real": ["misses", "slips", "steady"],
            "/?site=lyon": ["misses", "steady"],
            "/?category=visual": ["misses"],
            "/?q=lyon+stea": ["steady"],
            "/?verdict=large": ["misses", "slips"],
        }.items():
            assert [one["row"]["slug"] for one in entries(browser, address)] == slugs, address
        recent = entries(browser, "/?since=7d&sort=name")
        assert [one["row"]["real"]["n"] for one in recent] == [50, 80, 0]
        # What leads is told of the newest episodes, whatever window is looked at.
        assert recent[1]["lead"]["category"] == "contact_dynamics"


def test_filters_know_every_site_robot_and_policy_of_the_window(service, person, project):
    now = datetime.now(UTC)

    def attempts(site, robot, first, failures):
        return [
            episode(
                deployment="benelux",
                site=site,
                robot=robot,
                started_at=(now - timedelta(minutes=first + n)).isoformat(),
                outcome="failure" if n < failures else "success",
            )
            for n in range(40)
        ]

    records = attempts("ghent", "ghent-1", 3, 30) + attempts("antwerp", "antwerp-1", 60, 10)
    records += [episode(deployment="elsewhere", site="oslo", started_at=now.isoformat())]
    with project.client() as client:
        client.post("/episodes/batch", json=records).raise_for_status()
    with signed_in(service, person) as browser:
        wait_until(lambda: len(entries(browser, "/?q=benelux")) == 1 and entries(browser, "/")[0]["shown"]["n"])
        page = browser.get("/?format=json").json()["page"]
        assert page["sites"] == ["antwerp", "ghent", "oslo"]
        assert page["robots"][:2] == ["antwerp-1", "ghent-1"]
        for address, (n, successes) in {
            "/?site=ghent&window=all": (40, 10), "/?site=antwerp&window=all": (40, 30), "/?robot=antwerp-1&window=all": (40, 30),
        }.items():  # fmt: skip
            [found] = entries(browser, address)
            assert found["row"]["slug"] == "benelux"
            assert found["shown"]["n"] == n
            assert found["shown"]["value"] == pytest.approx(successes / n)
        assert "antwerp, ghent" in browser.get("/").text
        [policy] = {*page["policies"]}
        assert len(entries(browser, f"/?policy={policy}")) == 2
        assert entries(browser, "/?policy=nobody") == []


def test_made_up_names_do_not_hide_deployments_that_work(service, service_database, person, project):
    with project.client() as client:
        client.post("/episodes/batch", json=[episode(deployment="zurich") for _ in range(5)]).raise_for_status()
    count = "SELECT count(*) FROM watches WHERE project_id = :p"
    wait_until(lambda: project.value(count), what="the watch")
    with service_database.transaction() as connection:
        connection.execute(
            text(
                "INSERT INTO deployments (project_id, slug, policy_id, task_id, described_at)"
                " SELECT project_id, 'made-up-' || n, policy_id, task_id, described_at FROM deployments,"
                " generate_series(1, 5000) n WHERE project_id = :p"
            ),
            {"p": project.id},
        )
    with signed_in(service, person) as browser:
        page = browser.get("/?q=zurich").text
    assert 'href="/deployments/zurich' in page
    assert "has more deployments than are listed here" in page
