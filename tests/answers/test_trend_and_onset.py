"""Is it getting worse, and since when, through the API."""

from datetime import timedelta

import pytest
from answers.lab import NOON, attempts, days, real, sim

BERLIN = "/deployments/berlin-line-3"


def test_a_step_is_found_on_its_day(lab):
    """Thirty days of twenty attempts: 18 succeed on each of the first fifteen, 9 on each of the others."""
    lab.send(attempts(sim, 900, 100))
    for number, day in enumerate(days(30)):
        k = 18 if number < 15 else 9
        lab.send(attempts(real, k, 20 - k, at=day, robot=f"r{number % 2}"))
    trend = lab.ask(f"{BERLIN}/trend")
    assert (trend["tier"], len(trend["steps"])) == ("day", 30)
    first, last = trend["steps"][0], trend["steps"][-1]
    assert (first["at"], first["n"], first["successes"], first["current"]) == (
        "2026-10-05T00:00:00Z",
        20,
        18,
        True,
    )
    assert (last["value"], last["drop"]) == (pytest.approx(0.45), pytest.approx(0.45))
    assert last["interval"][0] < 0.45 < last["interval"][1]
    assert (trend["sim"]["value"], trend["sim"]["n"]) == (pytest.approx(0.9), 1000)
    [change] = trend["change_points"]
    assert change["day"] == "2026-10-20"
    assert change["plausible"][0] <= change["day"] <= change["plausible"][1]
    onset = lab.ask(f"{BERLIN}/onset")
    assert (onset["verdict"], onset["change_day"]) == ("step_change", "2026-10-20")
    assert onset["change"] == pytest.approx(0.45, abs=0.02)
    months = lab.ask(f"{BERLIN}/trend", tier="month")["steps"]
    assert [(step["at"][:7], step["n"]) for step in months] == [("2026-10", 540), ("2026-11", 60)]


def test_hours_are_shown_for_a_short_window_and_days_for_a_filter(lab):
    lab.send([*attempts(sim, 9, 1), *(real(at=NOON + timedelta(hours=n), robot="r1") for n in range(6))])
    window = {"since": "2026-10-05T00:00:00Z", "until": "2026-10-06T00:00:00Z"}
    hours = lab.ask(f"{BERLIN}/trend", **window)
    assert (hours["tier"], len(hours["steps"]), hours["steps"][0]["at"]) == ("hour", 6, "2026-10-05T12:00:00Z")
    filtered = lab.ask(f"{BERLIN}/trend", robot="r1", **window)
    assert (filtered["tier"], [step["n"] for step in filtered["steps"]]) == ("day", [6])
    assert lab.ask(f"{BERLIN}/trend", robot="r2", **window)["steps"] == []


def test_a_long_window_shows_the_days_it_has(lab):
    lab.send([*attempts(sim, 9, 1), *(real(at=day, robot="r1") for day in days(3))])
    for robot in ({}, {"robot": "r1"}):
        trend = lab.ask(f"{BERLIN}/trend", since="2020-01-01T00:00:00Z", **robot)
        told = [(step["at"][:10], step["n"]) for step in trend["steps"]]
        assert (trend["tier"], told) == ("day", [("2026-10-05", 1), ("2026-10-06", 1), ("2026-10-07", 1)])


def test_a_release_that_made_it_worse_is_named_and_versions_stand_apart(lab):
    older, newer = ({"policy": {"name": "bin-pick", "version": version}} for version in ("1.3.0", "1.4.0"))
    lab.send([*attempts(sim, 180, 20, **older), *attempts(sim, 180, 20, **newer)])
    for number, day in enumerate(days(24)):
        k = 18 if number < 12 else 10
        lab.send(attempts(real, k, 20 - k, at=day, **(older if number < 12 else newer)))
    onset = lab.ask(f"{BERLIN}/onset")
    assert (onset["verdict"], onset["change_day"]) == ("release_regression", "2026-10-17")
    assert onset["versions"] == ["1.3.0", "1.4.0"]
    assert "1.4.0" in onset["sentence"]
    steps = lab.ask(f"{BERLIN}/trend")["steps"]
    assert [step["version"] for step in steps] == ["1.3.0"] * 12 + ["1.4.0"] * 12
    # The baseline is that of the version that runs now.
    assert [step["drop"] is None for step in steps] == [True] * 12 + [False] * 12


def test_a_drop_from_the_first_day_and_one_at_a_site(lab):
    lab.send(attempts(sim, 180, 20))
    for day in days(20):
        lab.send([*attempts(real, 6, 4, at=day), *attempts(real, 9, 1, at=day, deployment="two-sites", site="a")])
        lab.send(attempts(real, 4, 6, at=day, deployment="two-sites", site="b"))
    assert lab.ask(f"{BERLIN}/onset")["verdict"] == "at_deploy"
    sites = lab.ask("/deployments/two-sites/onset")
    assert (sites["verdict"], sites["where"]) == ("site_specific", ["b"])
    few = lab.ask(f"{BERLIN}/onset", until="2026-10-07T00:00:00Z")
    assert few["verdict"] == "too few episodes"


def test_what_happened_on_the_day_is_named(lab):
    """A step on the fifteenth day, at a calibration that somebody recorded; another project's events stay there."""
    lab.send(attempts(sim, 900, 100))
    for number, day in enumerate(days(30)):
        k = 18 if number < 15 else 9
        lab.send(attempts(real, k, 20 - k, at=day))
    lab.event("calibration", NOON + timedelta(days=15), "wrist camera")
    lab.event("other", NOON + timedelta(days=40), "visitors")
    onset = lab.ask(f"{BERLIN}/onset")
    assert onset["verdict"] == "step_change"
    assert "calibration wrist camera" in onset["sentence"]
    told = lab.ask(f"{BERLIN}/trend", until="2026-11-01T00:00:00Z")["events"]
    calibrated = {"kind": "calibration", "at": "2026-10-20T12:00:00Z", "title": "wrist camera"}
    assert [{name: event[name] for name in calibrated} for event in told] == [calibrated]
    lab.event("release", NOON + timedelta(days=15), "firmware 7")
    assert lab.ask(f"{BERLIN}/onset")["verdict"] == "release_regression"


def test_an_event_is_shown_where_it_concerns_somebody(lab):
    at = NOON + timedelta(hours=1)
    lab.event("release", at, "told early", deployment="berlin-line-3")
    lab.event("release", at, "of another", deployment="oslo-line-1")
    lab.event("site", at, "lamp in berlin", site="berlin")
    lab.event("site", at, "lamp in oslo", site="oslo")
    lab.event("calibration", at, "arm 1", robots=["arm-1", "arm-7"])
    lab.event("calibration", at, "arm 9", robots=["arm-9"])
    lab.event("other", at, "holiday")
    lab.send(attempts(real, 5, 0, at=NOON, site="berlin", robot="arm-1"))
    lab.send(attempts(real, 5, 0, at=NOON, site="oslo", robot="arm-9", deployment="oslo-line-1"))

    def told(deployment):
        return {event["title"] for event in lab.ask(f"/deployments/{deployment}/trend")["events"]}

    assert told("berlin-line-3") == {"told early", "lamp in berlin", "arm 1", "holiday"}
    assert told("oslo-line-1") == {"of another", "lamp in oslo", "arm 9", "holiday"}
