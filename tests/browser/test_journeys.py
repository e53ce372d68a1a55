"""The main journeys, walked as a person would."""

import json
import random
import subprocess

import pytest
from people import somebody

from parts import episode, minutes_ago, wait_until

SIM = {"domain": "sim", "deployment": None, "simulator": {"name": "mujoco", "version": "3.3.0"}}


def story() -> list[dict]:
    chance = random.Random(3)
    records = []
    for number in range(200):
        real = number >= 100
        fails = chance.random() < (0.5 if real else 0.04)
        records.append(
            episode(
                **({} if real else SIM),
                outcome="failure" if fails else "success",
                started_at=f"2026-10-{1 + (number % 100) // 4:02}T10:00:00Z",
                conditions={"lighting": chance.choice(["dim", "bright"])},
                failure={"phase": "lift", "labels": ["slip"]} if fails else None,
            )
        )
    return records


@pytest.fixture
def told(project):
    """The project with a deployment that lost half in October, and its engineer."""
    with project.client() as client:
        client.post("/episodes/batch", json=story()).raise_for_status()
    wait_until(
        lambda: project.value("SELECT count(*) FROM work WHERE project_id = :p") == 0, 30, what="the numbers"
    )
    return somebody(project, "engineer")


@pytest.fixture
def alight(project):
    """The project with a deployment that loses half today, and its engineer."""
    records = [record | {"started_at": minutes_ago(400 - 2 * n)} for n, record in enumerate(story())]
    with project.client() as client:
        client.post("/episodes/batch", json=records).raise_for_status()
    wait_until(
        lambda: project.rows("SELECT 1 FROM incidents WHERE project_id = :p AND state = 'firing'"),
        30,
        what="an incident",
    )
    return somebody(project, "engineer")


def test_from_signing_in_to_the_worst_bar_to_an_episode_that_moves_the_ledger(open_tab, told):
    page = open_tab(told)
    page.click("table.fleet tbody th a")
    page.wait_for_url("**/deployments/berlin-line-3")
    assert "most of it to contact dynamics" in page.locator(".headline").inner_text()
    page.wait_for_selector("[data-chart=fig-ledger][data-state=drawn]")
    before = page.locator("#fig-ledger").text_content()
    # The longest bar of the waterfall leads to the episodes behind it.
    longest = page.locator("[data-chart=fig-ledger] .barlayer .point path").first
    longest.scroll_into_view_if_needed()
    bar = longest.bounding_box()
    page.mouse.move(bar["x"] + bar["width"] * 0.7, bar["y"] + bar["height"] / 2)
    page.mouse.click(bar["x"] + bar["width"] * 0.7, bar["y"] + bar["height"] / 2)
    page.wait_for_url("**/episodes?**evidence=contact_dynamics**")
    assert page.locator("h1").inner_text() == "Episodes behind contact dynamics"
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/episodes/*?**")
    page.keyboard.press("2")
    page.keyboard.press("m")
    page.keyboard.type("glare on the rim")
    page.keyboard.press("Escape")
    with page.expect_navigation():
        page.click("button:text-is('Save')")
    assert "a person chose visual" in page.locator("main").inner_text()
    page.goto("/deployments/berlin-line-3")
    wait_until(
        lambda: page.locator("#fig-ledger").text_content() != before and "Visual" in page.content(),
        what="the ledger following",
    )


def test_a_point_of_the_line_tells_its_day_and_leads_to_its_episodes(open_tab, told):
    page = open_tab(told)
    page.goto("/deployments/berlin-line-3")
    chart = page.locator("[data-chart=fig-trend]")
    chart.scroll_into_view_if_needed()
    page.wait_for_selector("[data-chart=fig-trend][data-state=drawn]")
    # 20 October is in the middle of the plot; what counts there are the seven days to it.
    place = chart.evaluate("""(figure) => {
      const at = figure.data.findIndex((trace) => trace.meta?.episodes);
      const { x, y, customdata } = figure.data[at];
      const point = customdata.findIndex(([day]) => day.startsWith("20 Oct"));
      const { xaxis, yaxis } = figure._fullLayout;
      const box = figure.getBoundingClientRect();
      return [box.x + xaxis._offset + xaxis.d2p(x[point]), box.y + yaxis._offset + yaxis.d2p(y[point])];
    }""")
    page.mouse.move(*place)
    page.wait_for_selector("[data-chart=fig-trend] .hoverlayer .hovertext")
    said = page.locator("[data-chart=fig-trend] .hoverlayer").text_content()
    assert "Real, 7 days to 20 Oct" in said and "n 28" in said, said
    page.mouse.click(*place)
    page.wait_for_url("**/episodes?**since=2026-10-14T00:00:00**until=2026-10-21T00:00:00**")
    assert page.locator("main table tbody tr").count() == 28


