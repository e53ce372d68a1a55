import csv
import io
import json
import random
import re

import plotly.graph_objects as go
import pytest
from people import Browser, somebody

from gapwatch.answers.catalogue import TABLES
from parts import episode, wait_until

SIM = {"domain": "sim", "deployment": None, "simulator": {"name": "mujoco", "version": "3.3.0"}}
CONDITIONS = ("dim", "bright", "backlit")


def story(n_sim: int = 120, n_real: int = 120) -> list[dict]:
    """Sim does well everywhere; real slips, is worse in backlight, and meets a surface that sim never saw."""
    chance = random.Random(5)
    records = []
    for number in range(n_sim + n_real):
        real = number >= n_sim
        lighting, surface = chance.choice(CONDITIONS), chance.choice(["steel", "wet"]) if real else "steel"
        fails = chance.random() < ((0.25 + 0.3 * (lighting == "backlit")) if real else 0.05)
        day = 1 + (number - n_sim if real else number) * 28 // max(n_sim, n_real)
        records.append(
            episode(
                **({} if real else SIM),
                started_at=f"2026-10-{day:02}T10:00:00Z",
                outcome="failure" if fails else "success",
                robot=f"r-{number % 2}" if real else None,
                duration_s=chance.gauss(12, 2),
                session=f"s-{day}",
                conditions={"lighting": lighting, "surface": surface, "clutter": chance.randint(0, 3)},
                signals={"peak_force_n": chance.gauss(31 if real else 25, 3)},
                metrics={"energy_j": chance.gauss(210, 10)},
                contract={"control_hz": 50 if real else 100},
                failure={"phase": "lift", "labels": ["slip"]} if fails else None,
            )
        )
    return records


@pytest.fixture
def engineer(service, project):
    with project.client() as client:
        client.post("/episodes/batch", json=story()).raise_for_status()
    with Browser(service, somebody(project, "engineer")) as browser:
        wait_until(
            lambda: browser.get("/deployments/berlin-line-3?format=json").json()["page"]["drop"]["n_real"] == 120,
            what="the numbers",
        )
        yield browser


def islands(page: str) -> dict[str, dict]:
    found = re.findall(r'<script type="application/json" id="fig-([\w-]+)">(.*?)</script>', page, re.DOTALL)
    return {name: json.loads(text) for name, text in found}


def test_the_page_answers_the_four_questions_in_words(engineer):
    page = engineer.get("/deployments/berlin-line-3").text
    words = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert re.search(r"Now \d\d % \(\d+ of 100\) ; simulation \d\d % \. Steady\.", words)
    assert re.search(r"It loses \d\d\.\d points \(\d+\.\d to \d\d\.\d\) , most of it to contact dynamics", words)
    for question in ("How much is lost", "Why", "Is it getting worse", "Who knows"):
        assert f"<dt>{question}</dt>" in page
    assert "contracts that differ in 1 field: control_hz" in words
    assert "such as surface = wet" in words
    assert "No change is known since the first episodes of 1.4.0 on 1 Oct" in words
    assert "<title>berlin-line-3, release 1.4.0 since 1 Oct · Gapwatch</title>" in " ".join(page.split())
    assert page.index('id="t-trend"') < page.index('id="t-ledger"')
    all_time = engineer.get("/deployments/berlin-line-3?window=all").text
    words = " ".join(re.sub(r"<[^>]+>", " ", all_time).split())
    everything = (
        r"Everything stored: In reality it succeeds \d\d\.\d % of the time \(\d+ of 120, \d\d\.\d to \d\d\.\d\)"
    )
    assert re.search(everything, words)


def test_every_figure_is_one_that_plotly_knows(engineer):
    figures = islands(engineer.get("/deployments/berlin-line-3").text)
    assert {"ledger", "trend", "conditions", "signal-0", "failures"} <= set(figures)
    for name, figure in figures.items():
        go.Figure({"data": figure["data"], "layout": figure["layout"]})
        for path in figure["narrow"]:
            node = figure
            for key in path.split(".")[:-1]:
                node = node[int(key) if isinstance(node, list) else key]
            assert isinstance(node, dict | list), (name, path)


