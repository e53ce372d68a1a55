from dataclasses import replace

from alerts.receivers import BadDay
from channels.messages import EGRESS, message

from gapwatch.channels.kinds import opsgenie
from gapwatch.channels.kinds.opsgenie import OpsgenieConfig
from gapwatch.channels.message import told_reasons


def test_opsgenie_opens_acknowledges_and_closes_one_alert(receiver):
    config = OpsgenieConfig(api_key="key", url=receiver.url)
    attempt = opsgenie.send(config, message(), EGRESS)
    assert (attempt.outcome, attempt.status) == ("sent", 202), attempt.answer
    assert receiver.opsgenie.alerts == {"gapwatch:fleet:3": "open"}
    assert receiver.taken[0].headers["Authorization"] == "GenieKey key"
    assert receiver.taken[0].json["priority"] == "P2"
    opsgenie.send(config, message("acknowledge", acknowledged_by="ann"), EGRESS)
    assert receiver.opsgenie.alerts == {"gapwatch:fleet:3": "acknowledged"}
    opsgenie.send(config, message("resolve", resolved_by="ann"), EGRESS)
    assert receiver.opsgenie.alerts == {"gapwatch:fleet:3": "closed"}


def test_every_notification_has_an_alias_and_all_are_closed(receiver):
    config = OpsgenieConfig(api_key="key", url=receiver.url)
    told = []
    for number in (1, 2):
        one = message(number=number)
        opsgenie.send(config, one, EGRESS)
        told += told_reasons(one.content, {}, was_tried=True)
    opsgenie.send(config, replace(message("resolve"), told=told), EGRESS)
    assert receiver.opsgenie.alerts == {"gapwatch:fleet:3": "closed", "gapwatch:fleet:3:2": "closed"}


def test_a_test_leaves_nothing_open_and_a_bad_key_is_told(receiver):
    config = OpsgenieConfig(api_key="key", url=receiver.url)
    assert opsgenie.send(config, message("test"), EGRESS).outcome == "sent"
    assert receiver.opsgenie.alerts == {"gapwatch:fleet:3": "closed"}
    receiver.bad_days = [BadDay(401, body=b'{"message":"Key format is not valid!"}')]
    assert opsgenie.send(config, message(), EGRESS).outcome == "refused"