def test_an_incident_is_opened_commented_on_and_acknowledged(open_tab, alight):
    page = open_tab(alight)
    assert "1 deployment needs attention." in page.locator(".fire").inner_text()
    page.click("nav >> text=Alerts")
    page.locator("table tbody th a").first.click()
    page.wait_for_url("**/incidents/*")
    page.click("#d-comment summary")
    page.fill("#d-comment textarea[name=comment]", "I am on it. <b>Really</b>")
    with page.expect_navigation():
        page.click("#d-comment button")
    assert "I am on it. <b>Really</b>" in page.locator("aside").inner_text()
    with page.expect_navigation():
        page.click("button:has-text('Acknowledge')")
    assert page.locator(".title .state").inner_text() == "acknowledged"
    page.goto("/")
    assert "Nothing new needs attention." in page.locator(".fire").inner_text()
    assert page.locator("nav .count").count() == 0


@pytest.mark.parametrize("height", [844, 600])
def test_a_pager_text_is_followed_on_a_phone_and_acknowledged_in_two_taps(
    chromium, service, project, alight, height
):
    """The first tap opens the link of the message, the second one acknowledges: nothing to scroll, nothing to fill."""
    incident = project.value("SELECT id FROM incidents WHERE project_id = :p")
    context = chromium.new_context(
        viewport={"width": 390, "height": height}, has_touch=True, is_mobile=True, base_url=service.url
    )
    page = context.new_page()
    # Signed in some days ago; whoever is not is led to the link after signing in.
    page.goto(f"/incidents/{incident}")
    page.fill("input[name=email]", alight["email"])
    page.fill("input[name=password]", alight["password"])
    page.click("main button[type=submit]")
    page.wait_for_url(f"**/incidents/{incident}")
    # The text of the message, as a phone shows it.
    page.route("**/message", lambda route: route.fulfill(
        content_type="text/html",
        body=f"<meta name=viewport content='width=device-width'><a href='{service.url}/incidents/{incident}'>open</a>",
    ))  # fmt: skip
    page.goto("/message")
    page.tap("a")
    page.wait_for_url(f"**/incidents/{incident}")
    button = page.locator("[data-acknowledge]")
    box = button.bounding_box()
    assert page.evaluate("scrollY") == 0
    assert box["y"] >= 0 and box["y"] + box["height"] <= height
    assert box["height"] >= 44 and box["width"] > 300
    with page.expect_navigation():
        button.tap()
    assert page.locator(".title .state").inner_text() == "acknowledged"
    assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    context.close()
    assert project.value("SELECT owner FROM incidents WHERE project_id = :p") == alight["email"]


def test_the_inbox_is_worked_by_keys(open_tab, project, alight):
    page = open_tab(alight)
    page.goto("/alerts")
    page.keyboard.press("a")  # nothing is chosen: nothing happens
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "berlin-line-3"
    page.keyboard.press("Enter")
    page.wait_for_url("**/incidents/*")
    page.go_back()
    page.wait_for_selector("[data-row]")
    page.keyboard.press("j")
    with page.expect_navigation():
        page.keyboard.press("a")
    row = page.locator("[data-row]")
    assert row.locator(".state").inner_text() == "acknowledged"
    assert alight["email"] in row.inner_text()
    # The row is still the chosen one.
    page.wait_for_function("document.activeElement.textContent === 'berlin-line-3'")
    page.keyboard.press("a")
    assert page.url.endswith(f"#incident-{project.value('SELECT id FROM incidents WHERE project_id = :p')}")


def test_an_incident_is_acknowledged_by_its_key(open_tab, project, alight):
    page = open_tab(alight)
    page.goto(f"/incidents/{project.value('SELECT id FROM incidents WHERE project_id = :p')}")
    page.focus("#d-comment summary")
    with page.expect_navigation():
        page.keyboard.press("a")
    assert page.locator(".title .state").inner_text() == "acknowledged"


def test_a_key_is_made_and_its_curl_line_brings_an_episode_onto_the_page(open_tab, project, service):
    page = open_tab(somebody(project, "admin"))
    assert page.locator("h2").first.inner_text() == "No episodes yet"
    page.click("main >> text=Settings, Keys")
    page.fill("input[name=name]", "berlin line 3")
    page.click("button:has-text('Make the key')")
    command = page.locator("#made-curl").inner_text()
    page.goto("/")
    sent = subprocess.run(["bash", "-c", f"{command} -sS"], capture_output=True, text=True, timeout=20, check=True)
    assert json.loads(sent.stdout)["status"] == "accepted"
    # The open page shows it by itself.
    page.wait_for_selector("table.fleet >> text=berlin-line-3", timeout=8000)
    page.goto("/settings/keys")
    assert page.locator(".secret").count() == 0


