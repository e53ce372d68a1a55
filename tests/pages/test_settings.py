import re

import httpx
import pytest
from people import Browser, somebody

from parts import episode, wait_until

SIM = {"domain": "sim", "deployment": None, "simulator": {"name": "mujoco", "version": "3.3.0"}}


@pytest.fixture
def admin(service, project):
    with Browser(service, somebody(project, "admin")) as browser:
        yield browser


def test_a_key_is_shown_once_works_and_is_revoked(admin, project, service):
    made = admin.submit("/settings/keys", project.slug, name="line 3", scope="ingest", days="30")
    secret = re.search(r"gw_[\w-]{30,}", made.text)[0]
    headers = {"Authorization": f"Bearer {secret}"}
    assert httpx.post(f"{service.url}/api/v1/episodes", json=episode(), headers=headers).status_code == 201
    listed = admin.get("/settings/keys").text
    assert secret not in listed
    assert "line 3" in listed
    number = re.search(r'Revoke line 3\?[^>]+>.*?name="key" value="(\d+)"', listed, re.DOTALL)[1]
    admin.submit("/settings/keys/revoke", project.slug, key=number)
    wait_until(
        lambda: httpx.post(f"{service.url}/api/v1/episodes", json=episode(), headers=headers).status_code == 401,
        what="the key stopping",
    )
    actions = [
        row[0] for row in project.rows("SELECT action FROM audit_entries WHERE project_id = :p ORDER BY id")
    ]
    assert actions[-2:] == ["key.created", "key.revoked"]


@pytest.mark.parametrize("wrong", [{"scope": "root"}, {"name": ""}, {"days": "99999"}])
def test_a_key_that_cannot_be_is_refused(admin, project, wrong):
    fields = {"name": "x", "scope": "read", "days": "0"} | wrong
    assert admin.submit("/settings/keys", project.slug, **fields).status_code == 422


def test_a_word_of_the_project_gets_a_category_and_the_ledger_follows(admin, project):
    records = [episode(outcome="failure", failure={"labels": ["zorp"]}) for _ in range(6)]
    records += [episode() for _ in range(14)] + [episode(**SIM) for _ in range(40)]
    with project.client() as client:
        client.post("/episodes/batch", json=records).raise_for_status()

    def contributions() -> dict[str, float]:
        ledger = admin.get("/deployments/berlin-line-3?format=json").json()["page"]["ledger"]
        parts = [*ledger["categories"], ledger["unattributed"] or {"category": "", "contribution": 0}]
        return {part["category"]: round(part["contribution"], 6) for part in parts if part["contribution"]}

    wait_until(lambda: contributions() == {"unattributed": 0.3}, what="the ledger")
    page = admin.get("/settings/taxonomy").text
    assert "<strong>1 word</strong>" in page
    assert re.search(r"<code>zorp</code></th>\s*<td class=\"num\" data-label=\"failures\">\s*6\s*</td>", page)
    admin.submit("/settings/taxonomy", project.slug, kind="labels", word="zorp", to="visual")
    # A label speaks for its category, with a little room for what it may have missed.
    assert contributions()["visual"] == pytest.approx(0.3, rel=0.05)
    admin.submit("/settings/taxonomy", project.slug, kind="labels", word="zorp", to="default")
    assert contributions() == {"unattributed": 0.3}
    assert (
        admin.submit("/settings/taxonomy", project.slug, kind="labels", word="zorp", to="magic").status_code == 422
    )
    assert (
        admin.submit("/settings/taxonomy", project.slug, kind="moods", word="zorp", to="visual").status_code == 422
    )


def test_a_deployment_is_pinned_to_a_simulator_and_let_go(admin, project):
    other = SIM | {"simulator": {"name": "isaac", "version": "5.0"}}
    with project.client() as client:
        records = [episode(), *(episode(**SIM) for _ in range(3)), episode(**other)]
        client.post("/episodes/batch", json=records).raise_for_status()

    def baseline() -> str:
        return admin.get("/deployments/berlin-line-3?format=json").json()["page"]["drop"]["baseline"]["simulator"]

    wait_until(lambda: admin.get("/settings/baselines").text.count("<option") == 3, what="both simulators")
    assert baseline() == "mujoco"
    page = admin.get("/settings/baselines").text
    deployment = re.search(r'name="deployment" value="(\d+)"', page)[1]
    isaac = re.search(r'value="(\d+)">\s*isaac 5.0', page)[1]
    admin.submit("/settings/baselines", project.slug, deployment=deployment, simulator=isaac)
    assert baseline() == "isaac"
    assert "pinned by" in admin.get("/settings/baselines").text
    admin.submit("/settings/baselines", project.slug, deployment=deployment, simulator="0")
    assert baseline() == "mujoco"
    assert admin.submit("/settings/baselines", project.slug, deployment="999999", simulator="0").status_code == 404


def test_a_refused_record_is_explained(admin, project):
    with project.client() as client:
        assert client.post("/episodes", json=episode(colour="red")).status_code == 422
    page = admin.get("/settings/quarantine").text
    assert "The record has a field that does not exist, often a typing error." in page
    assert "<code>/colour</code>" in page
    assert admin.get("/settings/quarantine?code=clock-skew").text.count("<article") == 0


