import csv
import io
import re

import pytest
from markupsafe import escape
from people import Browser, somebody

from parts import episode, wait_until

SIM = {"domain": "sim", "deployment": None, "simulator": {"name": "mujoco", "version": "3.3.0"}}


@pytest.fixture
def engineer(service, project):
    with Browser(service, somebody(project, "engineer")) as browser:
        yield browser


def send(project, *records):
    with project.client() as client:
        answer = client.post("/episodes/batch", json=list(records))
        answer.raise_for_status()
    assert answer.json()["accepted"] == len(records), answer.text


def listed(page: str) -> int:
    return page.count(" data-row>")


def test_every_filter_is_in_the_address(engineer, project):
    send(
        project,
        episode(outcome="failure", failure={"phase": "lift", "labels": ["slip"]}, conditions={"lighting": "dim"}),
        episode(outcome="failure", failure={"phase": "place"}, robot="r-1"),
        episode(conditions={"lighting": "bright"}),
        episode(**SIM),
    )
    assert listed(engineer.get("/episodes").text) == 4
    for query, found in {
        "outcome=failure": 2,
        "domain=sim": 1,
        "phase=lift": 1,
        "label=slip": 1,
        "robot=r-1": 1,
        "condition=lighting:dim": 1,
        "condition=lighting:dim&condition=lighting:bright": 2,
        "outcome=failure&phase=lift&deployment=berlin-line-3": 1,
        "deployment=elsewhere": 0,
        "since=1h": 4,
    }.items():
        assert listed(engineer.get(f"/episodes?{query}").text) == found, query


def test_a_filter_that_cannot_be_read_is_named_and_the_rest_holds(engineer, project):
    send(project, episode(outcome="failure"), episode())
    page = engineer.get("/episodes?outcome=failure&since=yesterday&colour=red")
    assert page.status_code == 422
    assert "colour is not a filter here." in page.text
    assert "write a time as" in page.text
    assert listed(page.text) == 1


def test_pages_follow_each_other_without_gaps(engineer, project):
    send(project, *(episode(id=f"e-{n:03}", started_at=f"2026-10-01T00:{n % 60:02}:00Z") for n in range(120)))
    seen, page = [], engineer.get("/episodes").text
    while True:
        seen += re.findall(r'data-open href="/episodes/(e-\d+)', page)
        older = re.search(r'href="([^"]+)" rel="next"', page)
        if older is None:
            break
        page = engineer.get(older[1].replace("&amp;", "&")).text
    assert len(seen) == len(set(seen)) == 120


def test_the_list_as_csv_has_the_same_filters(engineer, project):
    send(project, episode(outcome="failure", task="=cmd()"), episode())
    answer = engineer.get("/episodes?outcome=failure&format=csv")
    assert answer.headers["content-disposition"].startswith("attachment")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["outcome"] for row in rows] == ["failure"]
    assert rows[0]["task"] == "'=cmd()"


def test_one_episode_shows_everything_in_its_record(engineer, project):
    record = episode(
        outcome="failure", reward=0.41, duration_s=11.8, robot="ur5e-012", site="berlin", stage="supervised",
        session="am-1", pair="scene-17", metrics={"energy_j": 210.5}, conditions={"surface": "rubber", "clutter": 3},
        signals={"peak_force_n": 31.2}, safety={"violations": 0, "interventions": 2},
        failure={"phase": "lift", "labels": ["slip"], "note": "lost grip"},
        links={"video": "https://video.example/1"}, contract={"control_hz": 50},
        provenance={"git_sha": "4f1c9e2"}, embedding=[0.1, 0.2],
    )  # fmt: skip
    send(project, record, episode(**SIM, pair="scene-17"))
    page = engineer.get(f"/episodes/{record['id']}").text
    for text in (
        *("Failed in lift: slip", "lost grip", "ur5e-012", "am-1", "rubber", "peak_force_n", "31.2", "0.41"),
        *("energy_j = 210", "2 interventions", "4f1c9e2", "control_hz", "2 numbers", "scene-17"),
        *('href="https://video.example/1"', "Contact dynamics", "label slip", "revision 1"),
    ):
        assert text in page, text
    twin = engineer.get(f"/episodes/{record['id']}?format=json").json()["page"]
    assert twin["record"]["reward"] == 0.41
    # Once both sides are folded a label is strong evidence, no longer the only one, and a part stays unattributed.
    assert twin["shares"][0]["category"] == "contact_dynamics" and twin["shares"][0]["weight"] > 0.5
    assert twin["weighed_by"] == "The same weights as in the ledger of berlin-line-3."
    assert [pair["domain"] for pair in twin["pairs"]] == ["sim"]


