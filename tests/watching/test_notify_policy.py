from datetime import UTC, datetime, timedelta

from gapwatch.watching.notify_policy import page_for, worst

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def test_the_first_alert_of_an_incident_is_told_at_once():
    assert page_for("warning", paged_severity=None, last_page=None, now=NOW, flap_minutes=10).at == NOW


def test_what_joins_is_quiet_unless_it_is_more_severe():
    joins = {"last_page": NOW, "now": NOW, "flap_minutes": 10}
    assert page_for("warning", paged_severity="warning", **joins).at is None
    assert page_for("info", paged_severity="warning", **joins).at is None
    assert page_for("critical", paged_severity="warning", **joins).at == NOW


def test_a_new_incident_soon_after_the_last_page_waits_for_the_rest_of_the_window():
    last = NOW - timedelta(minutes=4)
    page = page_for("critical", paged_severity=None, last_page=last, now=NOW, flap_minutes=10)
    assert page.at == last + timedelta(minutes=10)
    assert "held back" in page.reason
    later = NOW + timedelta(minutes=6)
    assert page_for("critical", paged_severity=None, last_page=last, now=later, flap_minutes=10).at == later


def test_the_worst_of_several():
    assert worst(["info", "critical", "warning"]) == "critical"
