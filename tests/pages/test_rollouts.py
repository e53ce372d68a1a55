"""A rollout begun, judged and decided about in the browser: the list, the deployment's part, the packet."""

import html
import json
import re

import pytest
from api.test_rollouts import reals, send, shadows, sims
from people import Browser, somebody

from parts import wait_until

CRITERIA = [
    {"id": "episodes", "kind": "min_episodes", "limit": 5, "stage": "shadow"},
    {"id": "drop", "kind": "max_drop", "limit": 0.2, "stage": "supervised"},
]


def words(page):
    return " ".join(re.sub(r"<[^>]+>", " ", page.text).split())


@pytest.fixture
def cast(service, project):
    send(project, [*sims(), *reals("offline", 1), *shadows(2)])
    with (
        Browser(service, somebody(project, "admin")) as admin,
        Browser(service, somebody(project, "engineer")) as engineer,
        Browser(service, somebody(project, "viewer")) as viewer,
    ):
        yield admin, engineer, viewer


def plan(browser, project, **fields):
    wanted = {
        "act": "plan",
        "stage": "shadow",
        "margin": "20",
        "fallback_version": "1.3.0",
        "policy_name": "bin-pick",
    }
    wanted["criteria"] = json.dumps(CRITERIA)
    return browser.submit("/rollouts", project.slug, deployment="berlin-line-3", **wanted | fields)


def act(browser, project, kind, **fields):
    return browser.submit("/rollouts", project.slug, deployment="berlin-line-3", act=kind, **fields)


def test_a_rollout_is_begun_judged_promoted_and_rolled_back_in_the_browser(cast, project):
    admin, engineer, viewer = cast
    assert "Begin a rollout" in engineer.get("/deployments/berlin-line-3").text
    assert "Begin a rollout" not in viewer.get("/deployments/berlin-line-3").text
    assert "No rollout was begun" in words(viewer.get("/rollouts"))
    begun = plan(engineer, project)
    assert begun.status_code == 200 and "Rollout: shadow" in words(begun)
    assert "bin-pick 1.3.0 may drive" in words(begun)
    refused = act(engineer, project, "promote", reason="let us go")
    assert refused.status_code == 409 and "not passed" in refused.text
    past = act(engineer, project, "promote", reason="let us go on anyway", override="yes")
    assert past.status_code == 403
    send(project, shadows(10))
    passed = wait_until(
        lambda: (page := engineer.get("/deployments/berlin-line-3")) and "is passed" in page.text and page,
        60,
        what="the watch judging the gate",
    )
    assert "Median episodes until the drop passes" in words(passed)
    assert "1 gate is passed and waits for somebody to promote" in words(engineer.get("/rollouts"))
    promoted = act(engineer, project, "promote", reason="ten episodes without a surprise")
    assert "Rollout: supervised" in words(promoted) and "ten episodes without a surprise" in words(promoted)
    back = act(engineer, project, "rollback", reason="the gripper slips", to="offline")
    assert "Rollout: offline" in words(back) and "rollback supervised → offline" in words(back)
    stopped = act(engineer, project, "stop", reason="a bolt is loose")
    assert "Stopped: nothing may drive there" in words(stopped)
    assert "stopped" in words(viewer.get("/rollouts"))
    overridden = act(admin, project, "resume", reason="tightened")
    assert overridden.status_code == 200
    overridden = act(admin, project, "promote", reason="only two episodes, but seen by all", override="yes")
    assert "past a gate that was not passed" in words(overridden)
    address = re.search(r'href="(/decisions/\d+\?format=html)"', overridden.text)[1]
    packet = viewer.get(address)
    assert "attachment" in packet.headers["content-disposition"] and "Claims and what they rest on" in packet.text
    twin = viewer.get(address.replace("html", "json")).json()
    assert twin["approved_by"]["override"]


