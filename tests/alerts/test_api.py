"""The alerting routes: rules with defaults, channels without secrets, previews, tests, silences, events."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from alerts.receivers import BadDay
from alerts.test_end_to_end import add_webhook, batch, is_idle, post, sims
from sqlalchemy import text

from gapwatch.watching.kinds import DEFAULT_RULES
from parts import make_project, wait_until


def test_a_fresh_project_has_the_default_rules_and_its_own_replace_them(watched):
    with watched.client("admin") as client:
        rules = client.get("/rules").raise_for_status().json()["rules"]
        assert [rule["name"] for rule in rules] == [rule.name for rule in DEFAULT_RULES]
        assert all(rule["default"] and rule["enabled"] for rule in rules)
        body = {"name": "success-drift", "kind": "drift", "params": {"arl": 50_000}, "severity": "critical"}
        made = client.post("/rules", json=body)
        assert made.status_code == 201
        assert made.json()["params"]["arl"] == 50_000
        assert made.json()["params"]["series"] == "success"
        [own] = [rule for rule in client.get("/rules").json()["rules"] if rule["name"] == "success-drift"]
        assert (own["default"], own["severity"]) == (False, "critical")
        assert client.delete("/rules/success-drift").status_code == 204
        assert client.delete("/rules/success-drift").status_code == 404
        [own] = [rule for rule in client.get("/rules").json()["rules"] if rule["name"] == "success-drift"]
        assert own["default"]
    actions = [
        row[0] for row in watched.rows("SELECT action FROM audit_entries WHERE project_id = :p ORDER BY id")
    ]
    assert actions[-2:] == ["rule.put", "rule.delete"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "r", "kind": "drift", "params": {"series": "sucess"}}, "/body/params"),
        ({"name": "r", "kind": "drop", "params": {"above": 7}}, "/body/params/above"),
        ({"name": "r", "kind": "drop", "params": {"abov": 0.1}}, "/body/params/abov"),
        ({"name": "r", "kind": "category", "params": {"for_episodes": 5}}, "/body/params"),
        ({"name": "r", "kind": "no_data", "params": {"for_episodes": 5}}, "/body/params"),
        ({"name": "r", "kind": "magic"}, "/body/kind"),
        ({"name": "r", "kind": "drop", "channels": ["nobody"]}, "/body/channels/0"),
        ({"name": "success-drift", "kind": "drop"}, "/body/kind"),
        ({"name": "a/b", "kind": "drop"}, "/body/name"),
    ],
)
def test_a_bad_rule_is_refused_with_its_place(watched, body, pointer):
    with watched.client("admin") as client:
        answer = client.post("/rules", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"].startswith(pointer)


def test_secrets_of_a_channel_are_written_and_never_read_back(watched, alerting_service, receiver):
    secret = "gapwatch-test-secret-4711"
    config = {"url": f"{receiver.url}/hook", "secret": secret}
    with watched.client("admin") as client:
        made = client.post("/channels", json={"name": "hook", "kind": "webhook", "config": config})
        channel_id = made.raise_for_status().json()["id"]
        listed = client.get("/channels").text
        changed = client.put(
            f"/channels/{channel_id}",
            json={"name": "hook", "kind": "webhook", "config": {"url": f"{receiver.url}/new"}},
        )
        assert changed.status_code == 200
        assert client.post(f"/channels/{channel_id}/test").json()["outcome"] == "sent"
    assert secret not in made.text + listed + changed.text
    # The secret that was not given again is still there: the test is signed.
    assert receiver.got[0].path == "/new"
    assert receiver.got[0].headers["Gapwatch-Signature"].startswith("v1=")
    with watched.database.transaction() as connection:
        for table in ("channels", "deliveries", "delivery_attempts", "audit_entries"):
            dump = connection.execute(
                text(f"SELECT coalesce(string_agg(t::text, ''), '') FROM {table} t")
            ).scalar_one()
            assert secret not in dump
    assert secret not in alerting_service.log


def test_send_a_test_shows_the_exact_answer_of_the_other_side(watched, receiver):
    channel = add_webhook(watched, receiver)
    receiver.bad_days = [BadDay(404, body=b"no such hook: T024BE7LD")]
    with watched.client("admin") as client:
        answer = client.post(f"/channels/{channel['id']}/test").raise_for_status().json()
        assert (answer["outcome"], answer["status"]) == ("refused", 404)
        assert answer["answer"] == "no such hook: T024BE7LD"
        assert client.post(f"/channels/{channel['id']}/test").json()["answer"] == "thank you"
        log = client.get("/deliveries").json()["deliveries"]
    assert [(one["action"], one["state"], one["log"][0]["status"]) for one in log] == [
        ("test", "sent", 200),
        ("test", "dead", 404),
    ]


def test_a_removed_channel_is_gone_with_its_secrets_and_its_name_is_free(watched, receiver):
    channel = add_webhook(watched, receiver)
    with watched.client("admin") as client:
        again = {"name": "on call", "kind": "webhook", "config": {"url": f"{receiver.url}/x"}}
        assert client.post("/channels", json=again).status_code == 409
        assert client.delete(f"/channels/{channel['id']}").status_code == 204
        assert client.delete(f"/channels/{channel['id']}").status_code == 404
        assert client.post("/channels", json=again).status_code == 201
    assert watched.rows("SELECT secret FROM channels WHERE project_id = :p AND id = :id", id=channel["id"]) == [
        (None,)
    ]


def test_a_preview_says_when_a_rule_would_have_fired(watched):
    rng = np.random.default_rng(3)
    post(watched, batch(rng, 0.95, 200, 0) + batch(rng, 0.1, 40, 200) + batch(rng, 0.97, 120, 240))
    wait_until(lambda: is_idle(watched), 20, what="everything watched")
    with watched.client("read") as client:
        body = {"kind": "drift", "params": {"series": "success", "arl": 20_000}}
        found = client.post("/rules/preview", json=body).raise_for_status().json()
        assert found["sentence"] == "This rule would have fired once in the last 90 days."
        [deployment] = found["deployments"]
        [firing] = deployment["firings"]
        assert deployment["episodes"] == 360
        assert firing["fired_at"] < firing["cleared_at"]
        # Exactly what the watch found live.
        [live] = [a for a in client.get("/alerts").json()["alerts"] if a["rule"] == "success-drift"]
        live["evidence"].pop("now", None)
        assert live["evidence"] == firing["evidence"]
        calm = client.post(
            "/rules/preview", json={**body, "params": {"series": "success", "learn_episodes": 5000}}
        )
        assert calm.json()["fired"] == 0
        elsewhere = client.post("/rules/preview", json={**body, "match": {"site": ["oslo"]}}).json()
        assert elsewhere["deployments"] == []
    assert watched.value("SELECT count(*) FROM alerts WHERE project_id = :p AND rule = 'preview'") == 0


def test_a_preview_of_a_category_says_what_the_ledger_said_live(watched):
    rng = np.random.default_rng(8)
    post(watched, sims(rng, 0.95, 400))
    post(watched, batch(rng, 0.95, 100, 0))
    bad = batch(rng, 0.2, 150, 100)
    post(watched, [one | {"failure": {"labels": ["slip"]}} if one["outcome"] == "failure" else one for one in bad])
    wait_until(lambda: is_idle(watched), 20, what="everything watched")
    with watched.client("read") as client:
        [live] = [a for a in client.get("/alerts").json()["alerts"] if a["rule"] == "gap-category"]
        found = client.post("/rules/preview", json={"kind": "category"}).raise_for_status().json()
        [firing] = found["deployments"][0]["firings"]
        assert firing["series"] == live["series"] == "contact_dynamics"
        assert firing["evidence"]["contribution"] > 0.1
        silent = client.post("/rules/preview", json={"kind": "no_data"}).raise_for_status().json()
    assert silent["fired"] == 0
    assert [one["episodes"] for one in silent["deployments"]] == [250]


def test_silences_have_an_owner_a_reason_and_an_end(watched):
    with watched.client("admin") as client:
        soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        made = client.post("/silences", json={"reason": "gripper", "ends_at": soon, "match": {"site": ["berlin"]}})
        assert made.status_code == 201
        [silence] = client.get("/silences").json()["silences"]
        assert silence["owner"].startswith("key/gw_")
        assert client.delete(f"/silences/{silence['id']}").status_code == 204
        assert client.get("/silences").json()["silences"] == []
        assert len(client.get("/silences", params={"all": "true"}).json()["silences"]) == 1
        for bad in (
            {"reason": "for ever"},
            {"reason": "both", "minutes": 5, "ends_at": soon},
            {"reason": "past", "ends_at": "2020-01-01T00:00:00Z"},
            {"reason": "odd", "ends_at": "tomorrow"},
            {"minutes": 5},
        ):
            assert client.post("/silences", json=bad).status_code == 422


def test_a_release_pipeline_tells_of_events_with_an_ingest_key(watched):
    post(watched, batch(np.random.default_rng(4), 1.0, 1, 0))
    with watched.client("ingest") as client:
        body = {"kind": "release", "title": "1.5.0", "deployment": "berlin-line-3", "robots": ["ur5e-1"]}
        assert client.post("/events", json=body).status_code == 201
        assert client.get("/events").status_code == 403
        awaited = client.post("/events", json=body | {"deployment": "not-yet"})
        assert (awaited.status_code, awaited.json()["awaits_first_episode_of"]) == (201, "not-yet")
    with watched.client("read") as client:
        awaiting, event = client.get("/events").json()["events"]
        assert (awaiting["deployment"], event["deployment"]) == ("not-yet", "berlin-line-3")
        assert event["details"] == {"robots": ["ur5e-1"]}
        assert client.post("/events", json=body).status_code == 403
    told = "SELECT actor, subject, details FROM audit_entries WHERE project_id = :p AND action = 'event.recorded'"
    actor, subject, details = next(row for row in watched.rows(told) if row[1] == f"event/{event['id']}")
    assert actor.startswith("key/gw_") and subject == f"event/{event['id']}"
    assert details["changes"]["kind"]["to"] == "release" and details["changes"]["title"]["to"] == "1.5.0"


def test_people_act_on_alerts_by_post_only_and_everything_is_in_the_history(watched):
    rng = np.random.default_rng(5)
    post(watched, batch(rng, 0.95, 200, 0) + batch(rng, 0.05, 40, 200))
    wait_until(lambda: is_idle(watched), 20, what="everything watched")
    with watched.client("admin") as client:
        alert_id = client.get("/alerts").json()["alerts"][0]["id"]
        # Only a silence can be normal.
        assert client.post(f"/alerts/{alert_id}/normal", json={"normal": True}).status_code == 409
        assert client.post(f"/alerts/{alert_id}/normal", json={}).json()["errors"][0]["pointer"] == "/body/normal"
        assert client.post("/alerts/2147483647/normal", json={"normal": True}).status_code == 404
        for action in ("acknowledge", "resolve", "comment", "silence", "normal"):
            assert client.get(f"/alerts/{alert_id}/{action}").status_code == 405
        assert client.post(f"/alerts/{alert_id}/comment", json={"comment": "camera?"}).status_code == 200
        assert client.post(f"/alerts/{alert_id}/silence", json={"reason": "known"}).status_code == 200
        assert client.post(f"/alerts/{alert_id}/acknowledge").status_code == 200
        resolved = client.post(f"/alerts/{alert_id}/resolve", json={"comment": "new gripper"}).json()
        assert resolved["state"] == "resolved"
        history = [(one["input"], one["comment"]) for one in resolved["history"]]
    assert history == [
        ("breach", None),
        ("comment", "camera?"),
        ("comment", "silenced: known"),
        ("acknowledge", None),
        ("resolve", "new gripper"),
    ]
    assert all(one["actor"].startswith("key/gw_") for one in resolved["history"][1:])
    with watched.client("read") as client:
        assert client.post(f"/alerts/{alert_id}/acknowledge").status_code == 403


def test_another_project_s_alerts_and_channels_are_not_there(watched, alerting_service, receiver):
    channel = add_webhook(watched, receiver)
    other = make_project(alerting_service, watched.database)
    with other.client("admin") as client:
        absent = client.get("/alerts/2147483647").json()
        assert client.get("/channels").json() == {"channels": []}
        for method, path, body in (
            ("POST", f"/channels/{channel['id']}/test", None),
            ("DELETE", f"/channels/{channel['id']}", None),
            (
                "PUT",
                f"/channels/{channel['id']}",
                {"name": "x", "kind": "webhook", "config": {"url": "https://e.com"}},
            ),
        ):
            answer = client.request(method, path, json=body)
            assert answer.status_code == 404
        assert absent["status"] == 404


def test_readiness_and_metrics_tell_of_the_outbox(watched):
    with watched.client("read") as client:
        ready = client.get(f"{watched.url}/readyz").json()["checks"]
        assert ready["outbox"]["ok"]
        assert ready["watch"]["ok"]
        words = client.get(f"{watched.url}/metrics").text
    assert "gapwatch_outbox_oldest_seconds" in words
    assert json.dumps(ready)
