from urllib.parse import parse_qs

from channels.messages import EGRESS, message

from gapwatch.channels.kinds import pushover
from gapwatch.channels.kinds.pushover import PushoverConfig

TOKEN, USER = "a" * 30, "u" * 30


def test_pushover_gets_a_form(receiver):
    config = PushoverConfig(token=TOKEN, user=USER, url=f"{receiver.url}/1/messages.json")
    attempt = pushover.send(config, message(), EGRESS)
    assert (attempt.outcome, attempt.status) == ("sent", 200), attempt.answer
    fields = {name: values[0] for name, values in parse_qs(receiver.taken[0].body.decode()).items()}
    assert (fields["token"], fields["user"], fields["priority"]) == (TOKEN, USER, "1")
    assert fields["url"] == "https://gapwatch.example.com/alerts/7"


def test_what_is_too_long_for_pushover_is_cut_and_what_is_over_is_of_normal_priority(receiver):
    config = PushoverConfig(token=TOKEN, user=USER, url=f"{receiver.url}/1/messages.json")
    long = message("resolve", headline="x" * 900, comment="y" * 5000)
    assert pushover.send(config, long, EGRESS).outcome == "sent"
    assert parse_qs(receiver.taken[0].body.decode())["priority"] == ["0"]
