from channels.messages import EGRESS, message

from gapwatch.channels.kinds import mattermost
from gapwatch.channels.kinds.mattermost import MattermostConfig


def test_mattermost_gets_an_attachment_that_mentions_and_formats_nothing(receiver):
    config = MattermostConfig(url=f"{receiver.url}/hooks/xxx-generatedkey-xxx")
    attempt = mattermost.send(config, message(comment="@channel [click](https://evil.example)"), EGRESS)
    assert (attempt.outcome, attempt.answer) == ("sent", "ok")
    [attachment] = receiver.taken[0].json["attachments"]
    assert attachment["title_link"] == "https://gapwatch.example.com/alerts/7"
    assert "@channel" not in receiver.taken[0].body.decode() and "@channel" not in attachment["text"]
    assert "\\[click\\]\\(" in attachment["text"]


def test_what_is_over_is_green(receiver):
    config = MattermostConfig(url=f"{receiver.url}/hooks/xxx")
    mattermost.send(config, message("resolve"), EGRESS)
    assert receiver.taken[0].json["attachments"][0]["color"] == mattermost.RESOLVED
