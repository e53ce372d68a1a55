import re

from closing.weeks import FIXED_AT, attempts_on
from people import Browser, somebody

from parts import wait_until


def words(page):
    return " ".join(re.sub(r"<[^>]+>", " ", page.text).split())


def test_a_fix_is_recorded_on_the_page_and_shown_with_expectation_and_outcome(service, project):
    with project.client("ingest") as client:
        records = [
            *attempts_on(range(-20, 3), 20, 8, robot="r-1"),
            *attempts_on(range(3, 23), 20, 5, "1.4.1", robot="r-1"),
        ]
        client.post("/episodes/batch", json=records).raise_for_status()
    wait_until(lambda: project.value("SELECT count(*) FROM work WHERE project_id = :p") == 0, 30, what="the fold")
    with (
        Browser(service, somebody(project, "engineer")) as engineer,
        Browser(service, somebody(project, "viewer")) as viewer,
    ):
        empty = viewer.get("/fixes").text
        assert "Nothing to measure yet" in empty and 'name="expected_points"' not in empty
        fields = {
            "title": "200 real grasps",
            "kind": "fine_tuning",
            "category": "contact_dynamics",
            "deployment": "berlin-line-3",
            "from_version": "1.4.1",
            "expected_points": "15",
            "robot_hours": "12",
            "at": FIXED_AT.isoformat(),
        }
        refused = engineer.submit("/fixes", project.slug, **fields | {"expected_points": "many"})
        assert refused.status_code == 422 and "expected_points" in refused.text
        assert engineer.submit("/fixes", project.slug, **fields | {"title": ""}).status_code == 422
        assert viewer.submit("/fixes", project.slug, **fields).status_code == 403
        shown = words(engineer.submit("/fixes", project.slug, **fields))
        assert "Of 1 fix 1 closed something." in shown
        assert "as expected" in shown and "3 days between are on no side" in shown
        assert "fine-tuning on real data Contact dynamics 1" in shown
        twin = viewer.get("/fixes?format=json").json()["page"]
        assert twin["entries"][0]["fix"]["expected_points"] == 15
        assert twin["table"][0]["decided"] == 1
        on_deployment = words(viewer.get("/deployments/berlin-line-3"))
        assert "200 real grasps" in on_deployment and "How it was measured" in on_deployment
