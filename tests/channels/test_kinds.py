"""What holds for every kind of channel, and that each is in the documents as its module says."""

import pytest
from pydantic import ValidationError

from gapwatch.channels.kinds import CHANNEL_KINDS, split_secrets
from gapwatch.settings import ROOT


def test_the_table_of_the_documents_is_that_of_the_registry():
    def spelled(kind, name):
        return f"*`{name}`*" if name in kind.secrets else f"`{name}`"

    rows = ["| kind | config (secret parts in italics) | remarks |", "|---|---|---|"]
    for name, kind in CHANNEL_KINDS.items():
        fields = ", ".join(spelled(kind, field.name) for field in kind.form_fields())
        rows.append(f"| `{name}` | {fields} | {kind.remarks} |")
    table = "\n".join(rows)
    assert f"\n{table}\n\n" in (ROOT / "docs" / "alerts.md").read_text(), f"docs/alerts.md needs:\n{table}"


@pytest.mark.parametrize("name", CHANNEL_KINDS)
def test_hints_and_secrets_are_of_fields_that_exist(name):
    kind = CHANNEL_KINDS[name]
    assert kind.secrets | kind.hints.keys() <= kind.config.model_fields.keys()


def test_the_form_of_a_kind_is_read_off_its_configuration():
    fields = {field.name: field for field in CHANNEL_KINDS["email"].form_fields()}
    assert fields["to"].several and fields["to"].required
    assert fields["security"].choices == ("starttls", "tls", "none")
    assert fields["port"].default == "587"
    assert [name for name, field in fields.items() if field.secret] == ["password"]


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
