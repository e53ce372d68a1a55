"""Sending: at least once, in order, never a trigger after its resolve, and nothing given up in silence."""

from datetime import timedelta

import pytest
from alerts.receivers import BadDay

from gapwatch.access.sealing import Sealer
from gapwatch.alerts import delivery_queue
from gapwatch.incidents import alert_actions
from gapwatch.store.alerting import outbox


def due_now(stage):
    stage.run("UPDATE deliveries SET due_at = now() WHERE state = 'due'")


def attempts(stage):
    return stage.rows("SELECT status, outcome FROM delivery_attempts ORDER BY id")


@pytest.mark.parametrize(
    "bad", [BadDay(500), BadDay(503), BadDay(429, {"Retry-After": "40"}), BadDay(reset=True), BadDay(408)]
)
def test_a_passing_fault_is_tried_again_later_with_the_same_id_and_key(stage, bad):
    stage.add_channel()
    stage.fall()
    stage.receiver.bad_days = [bad]
    stage.send()
    [(state, wait)] = stage.rows("SELECT state, extract(epoch FROM due_at - now()) FROM deliveries")
    assert state == "due"
    assert (35 if bad.headers else 1) < wait < (45 if bad.headers else 10)
    assert stage.send() == 0
    due_now(stage)
    stage.send()
    assert stage.deliveries() == [("trigger", "sent", "change")]
    first, second = stage.receiver.got
    assert first.headers["Gapwatch-Delivery"] == second.headers["Gapwatch-Delivery"]
    assert len(stage.receiver.taken) == 1
    assert [outcome for _, outcome in attempts(stage)] == ["retry", "sent"]


@pytest.mark.parametrize("status", [400, 401, 404, 410])
def test_a_refusal_is_not_tried_again_and_another_channel_is_told(stage, status):
    stage.add_channel("/hook")
    fallback = stage.add_channel("/second", min_severity="critical")
    stage.fall()
    stage.receiver.bad_days = [BadDay(status, body=b"invalid routing key")]
    stage.send()
    assert stage.deliveries() == [("trigger", "dead", "change"), ("trigger", "sent", "fallback")]
    assert stage.rows("SELECT channel_id FROM deliveries WHERE reason = 'fallback'") == [(fallback,)]
    assert stage.rows("SELECT status, answer FROM delivery_attempts ORDER BY id LIMIT 1") == [
        (status, "invalid routing key")
    ]
    assert [got.path for got in stage.receiver.got] == ["/hook", "/second"]


def test_a_channel_of_a_kind_that_this_release_does_not_know_is_refused_with_a_sentence(stage):
    stage.add_channel("/hook")
    stage.run("UPDATE channels SET kind = 'pigeon'")
    stage.fall()
    stage.send()
    assert stage.deliveries() == [("trigger", "dead", "change")]
    assert stage.rows("SELECT answer FROM delivery_attempts") == [
        ("This release does not know the kind of this channel; nothing is sent here.",)
    ]


def test_a_receiver_that_is_away_for_a_day_is_given_up_visibly_and_another_is_told(stage):
    stage.add_channel("/hook")
    stage.fall()
    stage.add_channel("/second")
    stage.receiver.bad_days = [BadDay(500)] * 3
    stage.send()
    due_now(stage)
    stage.send()
    stage.run("UPDATE deliveries SET give_up_at = now() + interval '2 seconds'")
    due_now(stage)
    stage.send()
    assert stage.deliveries() == [("trigger", "dead", "change"), ("trigger", "sent", "fallback")]
    with stage.database.transaction() as connection:
        assert outbox.outbox_backlog(connection).dead == 1


def test_a_trigger_that_was_never_delivered_is_not_sent_after_its_resolve(stage):
    stage.add_channel("/v2/enqueue", kind="pagerduty")
    stage.only("success-drift", "drift")
    stage.fall()
    stage.receiver.bad_days = [BadDay(503)]
    stage.send()
    stage.recover()
    stage.send()
    assert stage.deliveries() == [("trigger", "superseded", "change"), ("resolve", "sent", "change")]
    due_now(stage)
    stage.send()
    assert [got.json["event_action"] for got in stage.receiver.got] == ["trigger", "resolve"]
    assert all(one["opened"] == 0 for one in stage.receiver.incidents.values())


def test_a_trigger_that_the_other_side_took_without_answering_is_resolved_there(stage):
    stage.add_channel("/v2/enqueue", kind="pagerduty")
    stage.only("success-drift", "drift")
    stage.fall()
    stage.receiver.bad_days = [BadDay(reset=True, takes_it=True)]
    stage.send()
    stage.recover()
    stage.send()
    [incident] = stage.receiver.incidents.values()
    assert (incident["opened"], incident["state"]) == (1, "resolved")


