from datetime import UTC, datetime, timedelta

import pytest
from answers.lab import attempts, real, sim

from gapwatch.closing.week import answer_week
from gapwatch.closing.week_words import week_headline, week_lines, week_name
from parts import wait_until

NOW = datetime.now(UTC)


def send_two_weeks(lab, slug, before, after):
    """A robot's episodes of each day: successes and failures."""
    records = []
    for back in range(14):
        at = NOW - timedelta(days=back, minutes=1)
        successes, failures = after if back < 7 else before
        records += attempts(real, successes, failures, at=at, deployment=slug, robot=f"{slug}-1")
    lab.send(records)


def test_the_week_says_what_moved_what_is_steady_and_where_hours_buy_most(lab):
    lab.send(attempts(sim, 950, 50, at=NOW - timedelta(days=20)))
    send_two_weeks(lab, "fell-1", (27, 3), (18, 12))
    send_two_weeks(lab, "rose-1", (15, 15), (27, 3))
    send_two_weeks(lab, "steady-1", (27, 3), (27, 3))
    lab.send(attempts(real, 5, 1, at=NOW - timedelta(minutes=1), deployment="new-1"))
    week = lab.ask("/week")
    assert [(one["deployment"], one["verdict"]) for one in week["moved"]] == [
        ("fell-1", "fell"),
        ("rose-1", "rose"),
    ]
    fell = week["moved"][0]
    assert fell["points"] == pytest.approx(-30, abs=0.01)
    assert fell["interval"][0] < -30 < fell["interval"][1] < 0
    assert (fell["last_week"]["n"], fell["this_week"]["value"]) == (210, pytest.approx(0.6))
    assert (week["steady"], week["too_few"], week["deployments"]) == (1, 1, 4)
    assert week["worth_hours"][0]["deployment"] == "fell-1"
    assert week["worth_hours"][0]["failures_a_week"] > 20
    [bias] = week["simulators"]
    assert (bias["task"], bias["simulator"]) == ("pick-mug", "mujoco")
    assert bias["interval"][0] < bias["bias"] < bias["interval"][1]
    # The fall is one incident, found by the watch a moment later.
    wait_until(lambda: lab.ask("/week")["incidents"]["unowned"] >= 1, 30, what="the incident")
    listed = lab.ask("/week")["incidents"]["listed"]
    assert {"id", "deployment", "severity", "owner"} <= listed[0].keys()
    assert (week["fixes"], week["decided"], week["waiting"]) == ([], [], [])
    with lab.project.database.reading(lab.project.id) as connection:
        answer = answer_week(connection, lab.project.id, datetime.now(UTC))
    assert week_headline(answer).startswith("1 deployment fell and 1 rose since last week; ")
    lines = week_lines(answer)
    assert lines[0] == "Moved:" and lines[1].startswith("  fell-1 fell by 30.0 points (−")
    assert any(line.startswith("Incidents: ") for line in lines)
    assert " to " in week_name(answer)


def test_an_empty_project_has_a_week_too(lab):
    week = lab.ask("/week")
    assert (week["deployments"], week["moved"], week["simulators"]) == (0, [], [])
    assert lab.get("/week", since="7d").status_code == 422
