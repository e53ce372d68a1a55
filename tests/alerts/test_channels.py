"""Each channel against its model, with names that try to break out of it."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from alerts.receivers import BadDay
from pydantic import ValidationError

from gapwatch.access.sealing import Sealer
from gapwatch.alerts.channels import alertmanager, apprise, email, pagerduty, slack, webhook
from gapwatch.alerts.channels.message import Message
from gapwatch.alerts.egress import Egress
from gapwatch.watching.channels import (
    AlertmanagerConfig,
    AppriseConfig,
    EmailConfig,
    PagerDutyConfig,
    SlackConfig,
    WebhookConfig,
    split_secrets,
)

EGRESS = Egress(allow_private=True)
# The receivers read the clock, as Alertmanager does: an alert sent on a fixed day would have ended a day later.
NOW = datetime.now(UTC)
CONTENT = {
    "headline": "berlin <!channel> & line: success 91 % → 48 % (n 52), since 16 Nov 09:14 UTC",
    "severity": "warning",
    "deployment": "berlin-line-3",
    "site": "berlin",
    "stage": "full",
    "task": "pick-mug",
    "reasons": [{"kind": "drift", "sentence": "success fell <@U1> *much*."}],
    "category": {"category": "visual", "contribution": 0.2},
    "worst_slices": [],
    "changes": [],
    "robots": {"affected": ["ur5e-1"], "unaffected": []},
    "link": "https://gapwatch.example.com/alerts/7",
    "incident": 3,
    "opened_at": (NOW - timedelta(minutes=1)).isoformat(),
}


def message(action="trigger", **content):
    return Message("1-42", "fleet", action, "gapwatch/fleet/3", CONTENT | content, NOW, NOW)


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


def test_slack_shows_names_as_they_are(receiver):
    attempt = slack.send(SlackConfig(url=f"{receiver.url}/services/T/B/x"), message(), EGRESS)
    assert (attempt.outcome, attempt.answer) == ("sent", "ok")
    body = receiver.got[0].json
    assert "<!channel>" not in body["text"]
    assert "&lt;!channel&gt; &amp; line" in body["text"]
    assert all(block["text"]["type"] == "plain_text" for block in body["blocks"] if "text" in block)
    assert (
        slack.send(SlackConfig(url=f"{receiver.url}/services/T"), message(headline="h" * 500), EGRESS).outcome
        == "sent"
    )


def test_a_webhook_is_signed_over_time_and_body(receiver):
    webhook.send(WebhookConfig(url=f"{receiver.url}/hook", secret="s3cret"), message(), EGRESS)
    got = receiver.got[0]
    expected = webhook.signature("s3cret", got.headers["Gapwatch-Timestamp"], got.body)
    assert got.headers["Gapwatch-Signature"] == f"v1={expected}"
    assert got.headers["Gapwatch-Delivery"] == "1-42" == got.json["id"]
    assert got.json["action"] == "trigger"
    webhook.send(WebhookConfig(url=f"{receiver.url}/hook"), message(), EGRESS)
    assert "Gapwatch-Signature" not in receiver.got[1].headers


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


@pytest.fixture
def mail_config(mail_server):
    return EmailConfig(
        to=["on-call@example.com"],
        sender="gapwatch@example.com",
        host="127.0.0.1",
        port=mail_server.port,
        security="none",
    )


def test_mail_has_the_headline_as_its_subject_and_one_thread_an_incident(mail_server, mail_config):
    attempt = email.send(mail_config, message(), EGRESS)
    assert (attempt.outcome, attempt.status) == ("sent", 250)
    assert "queued as 17" in attempt.answer
    email.send(mail_config, message("resolve", resolved_by="gapwatch"), EGRESS)
    first, second = mail_server.mails
    assert str(first["To"]) == "on-call@example.com"
    assert first["References"] == second["References"]
    assert "visual (20 points)" in first.get_payload(decode=True).decode()


def test_a_name_cannot_add_a_header(mail_server, mail_config):
    email.send(mail_config, message(headline="x\r\nBcc: everybody@example.com"), EGRESS)
    [mail] = mail_server.mails
    assert mail["Bcc"] is None


@pytest.mark.parametrize(("code", "outcome"), [(451, "retry"), (550, "refused")])
def test_a_mail_server_that_says_no(mail_server, mail_config, code, outcome):
    mail_server.codes = [code]
    attempt = email.send(mail_config, message(), EGRESS)
    assert (attempt.outcome, attempt.status) == (outcome, code)


def test_mail_to_a_private_server_needs_the_setting(mail_server, mail_config):
    assert email.send(mail_config, message(), Egress()).outcome == "refused"
    assert mail_server.mails == []


# Apprise loads all its plugins, one of which imports a module that Python is about to drop.
quiet = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated", "ignore::DeprecationWarning:pgpy")


@quiet
def test_apprise_reaches_the_rest(receiver):
    address = receiver.url.removeprefix("http://")
    attempt = apprise.send(AppriseConfig(urls=[f"json://{address}/apprise"]), message(), EGRESS)
    assert attempt.outcome == "sent", attempt.answer
    assert receiver.got[0].json["title"].startswith("berlin")
    receiver.bad_days = [BadDay(500)]
    attempt = apprise.send(AppriseConfig(urls=[f"json://{address}/apprise"]), message(), EGRESS)
    assert attempt.outcome == "retry"
    assert address not in attempt.answer or "/apprise" not in attempt.answer


@quiet
@pytest.mark.parametrize("url", ["json://127.0.0.1/x", "syslog://", "dbus://", "nonsense://x"])
def test_apprise_does_not_reach_this_machine(url):
    assert apprise.send(AppriseConfig(urls=[url]), message(), Egress()).outcome == "refused"


def test_what_is_secret_is_kept_apart():
    shown, hidden = split_secrets("webhook", {"url": "https://example.com/h", "secret": "s"})
    assert (shown, hidden) == ({"url": "https://example.com/h"}, {"secret": "s"})
    shown, hidden = split_secrets("slack", {"url": "https://hooks.slack.com/services/T/B/x"})
    assert (shown, hidden) == ({}, {"url": "https://hooks.slack.com/services/T/B/x"})
    shown, hidden = split_secrets("pagerduty", {"routing_key": "R"})
    assert "routing_key" not in shown


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("webhook", {"url": "ftp://example.com"}),
        ("webhook", {"url": "https://user:pass@example.com/"}),
        ("webhook", {"url": "https://exa mple.com/"}),
        ("webhook", {"url": "https://example.com/\r\nX: y"}),
        ("webhook", {"url": "https://example.com:99999/"}),
        ("webhook", {"url": "https://example.com", "sekret": "s"}),
        ("email", {"to": [], "sender": "a@b", "host": "h"}),
        ("email", {"to": ["a@b\r\nBcc: c@d"], "sender": "a@b", "host": "h"}),
        ("pagerduty", {}),
    ],
)
def test_bad_configurations_are_refused(kind, config):
    with pytest.raises(ValidationError):
        split_secrets(kind, config)


def test_secrets_at_rest_are_unreadable_without_the_server_secret():
    sealed = Sealer(b"one server").seal({"routing_key": "R123"})
    assert b"R123" not in sealed
    assert Sealer(b"one server").open(sealed) == {"routing_key": "R123"}
    assert Sealer(b"another").open(sealed) is None
    assert Sealer(b"one server").open(None) == {}


def test_every_message_is_json_whatever_it_holds():
    body = alertmanager.body(message(deployment="x\u2028\x00", site=None))
    assert json.loads(body)


@pytest.mark.parametrize("url", ["mailto://me:pass@example.com", "MailTos://me:pass@example.com"])
def test_apprise_sends_no_mail_past_the_confirmation_of_addresses(url):
    with pytest.raises(ValidationError, match="kind email"):
        AppriseConfig(urls=[url])
