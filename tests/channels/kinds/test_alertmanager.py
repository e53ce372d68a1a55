import json

from channels.messages import EGRESS, message

from gapwatch.channels.kinds import alertmanager
from gapwatch.channels.kinds.alertmanager import AlertmanagerConfig


def test_alertmanager_has_one_firing_alert_whose_severity_may_rise_and_that_ends(receiver):
    config = AlertmanagerConfig(url=f"{receiver.url}/am", bearer="token")
    alertmanager.send(config, message(), EGRESS)
    assert [labels["severity"] for labels in receiver.alertmanager_firing()] == ["warning"]
    assert receiver.got[0].headers["Authorization"] == "Bearer token"
    alertmanager.send(config, message(severity="critical"), EGRESS)
    assert [labels["severity"] for labels in receiver.alertmanager_firing()] == ["critical"]
    assert alertmanager.send(config, message("acknowledge"), EGRESS).outcome == "sent"
    assert len(receiver.got) == 2
    alertmanager.send(config, message("resolve"), EGRESS)
    assert receiver.alertmanager_firing() == []


def test_every_message_is_json_whatever_it_holds():
    body = alertmanager.body(message(deployment="x\u2028\x00", site=None))
    assert json.loads(body)
