from channels.messages import EGRESS, message

from gapwatch.channels.kinds import slack
from gapwatch.channels.kinds.slack import SlackConfig


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
