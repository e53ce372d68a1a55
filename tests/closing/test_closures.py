import pytest
from closing.weeks import FIXED_AT, GRASPS, attempts_on, day

from gapwatch.closing.closures import keep_settled


def tell(lab, title="200 real grasps", *, at=FIXED_AT, deployment="berlin-line-3", **fix):
    with lab.project.client("ingest") as client:
        answer = client.post(
            "/events",
            json={
                "kind": "mitigation",
                "title": title,
                "at": at.isoformat(),
                "deployment": deployment,
                "fix": GRASPS | fix,
            },
        )
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]


def test_a_fix_is_credited_from_the_release_that_brings_it_and_not_from_when_it_was_collected(lab):
    # 60 % before, 60 % in the three days between collecting and shipping, 75 % after the release.
    lab.send(attempts_on(range(-20, 3), 20, 8, robot="r-1"))
    lab.send(attempts_on(range(3, 23), 20, 5, "1.4.1", robot="r-1"))
    lab.event("release", day(3), "bin-pick 1.4.1 rolled out", deployment="berlin-line-3")
    number = tell(lab)
    [fix] = lab.ask("/fixes")["fixes"]
    closure = fix["closure"]
    assert (fix["id"], fix["kind"], fix["category"], fix["expected_points"]) == (
        number, "fine_tuning", "contact_dynamics", 15,
    )  # fmt: skip
    assert closure["points"] == pytest.approx(15, abs=0.5)
    assert closure["interval"][0] > 5 and closure["verdict"] == "closed"
    assert fix["expectation"] == "as expected" and fix["written"] == "after"
    assert (closure["before"]["n"], closure["after"]["n"], closure["days_on_no_side"]) == (400, 400, 3)
    assert fix["shipped_at"] == "2026-09-05T00:00:00Z"
    assert closure["rivals"] == [], "the release that brought it is none"
    [aimed] = [part for part in closure["per_category"] if part["category"] == "contact_dynamics"]
    assert aimed["points"] == pytest.approx(15, abs=0.5)
    assert closure["control"] is None and "wait for fresh episodes" in closure["selection"]
    assert lab.ask(f"/fixes/{number}") == fix
    assert lab.get("/fixes/99999").status_code == 404


def test_other_deployments_of_the_policy_are_the_control_and_an_event_near_is_a_rival(lab):
    for slug in ("berlin-line-3", "lyon-1", "turin-1"):
        gains = slug == "berlin-line-3"
        lab.send(attempts_on(range(-15, 0), 20, 8, robot=f"{slug}-a", deployment=slug))
        # Everything gains ten points; the fix another fifteen.
        lab.send(attempts_on(range(1, 16), 20, 3 if gains else 6, robot=f"{slug}-a", deployment=slug))
    lab.event("calibration", day(2), "cameras of berlin", deployment="berlin-line-3")
    tell(lab, from_version=None)
    [fix] = lab.ask("/fixes", deployment="berlin-line-3")["fixes"]
    closure = fix["closure"]
    assert closure["control"]["kind"] == "deployments"
    assert closure["control"]["units"] == ["lyon-1", "turin-1"]
    assert closure["control"]["points"] == pytest.approx(10, abs=0.5)
    assert closure["points"] == pytest.approx(15, abs=1)
    assert [rival["title"] for rival in closure["rivals"]] == ["cameras of berlin"]


def test_named_robots_are_compared_with_the_others_and_a_slice_with_other_levels(lab):
    for robot, before, after in (("r-1", 8, 3), ("r-2", 6, 6), ("r-3", 6, 6)):
        for lighting in ("dim", "bright"):
            conditions = {"lighting": lighting}
            lab.send(attempts_on(range(-15, 0), 20, before, robot=robot, conditions=conditions))
            lab.send(attempts_on(range(1, 16), 20, after, robot=robot, conditions=conditions))
    tell(lab, "new pads", from_version=None, kind="hardware", robots=["r-1"])
    [fix] = lab.ask("/fixes")["fixes"]
    closure = fix["closure"]
    assert closure["control"]["kind"] == "robots" and closure["control"]["units"] == ["r-2", "r-3"]
    assert closure["regression_subtracted"] > 0, "r-1 was the worst"
    assert "worst of 3 robots" in closure["selection"]
    assert 20 < closure["points"] < 25 and closure["verdict"] == "closed"
    tell(lab, "a lamp", from_version=None, kind="hardware", conditions={"lighting": "dim"})
    newest = lab.ask("/fixes", limit=1)
    assert newest["next"] is not None
    [lamp] = newest["fixes"]
    assert lamp["closure"]["control"]["kind"] == "slices"
    assert lamp["closure"]["points"] == pytest.approx(0, abs=1.5)


def test_a_fix_that_did_not_ship_or_has_no_episodes_says_so(lab):
    lab.send(attempts_on(range(-15, 0), 20, 8, robot="r-1"))
    tell(lab)
    tell(lab, deployment="nowhere-yet")
    elsewhere, here = lab.ask("/fixes")["fixes"]
    assert here["closure"]["verdict"] == elsewhere["closure"]["verdict"] == "too few episodes"
    assert here["closure"]["reason"] == "No real episode of version 1.4.1 yet: it has not shipped."
    assert here["closure"]["after"] is None and here["closure"]["before"]["n"] == 300


def test_robots_left_on_the_old_version_are_the_control(lab):
    for robot in ("r-1", "r-2"):
        lab.send(attempts_on(range(-15, 0), 20, 8, robot=robot))
    lab.send(attempts_on(range(2, 17), 20, 4, "1.4.1", robot="r-1"))
    lab.send(attempts_on(range(2, 17), 20, 7, robot="r-2"))
    tell(lab)
    [fix] = lab.ask("/fixes")["fixes"]
    control = fix["closure"]["control"]
    assert (control["kind"], control["units"]) == ("robots", ["r-2"])
    assert control["points"] == pytest.approx(5, abs=0.5)


def test_what_is_over_is_kept_and_read_back_the_same(lab):
    lab.send(attempts_on(range(-20, 3), 20, 8, robot="r-1"))
    lab.send(attempts_on(range(3, 23), 20, 5, "1.4.1", robot="r-1"))
    tell(lab)
    [live] = lab.ask("/fixes")["fixes"]
    with lab.project.database.transaction() as connection:
        assert keep_settled(connection, lab.project.id, day(60)) == 1
        assert keep_settled(connection, lab.project.id, day(60)) == 1
    assert lab.project.value("SELECT measured_at IS NOT NULL FROM events WHERE project_id = :p")
    [kept] = lab.ask("/fixes")["fixes"]
    assert kept == live
    table = lab.ask("/fixes/table")
    [row] = table["rows"]
    assert (row["kind"], row["category"], row["fixes"], row["decided"]) == (
        "fine_tuning",
        "contact_dynamics",
        1,
        1,
    )
    assert row["points_per_robot_hour"] == pytest.approx(15 / 12, abs=0.1)
    assert row["points_per_robot_hour_interval"][0] > 0 and row["did_nothing"] == 0


def test_a_plain_mitigation_is_measured_too(lab):
    lab.send(attempts_on(range(-15, 16), 20, 8, robot="r-1"))
    lab.event("mitigation", FIXED_AT, "lamp hood", deployment="berlin-line-3")
    [fix] = lab.ask("/fixes")["fixes"]
    assert (fix["kind"], fix["category"], fix["closure"]["points"]) == (None, None, pytest.approx(0, abs=0.5))
    assert lab.ask("/fixes/table") == {"fixes": 1, "rows": []}
