from datetime import UTC, datetime, timedelta

import pytest

from gapwatch.watching.robot_status import RobotStatus, objection

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def status(word, since=NOW - 2 * HOUR, until=None):
    return RobotStatus(word, since, until, None, "anna")


def test_a_status_with_an_end_is_over_by_itself():
    repair = status("repair", until=NOW)
    assert repair.at(NOW - HOUR) == "repair"
    assert repair.at(NOW) == "working"
    assert status("retired").at(NOW + timedelta(days=4000)) == "retired"


def test_silence_counts_from_when_a_robot_works_again():
    assert status("working").at_work_since(NOW) == NOW - 2 * HOUR
    assert status("parked").at_work_since(NOW) is None
    assert status("parked", until=NOW + HOUR).at_work_since(NOW) is None
    assert status("parked", until=NOW - HOUR).at_work_since(NOW) == NOW - HOUR


@pytest.mark.parametrize(
    ("current", "said_ago", "by_robot", "expected"),
    [
        (None, 5 * HOUR, True, None),
        (status("working"), HOUR, True, None),
        (status("working"), 3 * HOUR, True, "older"),
        (status("working"), 3 * HOUR, False, "older"),
        (status("parked"), 0 * HOUR, True, None),
        (status("repair"), 0 * HOUR, True, "set by people"),
        (status("retired"), 0 * HOUR, True, "set by people"),
        (status("repair"), 0 * HOUR, False, None),
        (status("repair", until=NOW - HOUR), 0 * HOUR, True, None),
    ],
)
def test_the_newest_statement_stands_and_a_robot_cannot_take_back_what_people_said(
    current, said_ago, by_robot, expected
):
    assert objection(current, said_at=NOW - said_ago, by_robot=by_robot, now=NOW) == expected
