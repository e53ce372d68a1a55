from datetime import UTC, datetime, timedelta

import pytest

from gapwatch.watching.notify_policy import is_over, notification_for, worst

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def test_the_first_alert_of_an_incident_is_told_at_once():
    assert (
        notification_for("warning", notified_severity=None, last_notified_at=None, now=NOW, flap_minutes=10).at
        == NOW
    )


def test_what_joins_is_quiet_unless_it_is_more_severe():
    joins = {"last_notified_at": NOW, "now": NOW, "flap_minutes": 10}
    assert notification_for("warning", notified_severity="warning", **joins).at is None
    assert notification_for("info", notified_severity="warning", **joins).at is None
    assert notification_for("critical", notified_severity="warning", **joins).at == NOW


def test_a_new_incident_soon_after_the_last_notification_waits_for_the_rest_of_the_window():
    last = NOW - timedelta(minutes=4)
    notification = notification_for(
        "critical", notified_severity=None, last_notified_at=last, now=NOW, flap_minutes=10
    )
    assert notification.at == last + timedelta(minutes=10)
    assert "held back" in notification.reason
    later = NOW + timedelta(minutes=6)
    assert (
        notification_for("critical", notified_severity=None, last_notified_at=last, now=later, flap_minutes=10).at
        == later
    )


def test_the_worst_of_several():
    assert worst(["info", "critical", "warning"]) == "critical"


@pytest.mark.parametrize(
    ("open_severities", "told", "over"),
    [
        ([], None, True),
        ([], "warning", True),
        (["warning"], "warning", False),
        (["info"], "warning", True),
        (["info", "critical"], "warning", False),
        (["info"], "info", False),
        (["info"], None, False),
    ],
)
def test_an_incident_is_over_when_nothing_is_left_that_people_were_told_of(open_severities, told, over):
    assert is_over(open_severities, told) == over
