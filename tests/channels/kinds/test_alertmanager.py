import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from channels.messages import CONTENT, EGRESS, NOW, message

from gapwatch.channels.kinds import alertmanager
from gapwatch.channels.kinds.alertmanager import ENDED_FOR, OPEN_FOR, RESEND_EVERY, AlertmanagerConfig, alerts_of
from gapwatch.channels.message import told_reasons


@pytest.fixture
def config(receiver):
    return AlertmanagerConfig(url=f"{receiver.url}/am", bearer="token")


def tells(kind, severity="warning", number=1, over_at=None, was_tried=True, **more):
    """One kind of reason that was told in a notification."""
    content = CONTENT | {
        "number": number,
        "severity": severity,
        "tells": [{"kind": kind, "severity": severity, "since": CONTENT["opened_at"]}],
    }
    over = {} if over_at is None else {kind: over_at}
    return told_reasons(content | more, over, was_tried=was_tried)


def with_told(action, *told, number=1):
    told_all = [one for some in told for one in some]
    return replace(message(action, number=number), told=told_all)


def firing(receiver):
    return sorted((labels["reason"], labels["severity"]) for labels in receiver.alertmanager_firing())


def ends(alert):
    return datetime.fromisoformat(alert["endsAt"])


def test_each_kind_of_reason_is_an_alert_and_all_end_with_their_incident(receiver, config):
    first, second = tells("silence"), tells("performance", number=2)
    alertmanager.send(config, with_told("trigger", first), EGRESS)
    assert firing(receiver) == [("silence", "warning")]
    alertmanager.send(config, with_told("trigger", first, second, number=2), EGRESS)
    assert firing(receiver) == [("performance", "warning"), ("silence", "warning")]
    assert receiver.got[0].headers["Authorization"] == "Bearer token"
    assert alertmanager.send(config, with_told("acknowledge", first, second), EGRESS).outcome == "sent"
    assert len(receiver.got) == 2
    alertmanager.send(config, with_told("resolve", first, second), EGRESS)
    assert firing(receiver) == []
    assert len(receiver.alertmanager) == 2


def test_an_alert_that_becomes_more_severe_takes_the_place_of_the_first_and_nothing_else_is_ended(
    receiver, config
):
    alertmanager.send(config, with_told("trigger", tells("performance")), EGRESS)
    assert [len(got.json) for got in receiver.got] == [1]
    worse = tells("performance", "critical", number=2)
    alertmanager.send(config, with_told("trigger", tells("performance", over_at=NOW), worse, number=2), EGRESS)
    assert firing(receiver) == [("performance", "critical")]
    assert {json.loads(key)["severity"] for key in receiver.alertmanager} == {"warning", "critical"}
    alertmanager.send(config, with_told("resolve", worse), EGRESS)
    assert [alert["labels"]["severity"] for alert in receiver.got[-1].json] == ["critical"]


def test_open_alerts_have_an_end_four_rounds_ahead():
    [alert] = alerts_of(with_told("trigger", tells("gate")))
    assert ends(alert) == NOW + OPEN_FOR == NOW + 4 * RESEND_EVERY
    assert alert["startsAt"] == CONTENT["opened_at"]
    assert alert["annotations"]["summary"] == CONTENT["headline"]


def test_what_is_over_is_sent_along_for_a_while_with_its_true_end():
    lately, long_ago = NOW - timedelta(minutes=2), NOW - ENDED_FOR - timedelta(minutes=1)
    told = (tells("silence", over_at=lately), tells("gate", over_at=long_ago), tells("safety", number=2))
    alerts = {alert["labels"]["reason"]: ends(alert) for alert in alerts_of(with_told("trigger", *told))}
    assert alerts == {"safety": NOW + OPEN_FOR, "silence": lately}


def test_a_kind_that_came_back_under_the_same_labels_is_open_and_not_ended():
    told = (tells("silence", over_at=NOW), tells("silence", number=2))
    [alert] = alerts_of(with_told("trigger", *told, number=2))
    assert ends(alert) == NOW + OPEN_FOR


def test_what_was_never_sent_there_is_not_ended_there(receiver, config):
    attempt = alertmanager.send(config, with_told("resolve", tells("silence", was_tried=False)), EGRESS)
    assert attempt.outcome == "sent"
    over = with_told("trigger", tells("silence", over_at=NOW, was_tried=False))
    assert alertmanager.send(config, over, EGRESS).outcome == "sent"
    assert receiver.got == []


def test_labels_stay_those_of_the_time_it_was_told():
    moved = with_told("trigger", tells("gate", stage="supervised"), tells("safety", number=2, stage="full"))
    assert {alert["labels"]["reason"]: alert["labels"]["stage"] for alert in alerts_of(moved)} == {
        "gate": "supervised",
        "safety": "full",
    }


def test_a_test_is_an_alert_that_fires_now_and_ends_by_itself():
    [alert] = alerts_of(message("test"))
    assert datetime.fromisoformat(alert["startsAt"]) <= NOW < ends(alert) <= NOW + timedelta(minutes=10)
    [another] = alerts_of(replace(message("test"), id="fleet-43"))
    assert another["labels"] != alert["labels"]


def test_all_that_is_open_is_one_request(receiver, config):
    messages = [replace(with_told("trigger", tells("gate")), dedup_key=f"gapwatch/fleet/{n}") for n in range(40)]
    assert alertmanager.resend(config, messages, EGRESS).outcome == "sent"
    assert [len(got.json) for got in receiver.got] == [40]
    assert len(receiver.alertmanager_firing()) == 40


def test_what_an_earlier_release_sent_is_kept_and_ended_under_its_labels():
    told = told_reasons(CONTENT, {}, was_tried=True)
    [alert] = alerts_of(with_told("resolve", told))
    assert "reason" not in alert["labels"]
    assert alert["labels"]["severity"] == "warning"


def test_every_message_is_json_whatever_it_holds():
    hostile = with_told("trigger", tells("gate", deployment="x\u2028\x00", site=None))
    assert json.loads(json.dumps(alerts_of(hostile)))


def test_a_line_about_no_incident_is_an_alert_for_a_day_and_ends_under_the_same_labels():
    line = {"headline": "Import of 900 episodes", "severity": "warning", "reasons": [], "link": ""}
    [opened] = alerts_of(replace(message(), content=line, dedup_key="gapwatch/fleet/import-1"))
    assert ends(opened) == NOW + timedelta(days=1)
    [ended] = alerts_of(replace(message("resolve"), content=line, dedup_key="gapwatch/fleet/import-1"))
    assert ended["labels"] == opened["labels"]
    assert ends(ended) == NOW
