"""Each decision on a delivery as a table."""

from datetime import UTC, datetime, timedelta

import pytest

from gapwatch.watching import delivery_policy
from gapwatch.watching.delivery_policy import DeliveryVerdict, TriggerTry

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("incident", "action", "key"),
    [
        (7, "trigger", "gapwatch/fleet/7"),
        (7, "resolve", "gapwatch/fleet/7"),
        (None, "test", "gapwatch/fleet/test"),
        (None, "confirm", "gapwatch/fleet/confirm"),
    ],
)
def test_an_incident_has_one_key(incident, action, key):
    assert delivery_policy.dedup_key("fleet", incident, action) == key


@pytest.mark.parametrize(
    ("triggers", "knows"),
    [
        ([], False),
        ([("due", False)], False),
        ([("superseded", False)], False),
        ([("dead", False)], False),
        ([("dead", True)], True),
        ([("due", True)], True),
        ([("superseded", True)], True),
        ([("due", False), ("sent", True)], True),
    ],
)
def test_a_channel_may_know_of_what_was_sent_or_may_have_arrived(triggers, knows):
    assert delivery_policy.may_know([TriggerTry(*trigger) for trigger in triggers]) == knows


@pytest.mark.parametrize("may_know", [True, False])
def test_a_resolve_is_for_who_may_know(may_know):
    assert delivery_policy.is_needless_resolve(channel_may_know=may_know) != may_know


@pytest.mark.parametrize(
    ("reason", "may_know", "needless"),
    [("change", True, False), ("change", False, True), ("fallback", False, False)],
)
def test_an_acknowledgement_is_for_who_may_know(reason, may_know, needless):
    assert delivery_policy.is_needless_acknowledge(reason, channel_may_know=may_know) == needless


@pytest.mark.parametrize(
    ("reason", "state", "acknowledged", "needless"),
    [
        ("change", "firing", False, False),
        ("change", "acknowledged", True, False),
        ("change", "resolved", False, True),
        ("escalation", "firing", False, False),
        ("escalation", "acknowledged", True, True),
        ("repeat", "firing", False, False),
        ("repeat", "acknowledged", True, True),
        ("fallback", "resolved", True, False),
    ],
)
def test_a_trigger_is_needless_when_it_is_over_or_somebody_has_it(reason, state, acknowledged, needless):
    assert delivery_policy.is_needless_trigger(reason, state, is_acknowledged=acknowledged) == needless


@pytest.mark.parametrize(
    ("action", "outcome", "minutes_left", "verdict"),
    [
        ("trigger", "sent", 60, DeliveryVerdict("sent")),
        ("trigger", "refused", 60, DeliveryVerdict("dead")),
        ("trigger", "retry", 60, DeliveryVerdict("due", timedelta(seconds=10))),
        ("confirm", "retry", 60, DeliveryVerdict("due", timedelta(seconds=10))),
        ("trigger", "retry", 0.1, DeliveryVerdict("dead")),
        ("test", "retry", 60, DeliveryVerdict("dead")),
    ],
)
def test_what_becomes_of_a_delivery_after_its_second_attempt(action, outcome, minutes_left, verdict):
    found = delivery_policy.after_attempt(
        action,
        outcome,
        attempts=2,
        retry_after_s=None,
        jitter=1.0,
        now=NOW,
        give_up_at=NOW + minutes_left * MINUTE,
    )
    assert found == verdict


@pytest.mark.parametrize(
    ("attempts", "retry_after_s", "jitter", "seconds"),
    [
        *((1, None, 1.0, 5), (2, None, 1.0, 10), (3, None, 1.0, 20), (8, None, 1.0, 600), (90, None, 1.0, 600)),
        *((1, None, 0.75, 3.75), (8, None, 1.25, 750), (1, 300, 1.0, 300), (8, 30, 1.0, 600)),
    ],
)
def test_pauses_grow_with_jitter_and_respect_the_other_side(attempts, retry_after_s, jitter, seconds):
    assert delivery_policy.pause_s(attempts, retry_after_s, jitter) == seconds


@pytest.mark.parametrize(
    ("action", "incident", "state", "needed"),
    [
        ("trigger", 7, "dead", True),
        ("resolve", 7, "dead", False),
        ("acknowledge", 7, "dead", False),
        ("test", None, "dead", False),
        ("trigger", 7, "due", False),
        ("trigger", 7, "sent", False),
    ],
)
def test_another_channel_is_told_of_what_matters(action, incident, state, needed):
    assert delivery_policy.needs_another_channel(action, incident, DeliveryVerdict(state)) == needed


@pytest.mark.parametrize(
    ("fallback", "untold", "chosen"),
    [(None, [], None), (None, [5, 3], 3), (5, [3, 5], 5), (5, [3], 3), (5, [], None)],
)
def test_the_fallback_comes_first_and_then_the_oldest_channel(fallback, untold, chosen):
    assert delivery_policy.choose_other_channel(fallback, untold) == chosen


@pytest.mark.parametrize(
    ("state", "minutes_ago", "due"),
    [("sent", 61, True), ("sent", 60, False), ("sent", 5, False), ("due", 61, False), ("dead", 61, False)],
)
def test_a_repeat_is_due_so_long_after_the_last_one_was_sent(state, minutes_ago, due):
    assert delivery_policy.is_repeat_due(state, NOW - minutes_ago * MINUTE, 60, NOW) == due


def test_nothing_is_repeated_before_it_was_sent():
    assert not delivery_policy.is_repeat_due("due", None, 60, NOW)