def test_what_a_killed_sender_may_have_told_is_resolved_there(stage):
    stage.add_channel("/v2/enqueue", kind="pagerduty")
    stage.only("success-drift", "drift")
    stage.fall()
    with stage.database.transaction() as connection:
        assert delivery_queue.claim(connection) is not None
    # As when the sender is killed after it began: the answer, if there was one, is marked nowhere.
    stage.back_date("deliveries", "begun_at", timedelta(minutes=1))
    stage.recover()
    stage.receiver.bad_days = [BadDay(500)]
    stage.send()
    due_now(stage)
    stage.send()
    assert [got.json["event_action"] for got in stage.receiver.got] == ["resolve", "resolve"]
    assert stage.deliveries() == [("trigger", "superseded", "change"), ("resolve", "sent", "change")]


def test_what_was_over_before_anybody_began_to_send_it_is_not_sent_at_all(stage):
    stage.add_channel()
    stage.add_channel("/v2/enqueue", kind="pagerduty")
    stage.fall()
    stage.recover()
    stage.send()
    assert stage.receiver.got == []
    assert {state for _, state, _ in stage.deliveries()} == {"superseded"}


def test_a_channel_that_refused_the_trigger_gets_no_resolve_and_who_was_told_instead_does(stage):
    stage.add_channel("/first")
    stage.add_channel("/second", min_severity="critical")
    stage.only("success-drift", "drift")
    stage.fall()
    stage.receiver.bad_days = [BadDay(404)]
    stage.send()
    stage.recover()
    stage.send()
    told = [(got.path, got.json["action"]) for got in stage.receiver.taken]
    assert told == [("/second", "trigger"), ("/second", "resolve")]


def test_a_resolve_that_cannot_be_delivered_is_told_to_nobody_who_never_heard_of_it(stage):
    stage.add_channel("/first")
    stage.add_channel("/second", min_severity="critical")
    stage.only("success-drift", "drift")
    stage.fall()
    stage.send()
    stage.recover()
    stage.receiver.bad_days = [BadDay(404)]
    stage.send()
    assert {got.path for got in stage.receiver.got} == {"/first"}
    assert stage.deliveries() == [("trigger", "sent", "change"), ("resolve", "dead", "change")]


def test_while_a_trigger_is_on_its_way_its_resolve_waits(stage):
    stage.add_channel()
    stage.only("success-drift", "drift")
    stage.fall()
    stage.recover()
    with stage.database.engine.begin() as slow, stage.database.engine.begin() as other:
        slow.exec_driver_sql("SELECT 1 FROM deliveries WHERE action = 'trigger' FOR UPDATE")
        assert delivery_queue.claim(other) is None


def test_acknowledge_and_resolve_come_in_order_after_the_trigger(stage):
    stage.add_channel("/v2/enqueue", kind="pagerduty")
    stage.only("success-drift", "drift")
    stage.fall()
    [(alert_id,)] = stage.rows("SELECT id FROM alerts")
    with stage.database.transaction() as connection:
        alert_actions.acknowledge(connection, 1, alert_id, "anna", "mine")
    stage.receiver.bad_days = [BadDay(500)]
    stage.send()
    assert [got.json["event_action"] for got in stage.receiver.got] == ["trigger"]
    due_now(stage)
    stage.send()
    assert [got.json["event_action"] for got in stage.receiver.got] == ["trigger", "trigger", "acknowledge"]
    stage.recover()
    stage.send()
    [incident] = stage.receiver.incidents.values()
    assert (incident["opened"], incident["state"]) == (1, "resolved")


def test_acknowledging_twice_is_told_once(stage):
    stage.add_channel()
    stage.fall()
    stage.send()
    [(alert_id,), *_] = stage.rows("SELECT id FROM alerts ORDER BY id")
    for _ in range(2):
        with stage.database.transaction() as connection:
            alert_actions.acknowledge(connection, 1, alert_id, "anna", None)
    stage.send()
    assert [body["action"] for body in stage.receiver.webhooks()] == ["trigger", "acknowledge"]
    assert set(stage.alerts().values()) == {"acknowledged"}


def test_one_slow_channel_does_not_hold_up_another(stage):
    stage.add_channel("/hook")
    stage.add_channel("/other")
    stage.fall()
    stage.receiver.bad_days = [BadDay(200, wait_s=1.5)]
    stage.send()
    times = {got.path: got.at for got in stage.receiver.got}
    assert abs(times["/hook"] - times["/other"]) < 1


