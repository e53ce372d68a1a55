from datetime import UTC, datetime, timedelta

from answers.lab import Lab, attempts, real, sim
from pages.test_fixes import words
from people import Browser, somebody


def test_the_week_on_one_page_with_its_twin(service, project):
    lab, now = Lab(project), datetime.now(UTC)
    with Browser(service, somebody(project, "viewer")) as viewer:
        assert "No deployments yet" in words(viewer.get("/week"))
        lab.send(attempts(sim, 190, 10, at=now - timedelta(days=20)))
        for back in range(14):
            failures = 9 if back < 7 else 2
            lab.send(
                attempts(real, 20 - failures, failures, at=now - timedelta(days=back, minutes=1), robot="r-1")
            )
        page = words(viewer.get("/week"))
        assert "1 deployment fell since last week" in page
        for title in ("Moved since last week", "Incidents", "Fixes", "Gates", "Where robot-hours would buy most"):
            assert title in page
        assert "promises" in page and "points too much" in page
        twin = viewer.get("/week?format=json").json()["page"]
        assert twin["week"]["moved"][0]["verdict"] == "fell"
