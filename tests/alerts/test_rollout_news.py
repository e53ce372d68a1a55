"""Decisions about rollouts on their way to channels: `rollouts/news.py`, the outbox and a webhook together."""

from api.test_rollouts import decide
from rollouts.test_watching import planned

from parts import wait_until


def test_channels_are_told_of_decisions_unless_they_want_incidents_only(watched, receiver):
    planned(watched, 0)
    with watched.client("admin") as client:
        for name, routing in (
            ("all", {}),
            ("incidents", {"events": ["incident"]}),
            ("rome", {"match": {"site": "rome"}}),
        ):
            body = {
                "name": name,
                "kind": "webhook",
                "config": {"url": f"{receiver.url}/{name}"},
                "routing": routing,
            }
            client.post("/channels", json=body).raise_for_status()
    decide(watched, "stop", reason="a bolt is loose")
    [got] = wait_until(lambda: receiver.webhooks(path="/all"), 20, what="the webhook")
    assert got["action"] == "rollout"
    assert got["headline"] == "berlin-line-3: bin-pick 1.4.0 stopped"
    assert "a bolt is loose" in got["text"] and got["decision"]["state"] == "stop"
    assert not receiver.webhooks(path="/incidents") and not receiver.webhooks(path="/rome")