def test_what_cannot_be_decrypted_stays_due_and_is_sent_once_it_can(stage):
    """Not even after days: what is wrong is on our side."""
    stage.add_channel("/v2/enqueue", kind="pagerduty")
    stage.fall()
    for _ in range(5):
        assert stage.send(secret=b"restored elsewhere") == 1
        assert stage.send(secret=b"restored elsewhere") == 0
        stage.back_date("deliveries", "due_at", timedelta(hours=23))
        stage.back_date("deliveries", "give_up_at", timedelta(hours=23))
    assert stage.deliveries() == [("trigger", "due", "change")]
    assert stage.receiver.got == []
    [(outcome, answer)] = stage.rows("SELECT outcome, answer FROM delivery_attempts")
    assert outcome == "unready"
    assert "another server secret" in answer
    stage.receiver.bad_days = [BadDay(503)]
    stage.send()
    due_now(stage)
    stage.send()
    assert stage.deliveries() == [("trigger", "sent", "change")]


def test_while_one_channel_cannot_be_decrypted_another_is_told(stage):
    unreadable = stage.add_channel("/hook")
    stage.add_channel("/second", min_severity="critical")
    sealed = Sealer(b"restored elsewhere").seal({"secret": "s"})
    stage.run("UPDATE channels SET secret = :sealed WHERE id = :id", sealed=sealed, id=unreadable)
    stage.fall()
    stage.send()
    assert stage.deliveries() == [("trigger", "due", "change"), ("trigger", "sent", "fallback")]
    assert [got.path for got in stage.receiver.got] == ["/second"]
    due_now(stage)
    stage.send()
    assert len(stage.receiver.got) == 1


def test_a_test_of_a_channel_that_cannot_be_decrypted_is_answered_and_not_sent_days_later(stage):
    channel = stage.add_channel()
    with stage.database.transaction() as connection:
        outbox.enqueue(connection, 1, channel, "test", {"headline": "test", "severity": "info", "reasons": []})
    stage.send(secret=b"restored elsewhere")
    assert stage.deliveries() == [("test", "dead", "change")]
    assert attempts(stage) == [(None, "unready")]


def test_what_was_given_up_is_undelivered_until_its_channel_sends_again(stage):
    def undelivered():
        with stage.database.transaction() as connection:
            return outbox.undelivered(connection)

    channel = stage.add_channel()
    stage.fall()
    stage.receiver.bad_days = [BadDay(404)]
    stage.send()
    assert undelivered() == 1
    stage.run("UPDATE channels SET disabled_at = now()")
    assert undelivered() == 0
    stage.run("UPDATE channels SET disabled_at = NULL")
    assert undelivered() == 1
    with stage.database.transaction() as connection:
        outbox.enqueue(connection, 1, channel, "test", {"headline": "test", "severity": "info", "reasons": []})
    stage.send()
    assert undelivered() == 0


def test_what_was_given_up_two_days_ago_and_tests_are_no_matter(stage):
    channel = stage.add_channel()
    with stage.database.transaction() as connection:
        outbox.enqueue(connection, 1, channel, "test", {"headline": "test", "severity": "info", "reasons": []})
    stage.fall()
    stage.receiver.bad_days = [BadDay(404), BadDay(404)]
    stage.send()
    assert {state for _, state, _ in stage.deliveries()} == {"dead"}
    with stage.database.transaction() as connection:
        assert outbox.undelivered(connection) == 1
    stage.back_date("deliveries", "due_at", timedelta(days=2))
    with stage.database.transaction() as connection:
        assert outbox.undelivered(connection) == 0


def test_a_private_target_is_refused_without_the_setting(stage):
    stage.add_channel()
    stage.fall()
    stage.send(allow_private=False)
    assert stage.deliveries()[0][1] == "dead"
    assert stage.receiver.got == []


def test_a_channel_that_was_removed_gets_nothing(stage):
    channel = stage.add_channel()
    stage.fall()
    stage.run("UPDATE channels SET disabled_at = now() WHERE id = :id", id=channel)
    stage.send()
    assert stage.receiver.got == []


def test_a_channel_that_is_added_later_is_told_what_is_open(stage):
    stage.fall()
    assert stage.deliveries() == []
    stage.add_channel()
    stage.keep_time()
    stage.send()
    assert len(stage.receiver.webhooks("trigger")) == 1
    stage.add_channel("/second")
    stage.keep_time()
    assert stage.send() == 0


def test_a_rule_may_name_its_channels(stage):
    stage.add_channel("/hook")
    named = stage.add_channel("/named", min_severity="critical")
    stage.only("success-drift", "drift", channels=(named,))
    stage.fall()
    stage.send()
    assert [got.path for got in stage.receiver.got] == ["/named"]


def test_the_state_of_the_outbox_is_told(stage):
    stage.add_channel()
    stage.fall()
    stage.back_date("deliveries", "due_at", timedelta(minutes=5))
    with stage.database.transaction() as connection:
        assert outbox.outbox_backlog(connection).oldest_s > 290
        assert outbox.is_due(connection)
    stage.send()
    with stage.database.transaction() as connection:
        assert outbox.outbox_backlog(connection).oldest_s == 0
        assert not outbox.is_due(connection)
