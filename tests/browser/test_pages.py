"""Every page in a real browser, wide and narrow, light and dark, full of what a hostile robot would send."""

import json
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import pytest

AXE = Path(find_spec("axe_playwright_python").origin).parent / "axe.min.js"

PAGES = {
    "fleet": "/",
    "deployment": "/deployments/hostile%3Cb%3E",
    "filtered": "/deployments/hostile%3Cb%3E?since=2026-10-10T00:00:00Z&condition=lighting:dim",
    "episodes": "/episodes",
    "behind": "/episodes?deployment=hostile%3Cb%3E&evidence=contact_dynamics",
    "episode": "/episodes/{failed}",
    "compare": "/compare?deployment=hostile%3Cb%3E&deployment=hostile%3Cb%3E",
    "trust": "/compare/simulators",
    "rollouts": "/rollouts",
    "plans": "/plans?deployment=berlin-line-3",
    "fixes": "/fixes",
    "week": "/week",
    "alerts": "/alerts?state=all",
    "alert": "/alerts/{alert}",
    "incident": "/incidents/{incident}",
    "rules": "/settings/rules?edit=success-drift",
    "channels": "/settings/channels?kind=email",
    "silences": "/settings/silences",
    "robots": "/settings/robots?robot=hostile%3Cb%3E",
    "calendars": "/settings/calendars?deployment=hostile%3Cb%3E",
    "keys": "/settings/keys",
    "members": "/settings/members",
    "taxonomy": "/settings/taxonomy",
    "baselines": "/settings/baselines",
    "quarantine": "/settings/quarantine",
    "projects": "/projects",
    "account": "/account",
    "absent": "/deployments/no-such",
}
HAVE_FIGURES = {"deployment", "filtered", "compare", "trust", "alert", "incident"}


