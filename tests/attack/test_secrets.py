"""Attack: get a write-only secret back, by changing the kind, the host or the user of its channel."""

import json

import pytest
from attack.configs import MARK, config_of, secrets_of, shown_of

from gapwatch.access.sealing import Sealer
from gapwatch.channels.kinds import CHANNEL_KINDS
from gapwatch.settings import Settings

BASE, ELSEWHERE = "https://example.com", "https://attacker.example.net"


@pytest.fixture
def admin(project):
    with project.client("admin") as client:
        yield client


def make(admin, kind, **changed):
    body = {"name": f"{kind}-channel", "kind": kind, "config": config_of(kind, BASE) | changed}
    made = admin.post("/channels", json=body)
    assert made.status_code == 201, made.text
    return made.json()["id"]


def put(admin, channel_id, kind, config, name="channel"):
    return admin.put(f"/channels/{channel_id}", json={"name": name, "kind": kind, "config": config})


def stored(project, service, channel_id):
    secret = project.value("SELECT secret FROM channels WHERE project_id = :p AND id = :id", id=channel_id)
    return Sealer(Settings(data_dir=service.data_dir).server_secret()).open(bytes(secret))


def last_change(project):
    [[details]] = project.rows(
        "SELECT details FROM audit_entries WHERE project_id = :p AND action = 'channel.change' ORDER BY id DESC LIMIT 1"
    )
    return details


@pytest.mark.parametrize("after", sorted(CHANNEL_KINDS))
@pytest.mark.parametrize("before", ["slack", "webhook"])
def test_no_secret_survives_a_change_of_kind(project, service, admin, before, after):
    if before == after:
        return
    channel_id = make(admin, before)
    answer = put(admin, channel_id, after, shown_of(after, ELSEWHERE))
    shown = answer.text + admin.get("/channels").text
    assert MARK not in shown and "example.com/services" not in shown
    if answer.is_success:
        assert stored(project, service, channel_id) == {}
        assert last_change(project)["secrets"]["dropped"] == sorted(secrets_of(before, BASE))
        assert last_change(project)["changes"]["kind"] == {"from": before, "to": after}
    else:
        assert answer.status_code == 422


@pytest.mark.parametrize(
    "changed",
    [
        {"host": "attacker.example.net"},
        {"username": "somebody"},
        {"port": 2525},
        {"security": "none"},
    ],
)
def test_the_password_of_a_mail_server_goes_to_no_other(project, service, admin, changed):
    channel_id = make(admin, "email")
    answer = put(admin, channel_id, "email", shown_of("email", "") | changed)
    assert answer.json()["dropped_secrets"] == ["password"]
    assert stored(project, service, channel_id) == {}
    details = last_change(project)
    [[name, to]] = changed.items()
    assert details["changes"][f"config.{name}"]["to"] == to
    assert details["secrets"] == {"set": [], "kept": [], "dropped": ["password"]}
    assert MARK not in json.dumps(details)


@pytest.mark.parametrize("kind", ["alertmanager", "webhook"])
def test_a_secret_goes_to_no_other_host(project, service, admin, kind):
    channel_id = make(admin, kind)
    assert put(admin, channel_id, kind, shown_of(kind, ELSEWHERE)).is_success
    assert stored(project, service, channel_id) == {}


@pytest.mark.parametrize("kind", ["opsgenie", "pagerduty", "telegram", "pushover", "ntfy"])
def test_a_needed_secret_has_to_be_given_again_for_another_host(project, service, admin, kind):
    channel_id = make(admin, kind)
    answer = put(admin, channel_id, kind, shown_of(kind, ELSEWHERE))
    assert answer.status_code == 422
    assert "must be given again" in answer.json()["errors"][0]["message"]
    assert stored(project, service, channel_id) == secrets_of(kind, BASE)


@pytest.mark.parametrize("kind", sorted(CHANNEL_KINDS))
def test_a_change_of_anything_else_keeps_the_secrets(project, service, admin, kind):
    """To whom mail goes, or to which chat, may change: the secret goes where it went."""
    channel_id = make(admin, kind)
    free = {
        "email": {"to": ["boris@example.com"]},
        "telegram": {"chat_id": "@others"},
        "webhook": {"url": f"{BASE}/x"},
    }
    answer = put(admin, channel_id, kind, shown_of(kind, BASE) | free.get(kind, {}), name="renamed")
    assert answer.is_success, answer.text
    assert stored(project, service, channel_id) == secrets_of(kind, BASE)
    assert last_change(project)["secrets"]["kept"] == sorted(secrets_of(kind, BASE))