def test_an_open_page_follows_new_data_and_keeps_what_the_reader_did(open_tab, project, told):
    page = open_tab(told)
    page.goto("/deployments/berlin-line-3")
    page.wait_for_selector("[data-chart=fig-ledger][data-state=drawn]")
    page.click("#d-ledger summary")
    page.click("#d-record summary")
    page.fill("#d-record input[name=title]", "lamp hood")
    page.select_option("#d-record select[name=kind]", "calibration")
    page.evaluate("window.scrollTo(0, 700)")
    page.focus("#d-trend summary")
    page.evaluate("window.scrollTo(0, 700)")
    page.evaluate("document.querySelector('[data-chart=fig-ledger]').marked = 'the same element'")
    shown = page.locator(".headline").inner_text()
    with project.client() as client:
        client.post("/episodes/batch", json=[episode() for _ in range(40)]).raise_for_status()
    wait_until(lambda: project.value("SELECT count(*) FROM work WHERE project_id = :p") == 0, what="the fold")
    wait_until(lambda: page.locator(".headline").inner_text() != shown, 10, what="the page following")
    assert "Now 75 % (75 of 100)" in page.locator(".headline").inner_text()
    assert page.evaluate("document.getElementById('d-ledger').open")
    assert abs(page.evaluate("window.scrollY") - 700) < 50
    assert page.evaluate("document.activeElement.closest('details').id") == "d-trend"
    assert page.input_value("#d-record input[name=title]") == "lamp hood"
    assert page.input_value("#d-record select[name=kind]") == "calibration"
    assert page.evaluate("document.querySelector('[data-chart=fig-ledger]').marked") == "the same element"
    assert page.locator("[data-chart=fig-ledger][data-state=drawn] .main-svg").count() > 0


