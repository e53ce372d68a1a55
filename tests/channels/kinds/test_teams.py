from channels.messages import EGRESS, message

from gapwatch.channels.kinds import teams
from gapwatch.channels.kinds.teams import TeamsConfig


def test_teams_gets_a_card_of_plain_text(receiver):
    config = TeamsConfig(url=f"{receiver.url}/workflows/abc/triggers/manual/paths/invoke?sig=xyz")
    attempt = teams.send(config, message(), EGRESS)
    assert (attempt.outcome, attempt.status) == ("sent", 202), attempt.answer
    [attachment] = receiver.taken[0].json["attachments"]
    card = attachment["content"]
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}
    assert card["body"][0]["inlines"][0]["text"].startswith("berlin <!channel> & line")
    assert card["actions"] == [
        {"type": "Action.OpenUrl", "title": "Open", "url": "https://gapwatch.example.com/alerts/7"}
    ]


def test_what_is_too_long_for_teams_is_cut(receiver):
    config = TeamsConfig(url=f"{receiver.url}/workflows/abc")
    assert teams.send(config, message(comment="x\n" * 30_000), EGRESS).outcome == "sent"