def test_a_rule_is_made_tried_switched_off_and_set_back(admin, project):
    fields = {"name": "my-drop", "kind": "drop", "severity": "critical", "params": '{"above": 0.2}'}
    tried = admin.submit("/settings/rules", project.slug, **fields, act="preview")
    assert "This rule would have fired 0 times in the last 90 days." in tried.text
    assert "my-drop" not in admin.get("/settings/rules").text
    for kind in ("category", "no_data"):
        tried = admin.submit("/settings/rules", project.slug, name="r", kind=kind, severity="info", act="preview")
        assert "This rule would have fired 0 times in the last 90 days." in tried.text
    saved = admin.submit("/settings/rules", project.slug, **fields, act="save", match_deployment="berlin*")
    assert "my-drop" in saved.text and "deployment berlin*" in saved.text
    for name, after in {"success-drift": "Set back", "my-drop": "Remove"}.items():
        off = admin.submit("/settings/rules", project.slug, name=name, act="switch")
        assert f'aria-label="{after} {name}"' in off.text
        assert f'aria-label="Switch {name} on"' in off.text
        back = admin.submit("/settings/rules", project.slug, name=name, act="remove").text
        assert (f'aria-label="Switch {name} off"' in back) == (name == "success-drift")


def test_a_rule_of_a_kind_that_this_release_does_not_know_breaks_no_page(admin, project):
    fields = {"name": "sooth", "kind": "drop", "severity": "critical", "act": "save"}
    admin.submit("/settings/rules", project.slug, **fields)
    project.rows("UPDATE rules SET kind = 'oracle' WHERE project_id = :p RETURNING 1")
    assert "sooth" not in admin.get("/settings/rules").text


@pytest.mark.parametrize(
    "wrong",
    [{"params": "{"}, {"params": '{"above": 7}'}, {"kind": "magic"}, {"name": "a/b"}, {"name": "success-drift"}],
)
def test_a_rule_that_cannot_be_says_what_is_wrong(admin, project, wrong):
    fields = {"name": "r", "kind": "drop", "severity": "info", "params": "", "act": "save"} | wrong
    answer = admin.submit("/settings/rules", project.slug, **fields)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text


def test_a_channel_keeps_its_secret_to_itself(admin, project):
    fields = {
        "kind": "webhook",
        "name": "hooks",
        "config_url": "https://example.com/x",
        "config_secret": "hush-hush",
    }
    page = admin.submit("/settings/channels", project.slug, **fields).text
    assert "https://example.com/x" in page
    assert "hush-hush" not in page
    assert "hush-hush" not in admin.get("/settings/channels?format=json").text
    twice = admin.submit("/settings/channels", project.slug, **fields)
    assert twice.status_code == 422 and "There is a channel with this name." in twice.text
    assert (
        admin.submit("/settings/channels", project.slug, **fields | {"config_url": "ftp://x"}).status_code == 422
    )
    number = re.search(r'name="channel" value="(\d+)"', page)[1]
    assert (
        "hooks" not in admin.submit("/settings/channels/remove", project.slug, channel=number).text.split("<h2")[1]
    )


def test_a_secret_may_consist_of_digits(admin, project):
    fields = {"kind": "pagerduty", "name": "on call", "config_routing_key": "0123456789"}
    assert admin.submit("/settings/channels", project.slug, **fields).status_code == 200


def test_a_channel_of_a_kind_that_this_release_does_not_know_is_listed(admin, project):
    fields = {"kind": "webhook", "name": "coop", "config_url": "https://example.com/x"}
    admin.submit("/settings/channels", project.slug, **fields)
    project.rows("UPDATE channels SET kind = 'pigeon' WHERE project_id = :p RETURNING 1")
    assert "<td>pigeon</td>" in admin.get("/settings/channels").text


def test_a_mail_channel_waits_for_its_addresses(admin, project):
    fields = {
        "kind": "email",
        "name": "on call",
        "config_to": "anna@example.com\nben@example.com",
        "config_sender": "gapwatch@example.com",
        "config_host": "127.0.0.1",
    }
    assert "gets alerts once it has confirmed" in admin.get("/settings/channels?kind=email").text
    page = admin.submit("/settings/channels", project.slug, **fields).text
    assert "waiting for confirmation: anna@example.com, ben@example.com" in page
    assert "Send the link again" in page and "Send a test" not in page
    [entry] = admin.get("/settings/channels?format=json").json()["page"]["channels"]
    assert (entry["waiting"], entry["is_told"]) == (["anna@example.com", "ben@example.com"], False)
    project.rows(
        "UPDATE mail_addresses SET confirmed_at = now() WHERE project_id = :p AND address LIKE 'anna%' RETURNING 1"
    )
    page = admin.get("/settings/channels").text
    assert "waiting for confirmation: ben@example.com" in page and "Send a test" in page
    tried = admin.submit("/settings/channels/test", project.slug, channel=str(entry["id"])).text
    assert "test: Test from Gapwatch to the channel on call" in tried


def test_a_silence_has_an_owner_a_reason_and_an_end(admin, project):
    fields = {"deployment": "berlin*", "reason": "gripper is being changed", "lasting": "4 hours"}
    page = admin.submit("/settings/silences", project.slug, **fields).text
    for text in ("deployment berlin*", "gripper is being changed", f"admin-{project.slug}@example.com"):
        assert text in page
    for wrong in ({"reason": ""}, {"deployment": ""}, {"lasting": "for ever"}):
        assert admin.submit("/settings/silences", project.slug, **fields | wrong).status_code == 422
    number = re.search(r'name="silence" value="(\d+)"', page)[1]
    assert "Nothing is silenced." in admin.submit("/settings/silences/end", project.slug, silence=number).text


def test_an_admin_makes_another_project_and_is_its_admin(admin, project):
    made = admin.submit("/projects", project.slug, slug=f"{project.slug}-two")
    assert re.search(f"{project.slug}-two-[a-z0-9]{{5}} · admin", made.text)
    # A name is never taken: that would tell of another's.
    assert admin.submit("/projects", project.slug, slug=f"{project.slug}-two").status_code == 200
    assert admin.submit("/projects", project.slug, slug="Not A Slug").status_code == 422