def test_a_hidden_page_asks_for_nothing(open_tab, told):
    page = open_tab(told)
    asked = []
    page.on("request", lambda sent: "/live" in sent.url and asked.append(sent.url))
    wait_until(lambda: page.wait_for_timeout(500) or asked, 8, what="the first question")
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {get: () => true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    page.wait_for_timeout(300)
    before = len(asked)
    page.wait_for_timeout(6000)
    assert len(asked) == before


def test_a_page_says_when_the_service_no_longer_answers(open_tab, told):
    page = open_tab(told)
    page.route("**/live**", lambda route: route.abort())
    page.evaluate("Date.now = ((real) => () => real() + 60000)(Date.now)")
    page.wait_for_selector("[data-freshness]:not(:empty)", timeout=15000)
    assert "Not updated since" in page.locator("[data-freshness]").inner_text()


def test_everything_is_reached_by_keyboard_and_the_focus_is_seen(open_tab, told):
    page = open_tab(told)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")
    page.goto("/")
    seen = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.tagName"))
        if page.evaluate("document.activeElement === document.body"):
            break
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", page.evaluate("document.activeElement.outerHTML")
    assert {"A", "SUMMARY", "BUTTON", "SELECT", "INPUT"} <= seen


def test_a_robot_is_parked_and_put_back_to_work_on_a_phone_by_keyboard(open_tab, project):
    with project.client() as client:
        client.post("/episodes", json=episode(robot="ur5e-1")).raise_for_status()
    wait_until(lambda: project.rows("SELECT 1 FROM presence WHERE project_id = :p"), what="the robot heard")
    page = open_tab(somebody(project, "engineer"), width=390)
    page.goto("/deployments/berlin-line-3")
    page.click("footer a:has-text('Its robots')")
    page.wait_for_url("**/settings/robots?deployment=berlin-line-3")
    page.focus("a[aria-label='Change ur5e-1']")
    page.keyboard.press("Enter")
    page.wait_for_url("**robot=ur5e-1**")
    page.fill("input[name=reason]", "belts are cleaned")
    page.select_option("select[name=lasting]", "4 hours")
    page.focus("button:has-text('Park')")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    row = page.locator("table.cards tbody tr")
    assert "parked until" in row.inner_text() and "belts are cleaned" in row.inner_text()
    assert project.value("SELECT status FROM robot_statuses WHERE project_id = :p") == "parked"
    with page.expect_navigation():
        page.click("button:has-text('Back to work')")
    assert "working" in row.inner_text()
    assert "belts are cleaned" in page.locator(".times").inner_text()


def with_signals(started_at: str, outcome: str, **fields) -> dict:
    """An episode whose page ranks its signals: a table of cells that carry their own labels."""
    force = 30.0 + int(started_at[14:16]) % 7
    return episode(
        started_at=started_at, outcome=outcome, signals={"peak_force_n": force, "loop_latency_ms": 12.5}, **fields
    )


@pytest.fixture
def to_label(project):
    """Three failures among successes, all with signals, and an engineer."""
    records = [with_signals(f"2026-10-01T10:{n:02}:00Z", "success", **({} if n % 2 else SIM)) for n in range(30)]
    records += [
        with_signals(f"2026-10-02T10:0{n}:00Z", "failure", id=f"f-{n}", failure={"phase": "lift"})
        for n in range(3)
    ]
    with project.client() as client:
        client.post("/episodes/batch", json=records).raise_for_status()
    wait_for_numbers(project)
    return somebody(project, "engineer")


def wait_for_numbers(project) -> None:
    wait_until(
        lambda: project.value("SELECT count(*) FROM work WHERE project_id = :p") == 0, 30, what="the numbers"
    )


def category_of(project, episode_id: str) -> str | None:
    return project.value(f"SELECT failure_category FROM episodes WHERE project_id = :p AND id = '{episode_id}'")


def test_failures_with_ranked_signals_are_labelled_by_keys_alone_and_each_save_is_told(
    open_tab, project, to_label
):
    page = open_tab(to_label)
    page.goto("/episodes?outcome=failure")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/episodes/f-2?**")
    assert page.locator("td[data-label]").count() > 0
    # Every category and its taking off, each by the key that stands beside it.
    for box in page.locator("[data-categories] label").all():
        page.keyboard.press(box.locator("kbd").inner_text())
        assert box.locator("input").is_checked(), box.inner_text()
    assert page.locator("[data-categories] label").count() == 14
    page.keyboard.press("1")
    page.keyboard.press("l")
    assert page.evaluate("document.activeElement.value") == "contact_dynamics"
    with page.expect_navigation():
        page.keyboard.press("s")
    page.wait_for_url("**/episodes/f-1?**")
    assert page.locator("#saved b").inner_text() == "Labelled contact dynamics, 1 of 3."
    assert category_of(project, "f-2") == "contact_dynamics"
    with page.expect_navigation():
        page.keyboard.press("u")
    assert page.locator("#saved b").inner_text() == "Taken back, as it was before, 0 of 3."
    assert category_of(project, "f-2") is None
    page.keyboard.press("r")
    with page.expect_navigation():
        page.keyboard.press("s")
    assert page.locator("#saved b").inner_text() == "Labelled interface contract, 1 of 3."
    # The last one has no next: it is saved all the same.
    page.wait_for_url("**/episodes/f-0?**")
    page.keyboard.press("9")
    with page.expect_navigation():
        page.keyboard.press("s")
    assert page.locator("#saved b").inner_text() == "Labelled latency and timing, 2 of 3."


def test_several_episodes_are_ticked_and_labelled_from_the_list_by_keys(open_tab, project, to_label):
    page = open_tab(to_label)
    page.goto("/episodes?domain=real")
    page.keyboard.press("2")
    assert page.locator("[data-chosen]").inner_text() == "Tick at least one episode first"
    for key in "jxjx":
        page.keyboard.press(key)
    assert page.locator("[data-chosen]").inner_text() == "Label 2 ticked episodes"
    # New episodes move the rows; the ticks stay with their episodes.
    with project.client() as client:
        client.post("/episodes", json=with_signals("2026-10-03T10:00:00Z", "failure", id="f-9")).raise_for_status()
    page.wait_for_selector("[id=row-f-9]", timeout=10000)
    assert page.evaluate("[...document.querySelectorAll('[data-tick]:checked')].map((box) => box.value)") == [
        *("f-2", "f-1"),
    ]
    with page.expect_navigation():
        page.keyboard.press("2")
    assert page.locator("#saved b").inner_text() == "Labelled 2 episodes visual, 2 of 4."
    assert [category_of(project, f"f-{n}") for n in (0, 1, 2, 9)] == [None, "visual", "visual", None]
    page.click("[data-tick-all]")
    assert page.locator("[data-chosen]").inner_text() == "Label 4 ticked episodes"
    with page.expect_navigation():
        page.keyboard.press("u")
    assert page.locator("#saved b").inner_text() == "Taken back: 2 episodes as before, 0 of 4."
    # The list counts episodes; the page of a deployment shows what is folded.
    wait_for_numbers(project)
    page.goto("/deployments/berlin-line-3?window=all")
    assert "0 of 4 failures labelled" in page.locator("main").inner_text()
