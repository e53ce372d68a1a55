"""A real Chromium, and a project whose robots send everything that could hurt a page."""

from __future__ import annotations

import shutil

import pytest
from hostile import IMAGE, SCRIPT, hostile_story
from people import somebody

from parts import episode, make_project, wait_until

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def pytest_collection_modifyitems(items):
    if CHROMIUM is None:
        for item in items:
            if "browser" in str(item.path):
                item.add_marker(pytest.mark.skip(reason="chromium is not installed"))


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Watched:
    """A tab that remembers every complaint and every request to anywhere else."""

    def __init__(self, context, url: str) -> None:
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.page.on(
            "request",
            lambda sent: (
                sent.url.startswith((url, "data:", "blob:")) or self.complaints.append(f"request to {sent.url}")
            ),
        )
        # Set before any script of a page: a payload that runs is heard.
        self.page.add_init_script("window.shout = (n) => console.error('payload ' + n + ' ran');")

    def _console(self, message) -> None:
        # The answer's own status is looked at by the test that asks for it.
        if message.type in {"error", "warning"} and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def _dialog(self, dialog) -> None:
        self.complaints.append(f"dialog {dialog.message}")
        dialog.dismiss()


@pytest.fixture
def open_tab(chromium, service):
    """open_tab(who, width, scheme) → a page, signed in; complaints fail the test at its end."""
    contexts, tabs = [], []

    def open_one(who=None, width: int = 1440, scheme: str = "light"):
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, base_url=service.url
        )
        contexts.append(context)
        tab = Watched(context, service.url)
        tabs.append(tab)
        if who is not None:
            tab.page.goto("/sign-in")
            tab.page.fill("input[name=email]", who["email"])
            tab.page.fill("input[name=password]", who["password"])
            tab.page.click("main button[type=submit]")
            tab.page.wait_for_url("**/")
        return tab.page

    yield open_one
    for context in contexts:
        context.close()
    assert [complaint for tab in tabs for complaint in tab.complaints] == []


@pytest.fixture(scope="session")
def hostile(service, tmp_path_factory):
    """A project full of payloads, with an admin, an alert, and a refused record."""
    from gapwatch.store.core.database import Database

    database = Database(service.database_url)
    project = make_project(service, database)
    records = hostile_story()
    with project.client() as client:
        answer = client.post("/episodes/batch", json=records)
        answer.raise_for_status()
        assert answer.json()["accepted"] == len(records), answer.text[:2000]
        client.post("/episodes", json=episode(**{SCRIPT: IMAGE}))
    with project.client("admin") as admin:
        admin.post(
            "/events",
            json={"kind": "release", "title": IMAGE, "deployment": "hostile<b>", "at": "2026-10-09T00:00:00Z"},
        ).raise_for_status()
    project.admin = somebody(project, "admin")
    project.failed = next(record["id"] for record in records[120:] if record["outcome"] == "failure")
    wait_until(
        lambda: (
            project.value("SELECT count(*) FROM work WHERE project_id = :p") == 0
            and project.rows("SELECT id FROM alerts WHERE project_id = :p")
            and project.rows("SELECT id FROM incidents WHERE project_id = :p")
        ),
        30,
        what="the numbers, an alert and its incident",
    )
    project.incident = project.rows("SELECT min(id) FROM incidents WHERE project_id = :p")[0][0]
    project.alert = project.rows("SELECT min(id) FROM alerts WHERE project_id = :p")[0][0]
    yield project
    database.close()