def sideways(page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


def draw_all(page) -> None:
    """Figures are drawn when they come near: look at each, those that are folded away too."""
    page.eval_on_selector_all("details:has([data-chart])", "all => all.forEach((one) => { one.open = true; })")
    figures = page.locator("[data-chart]")
    assert figures.count() > 0
    for place in range(figures.count()):
        figure = figures.nth(place)
        figure.scroll_into_view_if_needed()
        name = figure.get_attribute("data-chart")
        page.wait_for_selector(f"[data-chart={name}][data-state=drawn]")


def axe_violations(page) -> list[str]:
    """What axe finds, one line each. The policy of the page does not bind the debugger."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_every_page_is_quiet_fits_and_is_accessible(open_tab, hostile, width, scheme):
    page = open_tab(hostile.admin, width, scheme)
    faults = []
    for name, address in PAGES.items():
        page.goto(address.format(failed=hostile.failed, alert=hostile.alert, incident=hostile.incident))
        if name in HAVE_FIGURES:
            draw_all(page)
        if sideways(page):
            faults.append(f"{name} scrolls sideways")
        faults += [f"{name}: {one}" for one in axe_violations(page)]
        if page.locator("h1").count() != 1:
            faults.append(f"{name} has {page.locator('h1').count()} h1")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("width", [1440, 1280, 1024, 390])
def test_every_place_and_every_column_of_the_fleet_is_in_sight(open_tab, hostile, width):
    page = open_tab(hostile.admin, width)
    for place in page.locator(".nav a").all():
        box = place.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
    for address in ("/", "/alerts?state=all", "/episodes"):
        page.goto(address)
        hidden = page.eval_on_selector_all(".scroll", "all => all.map((one) => one.scrollWidth - one.clientWidth)")
        assert hidden and max(hidden) <= 0, address


def test_names_in_figures_stay_text(open_tab, hostile):
    page = open_tab(hostile.admin)
    page.goto(PAGES["deployment"])
    draw_all(page)
    drawn = page.locator("[data-chart=fig-conditions]").inner_text()
    assert "<img src=x" in drawn
    assert page.locator("[data-chart] a, [data-chart] img, [data-chart] b").count() == 0


def test_the_report_opens_from_a_disk_without_a_network(open_tab, hostile, chromium, tmp_path):
    page = open_tab(hostile.admin)
    text = page.request.get(f"{PAGES['deployment']}?format=report").text()
    file = tmp_path / "report.html"
    file.write_text(text)
    context = chromium.new_context(offline=True)
    report = context.new_page()
    complaints = []
    report.on("console", lambda message: message.type == "error" and complaints.append(message.text))
    report.on("pageerror", lambda error: complaints.append(str(error)))
    report.add_init_script("window.shout = (n) => console.error('payload ' + n + ' ran');")
    report.goto(file.as_uri())
    report.wait_for_selector("[data-chart=fig-ledger][data-state=drawn]")
    assert report.locator("h1").inner_text() == "hostile<b>"
    assert complaints == []
    context.close()


def test_a_figure_can_be_saved_as_pixels_and_as_vectors(open_tab, hostile):
    page = open_tab(hostile.admin)
    page.goto(PAGES["deployment"])
    page.wait_for_selector("[data-chart=fig-ledger][data-state=drawn]")
    for kind, start in {"png": b"\x89PNG", "svg": b"<svg"}.items():
        with page.expect_download() as download:
            page.click(f"button[data-figure=fig-ledger][data-format={kind}]")
        assert download.value.suggested_filename == f"ledger.{kind}"
        assert download.value.path().read_bytes().startswith(start)


def test_plotly_comes_compressed_and_only_to_pages_with_figures(open_tab, hostile):
    page = open_tab(hostile.admin)
    asked = []
    page.on("response", lambda answer: "plotly" in answer.url and asked.append(answer))
    page.goto("/episodes")
    assert asked == []
    page.goto(PAGES["deployment"])
    page.wait_for_selector("[data-chart][data-state=drawn]")
    [answer] = asked
    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]
    assert int(answer.headers["content-length"]) < 1_600_000


def test_the_theme_button_goes_through_system_light_and_dark_and_is_remembered(open_tab, hostile):
    page = open_tab(hostile.admin)
    button = page.locator("[data-theme-button]")
    seen = []
    for _ in range(3):
        button.click()
        seen.append(page.evaluate("document.documentElement.dataset.theme ?? 'system'"))
    assert seen == ["light", "dark", "system"]
    button.click()
    button.click()
    page.reload()
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


@pytest.mark.parametrize(
    ("zone", "clock", "typed", "sent"),
    [
        ("Asia/Tokyo", "19:00", "2026-10-09T08:30", "2026-10-08T23:30:00Z"),
        ("America/Los_Angeles", "03:00", "2026-10-08T20:30", "2026-10-09T03:30:00Z"),
    ],
)
def test_times_are_those_of_the_reader(chromium, service, hostile, zone, clock, typed, sent):
    context = chromium.new_context(base_url=service.url, timezone_id=zone)
    page = context.new_page()
    page.goto("/sign-in")
    page.fill("input[name=email]", hostile.admin["email"])
    page.fill("input[name=password]", hostile.admin["password"])
    page.click("main button[type=submit]")
    page.goto(f"/episodes/{hostile.failed}")
    time = page.locator("time[data-time]").first
    assert time.get_attribute("title").endswith("10:00:00 UTC")
    assert time.inner_text().endswith(clock)
    assert zone in page.locator("[data-zone]").inner_text()
    # What is typed is local, what is sent is UTC, and what comes back is local again.
    page.goto(PAGES["deployment"])
    page.click(".window-picker summary")
    assert zone in page.locator(".window-picker label").first.inner_text()
    page.fill(".window-picker input[name=since]", typed)
    page.click(".window-picker button")
    page.wait_for_url(lambda url: f"since={quote(sent, safe='')}" in url)
    assert page.input_value(".window-picker input[name=since]") == typed
    context.close()


def test_pages_work_without_scripts(chromium, service, hostile):
    context = chromium.new_context(base_url=service.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/sign-in")
    page.fill("input[name=email]", hostile.admin["email"])
    page.fill("input[name=password]", hostile.admin["password"])
    page.click("main button[type=submit]")
    page.goto(f"{PAGES['deployment']}")
    assert "Now 69 % (69 of 100)" in page.locator(".headline").inner_text()
    page.click("#d-ledger summary")
    assert page.locator("#d-ledger table").is_visible()
    page.goto("/episodes")
    page.select_option("select[name=outcome]", "failure")
    page.click("form.filters button")
    assert "outcome=failure" in page.url
    context.close()


def test_figures_are_plain_data(open_tab, hostile):
    """An island cannot end its own script, whatever the names in it are."""
    page = open_tab(hostile.admin)
    page.goto(PAGES["deployment"])
    islands = page.eval_on_selector_all("script[type='application/json']", "all => all.map((e) => e.textContent)")
    assert len(islands) > 3
    assert any("shout(2)" in island for island in islands)
    for island in islands:
        json.loads(island)
        assert "</script" not in island