def test_the_list_and_the_part_have_twins_and_the_report_has_the_rollout(cast, project):
    _, engineer, viewer = cast
    plan(engineer, project)
    listed = viewer.get("/rollouts?format=json").json()["page"]
    assert [(entry["slug"], entry["stage"]) for entry in listed["entries"]] == [("berlin-line-3", "shadow")]
    part = viewer.get("/deployments/berlin-line-3?format=json").json()["page"]["rollout"]
    assert part["stage"] == "shadow" and [one["id"] for one in part["criteria"]] == ["episodes"]
    assert "Rollout: shadow" in words(viewer.get("/deployments/berlin-line-3?format=report"))


def test_the_form_that_changes_a_plan_shows_the_one_in_force(cast, project):
    _, engineer, _ = cast
    plan(engineer, project, alpha="2.5", days="20", expires_at="2099-01-01T00:00")
    assert plan(engineer, project, alpha="2.5", days="20", expires_at="soon").status_code == 422
    plan(engineer, project, alpha="2.5", days="20")
    page = engineer.get("/deployments/berlin-line-3").text
    form = page[page.index('id="d-plan"') :]
    assert 'value="2.5"' in form and 'value="20"' in form and "&#34;min_episodes&#34;" in form
    # The same again changes nothing.
    before = project.value("SELECT frozen_at FROM rollouts WHERE project_id = :p")
    whole = html.unescape(re.search(r"<textarea[^>]*>(.*?)</textarea>", form, re.DOTALL)[1])
    assert plan(engineer, project, alpha="2.5", days="20", criteria=whole).status_code == 200
    assert project.value("SELECT frozen_at FROM rollouts WHERE project_id = :p") == before


def test_an_engineer_begins_no_rollout_above_the_stage_of_its_episodes(cast, project):
    _, engineer, _ = cast
    assert plan(engineer, project, stage="full").status_code == 403


def test_what_is_wrong_in_a_form_is_said(cast, project):
    _, engineer, viewer = cast
    assert (
        "not JSON"
        in engineer.submit("/rollouts", project.slug, deployment="berlin-line-3", act="plan", criteria="{").text
    )
    assert plan(engineer, project, margin="many").status_code == 422
    plan(engineer, project)
    assert "Say why" in act(engineer, project, "stop").text
    assert act(engineer, project, "explode", reason="x").status_code == 422
    assert act(viewer, project, "stop", reason="x").status_code == 403
    assert viewer.get("/decisions/12345").status_code == 404
    assert viewer.get("/decisions/abc").status_code == 404


def test_the_list_takes_a_fixed_number_of_queries(cast, project, queries):
    from gapwatch.store.rollout.rollouts import listed_deployments

    _, engineer, _ = cast
    plan(engineer, project)
    queries.clear()
    with project.database.transaction(project.id) as connection:
        assert len(listed_deployments(connection, project.id, 10)) == 1
    assert len(queries) == 1


def test_a_drill_is_pressed_by_an_admin_on_the_deployments_page(cast, project):
    admin, engineer, _ = cast
    plan(engineer, project)
    assert "/deployments/berlin-line-3/drill" in admin.get("/deployments/berlin-line-3").text
    assert "/deployments/berlin-line-3/drill" not in engineer.get("/deployments/berlin-line-3").text
    assert engineer.submit("/deployments/berlin-line-3/drill", project.slug).status_code == 403
    answer = admin.submit("/deployments/berlin-line-3/drill", project.slug)
    assert answer.status_code == 200
    # Nobody asks here, so nothing was measured; the drill itself is on record.
    assert "Drill: never." in words(answer)
    assert project.value("SELECT count(*) FROM drills WHERE project_id = :p") == 1
    with project.client("read") as client:
        [decision] = [one for one in client.get("/decisions").json()["decisions"] if one["kind"] == "drill"]
        assert client.get(f"/decisions/{decision['id']}/packet", params={"format": "html"}).status_code == 200
