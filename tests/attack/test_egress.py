"""Attack: make a channel reach what only this machine can reach, by redirect, rebinding, port, plain http or a file."""

import socket
import sys

import pytest
from alerts.receivers import BadDay
from alerts.stage import SECRET, Stage
from attack.configs import config_of
from channels.messages import message
from sqlalchemy import text

from gapwatch.access.sealing import Sealer
from gapwatch.alerts.retired_channels import replace_apprise
from gapwatch.channels.egress import Egress
from gapwatch.channels.kinds import CHANNEL_KINDS, read_config
from gapwatch.channels.retired import successors_of
from gapwatch.settings import ROOT
from gapwatch.watching import notification

WEB_KINDS = sorted(CHANNEL_KINDS.keys() - {"email"})
EVENTS: list[tuple[str, tuple]] = []
# Installed once: an audit hook cannot be removed again.
_listening: list[bool] = []


@pytest.fixture
def events():
    """What this process opened, resolved and connected to."""
    if not _listening:
        _listening.append(True)
        sys.addaudithook(
            lambda event, args: (
                EVENTS.append((event, args)) if event in {"open", "socket.getaddrinfo", "socket.connect"} else None
            )
        )
    EVENTS.clear()
    return EVENTS


def send(kind, base, egress):
    # An Alertmanager is told of an incident only what it was told before; of a test at once.
    one = message("test" if kind == "alertmanager" else "trigger")
    return CHANNEL_KINDS[kind].send(read_config(kind, {}, config_of(kind, base)), one, egress)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", WEB_KINDS)
def test_no_kind_follows_a_redirect(receiver, kind, status):
    receiver.bad_days = [BadDay(status, {"Location": f"{receiver.url}/internal"})]
    assert send(kind, receiver.url, Egress(allow_private=True)).outcome == "refused"
    assert len(receiver.got) == 1 and receiver.got[0].path != "/internal"


@pytest.mark.parametrize("kind", WEB_KINDS)
def test_no_kind_reaches_this_machine_plain_http_or_an_odd_port(receiver, events, kind):
    port = receiver.server.server_port
    for base in (
        receiver.url,
        f"https://127.0.0.1:{port}",
        "https://127.0.0.1",
        "http://1.1.1.1",
        "https://1.1.1.1:6379",
    ):
        attempt = send(kind, base, Egress())
        assert attempt.outcome == "refused" and "GAPWATCH_ALLOW_PRIVATE_TARGETS" in attempt.answer, base
    assert receiver.got == []
    assert [args for event, args in events if event == "socket.connect"] == []