def test_the_bars_of_the_ledger_add_up_and_open_their_episodes(engineer):
    page = engineer.get("/deployments/berlin-line-3").text
    bars = next(trace for trace in islands(page)["ledger"]["data"] if trace.get("type") == "bar")
    twin = engineer.get("/deployments/berlin-line-3?format=json").json()["page"]
    assert sum(bars["x"]) == pytest.approx(-100 * twin["ledger"]["drop"])
    behind = engineer.get(bars["customdata"][0]["href"]).text
    assert "Episodes behind contact dynamics" in behind
    contact = next(part for part in twin["ledger"]["categories"] if part["category"] == "contact_dynamics")
    assert behind.count(" data-row>") == contact["episodes"]["count"]


def test_figures_of_a_report_offer_nothing_to_click(engineer):
    """A file has no service to ask; what its figures show is the same."""
    on_page = islands(engineer.get("/deployments/berlin-line-3").text)
    answer = engineer.get("/deployments/berlin-line-3?format=report")
    in_report = islands(answer.text)
    assert in_report.keys() == on_page.keys()
    written = json.dumps(in_report)
    assert "Click" in json.dumps(on_page) and "Click" not in written
    assert "/episodes" not in written and "href" not in written
    for name, figure in in_report.items():
        assert figure["layout"] == on_page[name]["layout"]
        assert [trace.get("x") for trace in figure["data"]] == [trace.get("x") for trace in on_page[name]["data"]]


def test_the_twin_is_what_the_api_answers(engineer, project):
    twin = engineer.get("/deployments/berlin-line-3?format=json").json()["page"]
    everything = engineer.get("/deployments/berlin-line-3?format=json&window=all").json()["page"]
    with project.client("read") as client:
        for name in ("drop", "ledger", "slices", "signals", "failures", "robots", "contract"):
            for window, page in (("now", twin), ("all", everything)):
                answer = client.get(f"/deployments/berlin-line-3/{name}", params={"window": window}).json()
                assert page[name] == answer, (window, name)
        # Whatever the window, these are of all history.
        for name, field in (("trend", "steps"), ("trend", "levels"), ("onset", "verdict")):
            answer = client.get(f"/deployments/berlin-line-3/{name}").json()
            assert twin[name][field] == everything[name][field] == answer[field]


def test_filters_act_on_everything_and_can_be_taken_off(engineer):
    page = engineer.get(
        "/deployments/berlin-line-3?robot=r-1&condition=lighting:backlit&since=2026-10-08T00:00:00Z"
    )
    assert page.status_code == 200
    assert page.text.count('aria-label="Take off ') == 3
    twin = engineer.get(f"{page.url}&format=json").json()["page"]
    sizes = {twin[name]["n_real"] for name in ("drop", "ledger", "slices", "signals", "failures", "trend")}
    assert len(sizes) == 1 and 0 < sizes.pop() < 40
    nothing = engineer.get("/deployments/berlin-line-3?robot=nobody")
    assert nothing.status_code == 200
    assert "Take off a filter above" in nothing.text


def test_other_metrics_are_compared_in_their_own_unit(engineer):
    page = engineer.get("/deployments/berlin-line-3?metric=energy_j").text
    words = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert re.search(r"energy_j is 2\d\d \(n 120, 2\d\d to 2\d\d\) in reality", words)
    assert '<option value="energy_j" selected>' in page


