import base64

from channels.messages import EGRESS, message

from gapwatch.channels.kinds import ntfy
from gapwatch.channels.kinds.ntfy import NtfyConfig


def test_ntfy_gets_a_message_for_its_topic(receiver):
    attempt = ntfy.send(NtfyConfig(topic="fleet", url=receiver.url, token="tk_1"), message(), EGRESS)
    assert (attempt.outcome, attempt.status) == ("sent", 200), attempt.answer
    got = receiver.taken[0]
    assert got.path == "/" and got.headers["Authorization"] == "Bearer tk_1"
    assert got.json["topic"] == "fleet" and got.json["priority"] == 4
    assert got.json["click"] == "https://gapwatch.example.com/alerts/7"


def test_a_name_and_password_instead_of_a_token(receiver):
    config = NtfyConfig(topic="fleet", url=receiver.url, username="ann", password="pw")
    assert ntfy.send(config, message("resolve", severity="critical"), EGRESS).outcome == "sent"
    assert receiver.taken[0].headers["Authorization"] == f"Basic {base64.b64encode(b'ann:pw').decode()}"
    assert receiver.taken[0].json["priority"] == 3


def test_what_is_too_long_for_ntfy_is_cut_by_its_bytes(receiver):
    config = NtfyConfig(topic="fleet", url=receiver.url)
    assert ntfy.send(config, message(comment="€" * 4000), EGRESS).outcome == "sent"
