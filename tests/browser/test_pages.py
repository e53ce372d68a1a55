"""Pages in a real browser: no console error, no policy violation, no request to anywhere else."""

import shutil

import pytest

from parts import episode, wait_until

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(params=["light", "dark"])
def scheme(request):
    return request.param


@pytest.fixture(params=[1440, 390])
def page(request, chromium, scheme, service):
    """A tab that fails the test on any complaint or on any request to another host."""
    context = chromium.new_context(
        viewport={"width": request.param, "height": 900}, color_scheme=scheme, base_url=service.url
    )
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: message.type in {"error", "warning"} and complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda sent: sent.url.startswith((service.url, "data:")) or complaints.append(f"request to {sent.url}"),
    )
    yield page
    context.close()
    assert complaints == []


def has_no_sideways_scroll(page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_signing_in_leads_to_the_fleet(page, person, project):
    with project.client() as client:
        client.post("/episodes", json=episode()).raise_for_status()
    wait_until(
        lambda: project.value("SELECT count(*) FROM rollup_counts WHERE project_id = :p"), what="the counts"
    )
    page.goto("/")
    assert page.title() == "Sign in · Gapwatch"
    assert has_no_sideways_scroll(page)
    page.fill("input[name=email]", person["email"])
    page.fill("input[name=password]", person["password"])
    page.click("button[type=submit]")
    page.wait_for_url("**/")
    assert page.title() == "Fleet · Gapwatch"
    assert page.get_by_text("berlin-line-3").is_visible()
    assert has_no_sideways_scroll(page)
