"""A fresh deployment walked from offline to full and rolled back in the browser, on a phone and on a desk."""

import json

from api.test_rollouts import reals, send, shadows, sims
from browser.test_pages import axe_violations, sideways
from people import somebody

from parts import wait_until

ADDRESS = "/deployments/berlin-line-3"
PLAN = [
    {"id": "episodes", "kind": "min_episodes", "limit": 300, "stage": "offline"},
    {"id": "infeasible", "kind": "max_infeasible", "limit": 0.2, "stage": "shadow"},
    {"id": "drop", "kind": "max_drop", "limit": 0.2, "stage": "supervised"},
    {"id": "overrides", "kind": "max_rate", "measure": "overrides", "limit": 0.2, "stage": "supervised"},
]


def stage_of(page) -> str:
    return page.locator("h2#rollout").inner_text().strip()


def press(page, label: str, reason: str) -> None:
    act = page.locator("details.act", has_text=label)
    act.locator("summary").click()
    act.locator("input[name=reason]").fill(reason)
    act.locator("button[type=submit]").click()
    page.wait_for_load_state()


def wait_for_pass(page) -> None:
    def is_passed() -> bool:
        page.goto(ADDRESS)
        return "is passed" in page.locator("section:has(#rollout) .finding").inner_text()

    wait_until(is_passed, 60, pause_s=0.5, what="the watch judging the gate")


def test_a_deployment_is_walked_from_offline_to_full_and_back(open_tab, project):
    send(project, [*sims(), *reals("offline", 1)])
    page = open_tab(somebody(project, "engineer"))
    page.goto(ADDRESS)
    page.click("#d-plan summary")
    page.fill("input[name=margin]", "20")
    page.fill("input[name=fallback_version]", "1.3.0")
    page.fill("textarea[name=criteria]", json.dumps(PLAN))
    page.click("#d-plan button[type=submit]")
    assert stage_of(page) == "Rollout: offline"
    wait_for_pass(page)
    press(page, "Promote to shadow", "400 simulated episodes")
    assert stage_of(page) == "Rollout: shadow" and "bin-pick 1.3.0 may drive" in page.inner_text("main")
    send(project, shadows(60))
    wait_for_pass(page)
    press(page, "Promote to supervised", "1 % infeasible")
    send(project, reals("supervised", 150))
    wait_for_pass(page)
    phone = open_tab(somebody(project, "admin"), 390, "dark")
    phone.goto(ADDRESS)
    press(phone, "Promote to full", "as good as simulated")
    assert stage_of(phone) == "Rollout: full" and "Day 0 of the 90-day watch" in phone.inner_text("main")
    # The other page is of the stage before: a second press moves nothing.
    press(page, "Promote to full", "as good as simulated")
    assert "Somebody decided meanwhile" in page.inner_text("main")
    press(phone, "Roll back", "the gripper slips")
    assert stage_of(phone) == "Rollout: supervised"
    assert "bin-pick 1.3.0 may drive" in phone.inner_text("main")
    assert not sideways(phone) and axe_violations(phone) == []
    with page.expect_download() as packet:
        page.goto(ADDRESS)
        page.locator("section:has(#rollout) a:text-is('HTML')").first.click()
    assert packet.value.suggested_filename.startswith("gapwatch-decision-")
    page.goto("/rollouts")
    assert "on its fallback" in page.inner_text("main")