@pytest.mark.parametrize("kind", WEB_KINDS)
def test_every_kind_resolves_once_connects_to_what_it_checked_and_opens_no_file(
    receiver, events, monkeypatch, kind
):
    """A name that changes its address between two look-ups gets no second look-up."""
    asked = []
    real = socket.getaddrinfo

    def rebinding(host, *args, **more):
        if host == "rebinding.example.com":
            asked.append(host)
            return real("127.0.0.1" if len(asked) == 1 else "127.0.0.2", *args, **more)
        return real(host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    port = receiver.server.server_port
    # Once beforehand: what the libraries read when they are imported is none of the message's doing.
    send(kind, receiver.url, Egress(allow_private=True))
    events.clear()
    attempt = send(kind, f"http://rebinding.example.com:{port}", Egress(allow_private=True))
    assert attempt.outcome == "sent", attempt.answer
    assert asked == ["rebinding.example.com"]
    assert {args[1] for event, args in events if event == "socket.connect"} == {("127.0.0.1", port)}
    opened = {str(args[0]) for event, args in events if event == "open"}
    assert not [path for path in opened if not path.endswith((".pem", ".py", ".pyc", ".so"))], opened


def test_a_mail_server_is_on_its_ports_and_a_password_is_never_sent_in_the_clear(events):
    kind = CHANNEL_KINDS["email"]
    for changed in ({"port": 6379}, {"host": "127.0.0.1"}, {"host": "1.1.1.1", "security": "none"}):
        config = read_config("email", {}, {**config_of("email", ""), "host": "1.1.1.1", **changed})
        attempt = kind.send(config, message(), Egress())
        assert attempt.outcome == "refused" and "GAPWATCH_ALLOW_PRIVATE_TARGETS" in attempt.answer, changed
    assert [args for event, args in events if event == "socket.connect"] == []


@pytest.fixture
def stage(database, receiver):
    return Stage(database, receiver)


def store_apprise(stage, *urls):
    """What an earlier release stored."""
    sealed = Sealer(SECRET).seal({"urls": list(urls)})
    with stage.database.transaction() as connection:
        return connection.execute(
            text(
                "INSERT INTO channels (project_id, name, kind, secret) VALUES (1, 'old', 'apprise', :sealed) RETURNING id"
            ),
            {"sealed": sealed},
        ).scalar_one()


def enqueue_test(stage, channel_id):
    from gapwatch.store.alerting import outbox

    with stage.database.transaction() as connection:
        outbox.enqueue(connection, 1, channel_id, "test", notification.test_content("old"), incident_id=None)


@pytest.mark.parametrize(
    "address", ["json://{host}/x", "workflows://{host}/a/b/?template=/etc/passwd", "ntfy://{host}/t"]
)
def test_a_stored_apprise_address_is_never_contacted_and_says_so(stage, receiver, address):
    channel_id = store_apprise(stage, address.replace("{host}", receiver.url.removeprefix("http://")))
    receiver.bad_days = [BadDay(307, {"Location": f"{receiver.url}/internal"})]
    enqueue_test(stage, channel_id)
    stage.send()
    assert receiver.got == []
    [(outcome, answer)] = stage.rows("SELECT outcome, answer FROM delivery_attempts")
    assert outcome == "refused" and "no longer supported" in answer


def test_stored_apprise_addresses_of_services_with_a_kind_become_channels(stage):
    kept = store_apprise(stage, "discord://123456/tokentoken", "tgram://123456:ABCDEFGHIJK/-1001/fleet_alerts")
    stage.run(
        "INSERT INTO rules (project_id, name, kind, severity, channel_ids) VALUES (1, 'r', 'drop', 'warning', :c)",
        c=[kept],
    )
    with stage.database.transaction() as connection:
        assert replace_apprise(connection, Sealer(SECRET)) == 3
        assert replace_apprise(connection, Sealer(SECRET)) == 0
    rows = stage.rows("SELECT id, name, kind, config FROM channels ORDER BY id")
    assert [(kind, config.get("chat_id")) for _, _, kind, config in rows] == [
        ("discord", None),
        ("telegram", "-1001"),
        ("telegram", "@fleet_alerts"),
    ]
    assert rows[0][:2] == (kept, "old")
    assert stage.rows("SELECT channel_ids FROM rules") == [([row[0] for row in rows],)]


def test_of_a_mixed_apprise_channel_the_rest_stays_and_is_told_of(stage):
    kept = store_apprise(stage, "slack://T1/B2/C3", "twilio://sid:token@from/to")
    with stage.database.transaction() as connection:
        assert replace_apprise(connection, Sealer(SECRET)) == 1
    assert stage.rows("SELECT id = :kept, kind FROM channels ORDER BY id", kept=kept) == [
        (True, "apprise"),
        (False, "slack"),
    ]


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("discord://1/abc", "discord"),
        ("https://discord.com/api/webhooks/1/abc", "discord"),
        ("slack://T/B/C", "slack"),
        ("https://hooks.slack.com/services/T/B/C", "slack"),
        ("workflows://prod-1.westeurope.logic.azure.com:443/workflow/signature", "teams"),
        ("tgram://123456:ABCDEFGHIJK/-12", "telegram"),
        ("ntfy://topic", "ntfy"),
        ("ntfys://tk_abc@ntfy.example.com/topic", "ntfy"),
        (f"pover://{'u' * 30}@{'t' * 30}", "pushover"),
        ("opsgenie://key?region=eu", "opsgenie"),
        ("mmosts://chat.example.com/token", "mattermost"),
        ("pagerduty://integration@api", "pagerduty"),
        ("twilio://sid:token@from/to", None),
        ("workflows://host/a/b?template=/etc/passwd", None),
        ("slack://T/B/C/#channel", None),
        ("https://example.com/x", None),
        ("not an address", None),
        ("http://[", None),
    ],
)
def test_which_apprise_address_becomes_what(url, kind):
    found = successors_of(url)
    assert (found[0].kind if found else None) == kind


def test_the_service_takes_and_shows_no_apprise_channel(project):
    with project.client("admin") as client:
        body = {"name": "x", "kind": "apprise", "config": {"urls": ["json://127.0.0.1/x"]}}
        assert client.post("/channels", json=body).status_code == 422
    project.rows(
        "INSERT INTO channels (project_id, name, kind) VALUES (:p, 'old', 'apprise') RETURNING id",
    )
    with project.client("read") as client:
        [old] = client.get("/channels").json()["channels"]
    assert "no longer supported" in old["problem"]


def test_apprise_is_not_installed_with_the_service():
    locked = (ROOT / "requirements.lock").read_text() + (ROOT / "requirements-dev.lock").read_text()
    assert "apprise" not in locked and "apprise" not in (ROOT / "pyproject.toml").read_text()