@pytest.mark.parametrize("table", ["ledger", "conditions", "signals", "failures", "trend"])
def test_every_table_is_a_csv(engineer, table):
    answer = engineer.get(f"/deployments/berlin-line-3?format=csv&table={table}")
    assert answer.headers["content-type"].startswith("text/csv")
    window = "all-history" if table == "trend" else "release-1.4.0-since-1-Oct"
    assert f'filename="berlin-line-3-{table}-{window}.csv"' in answer.headers["content-disposition"]
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert len(rows) > 1
    assert len({len(row) for row in rows}) == 1
    assert engineer.get("/deployments/berlin-line-3?format=csv&table=passwords").status_code == 404


def test_the_report_is_one_file_that_asks_for_nothing(engineer):
    answer = engineer.get("/deployments/berlin-line-3?format=report")
    assert answer.headers["content-disposition"].startswith('attachment; filename="gapwatch-berlin-line-3-')
    outside = re.sub(r"<script.*?</script>|<style>.*?</style>", "", answer.text, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(?!data:)', outside)
    assert "release-1.4.0-since-1-Oct" in answer.headers["content-disposition"]
    assert re.search(r"Now <strong", outside)
    figures = islands(answer.text)
    assert set(figures) >= {"ledger", "trend", "conditions", "failures"}
    # Nor does a figure offer to open what only the service has.
    written = json.dumps(figures)
    assert "Click" not in written and "/episodes" not in written and "n %{customdata[3]:,}" in written


def test_a_recorded_mitigation_is_measured_before_and_after(engineer, project):
    answer = engineer.submit(
        "/deployments/berlin-line-3", project.slug, kind="mitigation", title="lamp hood", at="2026-10-14T09:00:00Z"
    )
    assert answer.status_code == 200
    twin = engineer.get("/deployments/berlin-line-3?format=json").json()["page"]
    [measured] = twin["fixes"]
    assert measured["title"] == "lamp hood"
    closure = measured["closure"]
    assert closure["before"]["n"] > 30 and closure["after"]["n"] > 30
    assert closure["interval"][0] <= closure["points"] <= closure["interval"][1]
    html = engineer.get("/deployments/berlin-line-3").text
    assert "How it was measured" in html and "lamp hood" in html
    assert [event["kind"] for event in twin["events"]] == ["mitigation"]
    told = "SELECT details FROM audit_entries WHERE project_id = :p AND action = 'event.recorded'"
    assert project.value(told)["changes"]["title"] == {"from": None, "to": "lamp hood"}


def test_a_deployment_without_simulation_says_what_to_send(service, project):
    with project.client() as client:
        client.post("/episodes", json=episode(deployment="alone")).raise_for_status()
    with Browser(service, somebody(project, "viewer")) as browser:
        page = wait_until(lambda: "1 of 1" in (text := browser.get("/deployments/alone").text) and text)
    assert "no simulation to compare it with" in page
    assert "No comparison yet" in page
    assert "&#34;domain&#34;: &#34;sim&#34;" in page or '"domain": "sim"' in page


def test_compared_deployments_and_the_simulator_draw_figures_that_plotly_knows(engineer):
    page = engineer.get("/compare?deployment=berlin-line-3&policy=bin-pick@1.4.0")
    assert page.status_code == 200
    assert "not settled" in page.text
    trust = engineer.get("/compare/simulators")
    assert "mujoco 3.3.0" in trust.text
    for text in (page.text, trust.text):
        figures = islands(text)
        assert figures
        for figure in figures.values():
            go.Figure({"data": figure["data"], "layout": figure["layout"]})
    assert engineer.get("/compare?deployment=no-such").status_code == 422


def few_and_shared() -> list[dict]:
    """One gripper for all, a level of six episodes that all fail, two sites, and a robot that is worse."""
    records = []
    for number in range(400):
        real = number >= 200
        robot = number % 4
        lighting = "dark" if number % 200 < 6 else ("dim", "bright")[number % 2]
        fails = real and (lighting == "dark" or (robot == 3 and number % 5 < 3) or number % 17 == 0)
        records.append(
            episode(
                **({"deployment": "osaka-line-9"} if real else SIM),
                started_at=f"2026-10-{1 + number % 200 // 10:02}T10:00:00Z",
                outcome="failure" if fails else "success",
                robot=f"osaka-{robot}" if real else None,
                site=("east", "west")[number % 3 == 0] if real else None,
                conditions={"lighting": lighting, "gripper": "suction"},
            )
        )
    return records


def test_every_verdict_in_a_csv_is_the_word_on_the_page_and_in_the_api(service, project):
    """For each answer that has a CSV with verdicts, and for two windows."""
    with project.client() as client:
        client.post("/episodes/batch", json=few_and_shared()).raise_for_status()
    with Browser(service, somebody(project, "viewer")) as browser, project.client("read") as reader:
        address = "/deployments/osaka-line-9"
        wait_until(
            lambda: browser.get(f"{address}?format=json").json()["page"]["drop"]["n_real"] == 200, what="it"
        )
        tables = {
            "conditions": lambda page: [(f"{one['condition']} = {one['level']}", one) for one in page["slices"]["slices"]],
            "robots": lambda page: [(one["name"], one) for key in ("robots", "sites") for one in page["robots"][key]["units"]],
        }  # fmt: skip
        # Ranges say theirs of a parameter, whatever the window: tests/pages/test_plans.py.
        assert {"conditions", "robots", "ranges"} == {
            name for name in TABLES if "verdict" in browser.get(f"{address}?format=csv&table={name}").text.split("\n")[0]
        }  # fmt: skip
        for window in ("", "&since=2026-10-05T00:00:00Z"):
            page = browser.get(f"{address}?{window}").text
            twin = browser.get(f"{address}?format=json{window}").json()["page"]
            for name, units in tables.items():
                rows = list(
                    csv.DictReader(io.StringIO(browser.get(f"{address}?format=csv&table={name}{window}").text))
                )
                written = [row["verdict"] for row in rows]
                assert written == [one["verdict"] for _, one in units(twin)] and written, name
                for label, one in units(twin):
                    row = re.search(
                        rf"<th [^>]*>\s*(?:<code>)?{re.escape(label)}\b.*?<td data-verdict>(.*?)</td>",
                        page,
                        re.DOTALL,
                    )
                    assert row is not None and row[1] == one["verdict"], label
            with_api = reader.get(f"{address}/slices?{window}").json()["slices"]
            assert [one["verdict"] for one in with_api] == [
                one["verdict"] for _, one in tables["conditions"](twin)
            ]


def test_few_episodes_are_folded_what_all_share_does_not_lead_and_the_odd_robot_is_in_the_headline(
    service, project
):
    with project.client() as client:
        client.post("/episodes/batch", json=few_and_shared()).raise_for_status()
    with Browser(service, somebody(project, "viewer")) as browser:
        address = "/deployments/osaka-line-9"
        wait_until(
            lambda: browser.get(f"{address}?format=json").json()["page"]["drop"]["n_real"] == 200, what="it"
        )
        page = browser.get(address).text
        report = browser.get(f"{address}?format=report").text
        twin = browser.get(f"{address}?format=json").json()["page"]
    assert "1 level with fewer than 20 episodes" in page and "1 level with fewer than 20 episodes" in report
    levels = [(one["level"], one["few"], one["shared"]) for one in twin["slices"]["slices"]]
    assert ("dark", True, False) in levels[-2:] and ("suction", False, True) in levels[-2:]
    worst = re.search(r"Worst: (.*?)</p>", page, re.DOTALL)
    assert worst is not None and "lighting" in worst[1] and "suction" not in worst[1] and "dark" not in worst[1]
    headline = re.search(r'<p class="headline">(.*?)</p>', page, re.DOTALL)
    assert headline is not None and twin["robots"]["sentence"] in headline[1]
    assert twin["robots"]["sentence"].startswith("osaka-3 alone: ")
    assert twin["robots"]["sentence"] in report and "fig-robots" in page and "fig-robots" in report
