from channels.messages import EGRESS, message

from gapwatch.channels.kinds import discord
from gapwatch.channels.kinds.discord import DiscordConfig


def test_discord_gets_an_embed_that_mentions_and_formats_nothing(receiver):
    config = DiscordConfig(url=f"{receiver.url}/api/webhooks/123/token")
    attempt = discord.send(config, message(comment="@everyone [click](https://evil.example)"), EGRESS)
    assert (attempt.outcome, attempt.status) == ("sent", 204), attempt.answer
    body = receiver.taken[0].json
    assert body["allowed_mentions"] == {"parse": []}
    [embed] = body["embeds"]
    assert embed["title"].startswith("berlin \\<!channel\\>")
    assert embed["url"] == "https://gapwatch.example.com/alerts/7"
    assert "\\[click\\]\\(https" in embed["description"] and "\\@everyone" in embed["description"]


def test_what_is_too_long_for_discord_is_cut(receiver):
    config = DiscordConfig(url=f"{receiver.url}/api/webhooks/123/token")
    assert discord.send(config, message(headline="*" * 3000, comment="x" * 9000), EGRESS).outcome == "sent"


def test_what_is_over_is_green(receiver):
    config = DiscordConfig(url=f"{receiver.url}/api/webhooks/123/token")
    discord.send(config, message("resolve"), EGRESS)
    [embed] = receiver.taken[0].json["embeds"]
    assert embed["title"].startswith("Resolved: ") and embed["color"] == discord.RESOLVED
