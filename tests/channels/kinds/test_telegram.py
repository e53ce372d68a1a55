import json

import pytest
from alerts.receivers import BadDay
from channels.messages import EGRESS, message
from pydantic import ValidationError

from gapwatch.channels.kinds import telegram
from gapwatch.channels.kinds.telegram import TelegramConfig

TOKEN = "123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11"


def test_telegram_gets_plain_text(receiver):
    config = TelegramConfig(token=TOKEN, chat_id="-1001234", url=receiver.url)
    attempt = telegram.send(config, message(), EGRESS)
    assert (attempt.outcome, attempt.status) == ("sent", 200), attempt.answer
    got = receiver.taken[0]
    assert got.path == f"/bot{TOKEN}/sendMessage"
    assert got.json["chat_id"] == "-1001234" and "parse_mode" not in got.json
    assert got.json["text"].startswith("berlin <!channel> & line")
    assert got.json["text"].endswith("https://gapwatch.example.com/alerts/7")


def test_what_is_too_long_for_telegram_is_cut(receiver):
    config = TelegramConfig(token=TOKEN, chat_id="@fleet_alerts", url=receiver.url)
    assert telegram.send(config, message(comment="x" * 9000), EGRESS).outcome == "sent"


def test_telegram_says_in_its_answer_how_long_to_wait(receiver):
    config = TelegramConfig(token=TOKEN, chat_id="1", url=receiver.url)
    receiver.bad_days = [BadDay(429, body=json.dumps({"ok": False, "parameters": {"retry_after": 35}}).encode())]
    attempt = telegram.send(config, message(), EGRESS)
    assert (attempt.outcome, attempt.retry_after_s) == ("retry", 35)


@pytest.mark.parametrize(
    "config",
    [
        {"token": "1:a/../../x", "chat_id": "1"},
        {"token": TOKEN, "chat_id": "x y"},
        {"token": "12", "chat_id": "1"},
    ],
)
def test_tokens_and_chats_that_could_lead_elsewhere_are_refused(config):
    with pytest.raises(ValidationError):
        TelegramConfig(**config)
