"""A candidate in shadow on its deployment's page: the bound as a bar, the rates, and the warning of old episodes."""

import re

from answers.lab import Lab, attempts, real, sim
from answers.test_shadow import in_shadow
from people import Browser, somebody


def test_the_page_the_report_and_the_twin_speak_of_shadow(service, project):
    Lab(project).send([*attempts(sim, 90, 10), *in_shadow(207, 23, 20), real("failure", stage="shadow")])
    with Browser(service, somebody(project, "viewer")) as browser:
        page = browser.get("/deployments/berlin-line-3")
        words = " ".join(re.sub(r"<[^>]+>", " ", page.text).split())
        assert "In shadow: what bin-pick 1.4.0 would have done" in words
        assert "between 82.8 % and 90.8 % of the time" in words
        assert "more episodes in shadow narrow it first" in words
        assert "1 episode of stage shadow came without the field" in words
        assert 'data-chart="shadow"' in page.text or "fig-shadow" in page.text
        assert "Driven by bin-pick 1.3.0 (250 episodes" in words
        twin = browser.get("/deployments/berlin-line-3?format=json").json()
        assert (
            twin["page"]["shadow"]["bound"]["n"] == 250 if "page" in twin else twin["shadow"]["bound"]["n"] == 250
        )
        assert "In shadow" in browser.get("/deployments/berlin-line-3?format=report").text
        table = browser.get("/deployments/berlin-line-3?format=csv&table=shadow").text
        assert table.startswith("proposal,where,rate,low,high,episodes,steps")
