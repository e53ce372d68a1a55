import csv
import io
import re

from api import test_ranges as ranges
from api.test_plans import plan, reals, sims
from pages.test_queries import count_queries  # noqa: F401 - a fixture
from people import Browser, somebody

from parts import episode, wait_until


def planned(project):
    with project.client() as client:
        assert client.post("/episodes/batch", json=[*sims(), *reals()]).json()["accepted"] == 280
    wait_until(lambda: project.value("SELECT count(*) FROM work WHERE project_id = :p") == 0, what="the fold")


def test_a_person_plans_and_sees_how_far_it_has_come(service, project):
    planned(project)
    with Browser(service, somebody(project, "engineer")) as browser:
        empty = browser.get("/plans?deployment=berlin-line-3").text
        assert "No plan yet" in empty
        assert "No plan is done yet" in empty
        assert "/plans?deployment=berlin-line-3" in browser.get("/deployments/berlin-line-3").text
        form = {"deployment": "berlin-line-3", "goal": "verdict", "amount": "30", "unit": "episodes"}
        refused = browser.submit("/plans", project.slug, **{**form, "amount": "3"})
        assert refused.status_code == 422
        assert "fewer tell nothing of a cell" in refused.text
        made = browser.submit("/plans", project.slug, **form)
        assert "None of 30 episodes was made yet" in made.text
        number = int(str(made.url).partition("/plans/")[2].partition("?")[0])
        twin = browser.get(f"/plans/{number}?format=json").json()["page"]
        trials = [
            episode(plan=number, conditions=cell["conditions"])
            for cell in twin["plan"]["cells"]
            for _ in range(cell["episodes"])
        ]
        with project.client() as client:
            client.post("/episodes/batch", json=trials[:12]).raise_for_status()
        half = browser.get(f"/plans/{number}").text
        assert "12 of 30 episodes made, 18 remain" in half
        assert browser.get(f"/plans/{number}?format=csv").headers["content-type"].startswith("text/csv")
        with project.client() as client:
            client.post("/episodes/batch", json=trials[12:]).raise_for_status()
        assert "All of 30 episodes made" in browser.get(f"/plans/{number}").text
        assert "Of 1 plan" in browser.get("/plans").text
        assert browser.get("/plans/999").status_code == 404
    with Browser(service, somebody(project, "viewer")) as browser:
        assert "Plan trials for" not in browser.get("/plans?deployment=berlin-line-3").text


def test_pages_of_plans_take_few_queries_however_many_there_are(project, count_queries):  # noqa: F811
    for _ in range(2):
        plan(project, goal="verdict", episodes=30)
    listed, one = (len(count_queries(address)) for address in ("/plans", "/plans/1"))
    for _ in range(3):
        plan(project, goal="verdict", episodes=30)
    assert (len(count_queries("/plans")), len(count_queries("/plans/1"))) == (listed, one)
    assert max(listed, one) <= 8


def test_a_range_has_one_verdict_on_the_page_in_its_csv_and_in_the_api(service, project):
    ranges.send(project, [*ranges.sims(), *ranges.reals(0.9)])
    ranges.declare(project)
    wait_until(lambda: ranges.judged(project)["parameters"], what="the fold")
    answered = {one["name"]: one["verdict"] for one in ranges.judged(project)["parameters"]}
    assert answered["friction"] == "outside"
    address = "/deployments/berlin-line-3"
    with Browser(service, somebody(project, "viewer")) as browser:
        rows = csv.DictReader(io.StringIO(browser.get(f"{address}?format=csv&table=ranges").text))
        assert {row["parameter"]: row["verdict"] for row in rows} == answered
        page = browser.get(address).text
        shown = dict(
            re.findall(r'<th scope="row" class="wrap">\s*(\w+).*?<td>\s*(?:<b[^>]*>)?([^<]+?)\s*<', page, re.S)
        )
        assert {name: shown.get(name) for name in answered} == answered
