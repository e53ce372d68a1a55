import re

from people import Browser, somebody

from parts import episode, wait_until


def attempts(version: str, day: int, successes: int, failures: int) -> list[dict]:
    outcomes = ["success"] * successes + ["failure"] * failures
    return [
        episode(
            policy={"name": "bin-pick", "version": version},
            started_at=f"2026-10-{day:02}T10:00:00Z",
            outcome=outcome,
        )
        for outcome in outcomes
    ]


def test_a_release_is_compared_with_the_one_before_though_they_share_no_day(service, project):
    before = [record for day in range(1, 6) for record in attempts("1.4.0", day, 38, 2)]
    after = [record for day in range(6, 11) for record in attempts("1.5.0", day, 24, 16)]
    with project.client() as client:
        client.post("/episodes/batch", json=before + after).raise_for_status()
    with Browser(service, somebody(project, "viewer")) as browser:
        address = "/compare?policy=bin-pick@1.4.0&policy=bin-pick@1.5.0"
        wait_until(lambda: browser.get(address).text.count(">n 200<") == 2, what="the numbers")
        page = browser.get(address).text
    words = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "bin-pick@1.5.0 does worse than bin-pick@1.4.0 in reality, by 35.0 points" in words
