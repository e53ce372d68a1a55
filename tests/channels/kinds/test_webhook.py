from channels.messages import EGRESS, message

from gapwatch.channels.kinds import webhook
from gapwatch.channels.kinds.webhook import WebhookConfig


def test_a_webhook_is_signed_over_time_and_body(receiver):
    webhook.send(WebhookConfig(url=f"{receiver.url}/hook", secret="s3cret"), message(), EGRESS)
    got = receiver.got[0]
    expected = webhook.signature("s3cret", got.headers["Gapwatch-Timestamp"], got.body)
    assert got.headers["Gapwatch-Signature"] == f"v1={expected}"
    assert got.headers["Gapwatch-Delivery"] == "fleet-42" == got.json["id"]
    assert got.json["action"] == "trigger"
    webhook.send(WebhookConfig(url=f"{receiver.url}/hook"), message(), EGRESS)
    assert "Gapwatch-Signature" not in receiver.got[1].headers
