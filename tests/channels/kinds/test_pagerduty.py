from dataclasses import replace

from channels.messages import CONTENT, EGRESS, message

from gapwatch.channels.kinds import pagerduty
from gapwatch.channels.kinds.pagerduty import PagerDutyConfig
from gapwatch.channels.message import told_reasons


def test_pagerduty_keeps_one_incident_over_trigger_acknowledge_and_resolve(receiver):
    config = PagerDutyConfig(routing_key="R" * 32, url=f"{receiver.url}/v2/enqueue")
    for action, state in (("trigger", "triggered"), ("acknowledge", "acknowledged"), ("resolve", "resolved")):
        attempt = pagerduty.send(config, message(action), EGRESS)
        assert (attempt.outcome, attempt.status) == ("sent", 202)
        assert "Event processed" in attempt.answer
        assert receiver.incidents["gapwatch/fleet/3"]["state"] == state
    assert receiver.incidents["gapwatch/fleet/3"]["opened"] == 1
    event = receiver.got[0].json
    assert event["payload"]["severity"] == "error"
    assert event["payload"]["source"] == "berlin-line-3"
    assert event["client_url"] == CONTENT["link"]


def test_a_pagerduty_event_that_is_too_large_loses_its_details_and_not_its_headline(receiver):
    config = PagerDutyConfig(routing_key="R" * 32, url=f"{receiver.url}/v2/enqueue")
    attempt = pagerduty.send(config, message(noise="x" * 600_000, headline="h" * 3000), EGRESS)
    assert attempt.outcome == "sent"
    assert len(receiver.got[0].json["payload"]["summary"]) == 1024


def test_a_test_of_pagerduty_leaves_nothing_open(receiver):
    config = PagerDutyConfig(routing_key="R" * 32, url=f"{receiver.url}/v2/enqueue")
    pagerduty.send(config, message("test"), EGRESS)
    assert receiver.incidents["gapwatch/fleet/3"]["state"] == "resolved"


def test_a_later_notification_of_an_acknowledged_incident_is_an_alert_of_its_own_there(receiver):
    config = PagerDutyConfig(routing_key="R" * 32, url=f"{receiver.url}/v2/enqueue")
    told = []
    for number, kind in ((1, "silence"), (2, "performance")):
        tells = [{"kind": kind, "severity": "warning", "since": CONTENT["opened_at"]}]
        content = CONTENT | {"number": number, "tells": tells}
        told += told_reasons(content, {}, was_tried=True)
        pagerduty.send(config, replace(message(**content), told=told), EGRESS)
        if number == 1:
            pagerduty.send(config, replace(message("acknowledge"), told=told), EGRESS)
    states = {key: one["state"] for key, one in receiver.incidents.items()}
    assert states == {"gapwatch/fleet/3": "acknowledged", "gapwatch/fleet/3/2": "triggered"}
    pagerduty.send(config, replace(message("resolve"), told=told), EGRESS)
    assert {one["state"] for one in receiver.incidents.values()} == {"resolved"}