def test_the_list_says_what_labels_decide_and_leaves_the_rest_to_the_episodes_page(engineer, project):
    failures = {
        "labelled": {"phase": "approach", "labels": ["slip"]},
        "by-hand": {"phase": "approach", "category": "actuation"},
        "phase": {"phase": "approach"},
    }
    send(project, *(episode(id=name, outcome="failure", failure=failure) for name, failure in failures.items()))
    twin = engineer.get("/episodes?format=json").json()["page"]
    assert {entry["id"]: entry["categories"] for entry in twin["entries"]} == {
        "labelled": ["contact_dynamics"], "by-hand": ["actuation"], "phase": [],
    }  # fmt: skip
    assert "Category, by labels" in engineer.get("/episodes").text
    shares = engineer.get("/episodes/phase?format=json").json()["page"]["shares"]
    assert [(share["category"], share["weight"]) for share in shares] == [("visual", 1.0)]


def test_an_episode_without_a_deployment_says_that_only_its_words_were_weighed(engineer, project):
    send(project, episode(**SIM, id="alone", outcome="failure", failure={"phase": "lift"}))
    page = engineer.get("/episodes/alone").text
    assert "By labels and phase only: no deployment says what is usual." in page
    assert "failed in phase lift" in page


def test_an_id_and_a_deployment_with_every_sign_have_pages(engineer, project):
    name, slug = "a&b;c=d+é'<x>", "berlin&line;3+é'<x>"
    send(project, episode(id=name, deployment=slug))
    page = engineer.get("/episodes").text
    link = re.search(r'data-open href="([^"]+)"', page)[1].replace("&amp;", "&")
    one = engineer.get(link).text
    assert f"<code>{escape(name)}</code>" in one
    to_deployment = re.search(r'/ <a href="(/deployments/[^"]+)"', one)[1]
    assert f"<h1>{escape(slug)}</h1>" in engineer.get(to_deployment).text


def test_a_persons_word_moves_the_ledger_and_leaves_a_trace(engineer, project):
    failed = [episode(outcome="failure", failure={"phase": "lift", "labels": ["slip"]}) for _ in range(8)]
    send(project, *failed, *(episode() for _ in range(12)), *(episode(**SIM) for _ in range(40)))

    def categories() -> dict[str, float]:
        twin = engineer.get("/deployments/berlin-line-3?format=json").json()["page"]["ledger"]
        return {
            part["category"]: round(part["contribution"], 6) for part in twin["categories"] if part["contribution"]
        }

    wait_until(lambda: categories() == {"contact_dynamics": pytest.approx(0.4, rel=0.05)}, what="the ledger")
    one = failed[0]["id"]
    answer = engineer.submit(f"/episodes/{one}", project.slug, category="visual", note="glare on the rim")
    assert answer.status_code == 200
    assert "glare on the rim" in answer.text
    assert "a person chose visual" in answer.text
    assert "category none → visual" in answer.text
    moved = {"contact_dynamics": pytest.approx(0.35, rel=0.05), "visual": pytest.approx(0.05, rel=0.05)}
    wait_until(lambda: categories() == moved, what="the ledger following")
    # The sender's own record is still known: a late retry is a duplicate and no conflict.
    with project.client() as client:
        assert client.post("/episodes", json=failed[0]).json()["status"] == "duplicate"
    assert project.value("SELECT count(*) FROM episode_revisions WHERE project_id = :p") == 1
    # Taking it back is a change too, and the numbers are what they were.
    engineer.submit(f"/episodes/{one}", project.slug, category="", note="")
    wait_until(lambda: categories() == {"contact_dynamics": pytest.approx(0.4, rel=0.05)}, what="the ledger back")


def test_saving_what_stands_changes_nothing(engineer, project):
    record = episode(outcome="failure", failure={"phase": "lift", "note": "as it is"})
    send(project, record)
    engineer.submit(f"/episodes/{record['id']}", project.slug, category="", note="as it is")
    assert project.value("SELECT revision FROM episodes WHERE project_id = :p") == 1


def test_triage_goes_on_to_the_next_episode_under_the_same_filter(engineer, project):
    failed = [
        episode(id=f"f-{n}", outcome="failure", started_at=f"2026-10-01T00:0{n}:00Z", failure={"phase": "lift"})
        for n in range(3)
    ]
    send(project, *failed, episode(id="ok", started_at="2026-10-01T00:01:30Z"))
    answer = engineer.submit(
        "/episodes/f-2?outcome=failure", project.slug, category="visual", note="", then="next"
    )
    assert answer.url.path == "/episodes/f-1"
    assert answer.url.params["outcome"] == "failure"
    answer = engineer.submit("/episodes/f-0?outcome=failure", project.slug, category="", note="x", then="next")
    assert answer.url.path == "/episodes/f-0"


@pytest.mark.parametrize("category", ["magic", "unattributed"])
def test_a_category_that_does_not_exist_is_refused(engineer, project, category):
    record = episode(outcome="failure")
    send(project, record)
    answer = engineer.submit(f"/episodes/{record['id']}", project.slug, category=category, note="")
    assert answer.status_code == 404
    assert project.value("SELECT failure_category FROM episodes WHERE project_id = :p") is None
