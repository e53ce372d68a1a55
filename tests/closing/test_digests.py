from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from gapwatch.channels.kinds.email import EmailConfig, compose
from gapwatch.channels.message import Message
from gapwatch.closing.digests import tell_digests
from gapwatch.watching.routing import DigestTime, Routing

MONDAY = datetime(2026, 11, 16, 7, 30, tzinfo=UTC)


def channel(project, name="team", kind="webhook", **routing):
    config = {"webhook": {"url": "https://example.com/x"}, "pagerduty": {"routing_key": "k" * 32}}[kind]
    with project.client("admin") as client:
        return client.post("/channels", json={"name": name, "kind": kind, "config": config, "routing": routing})


def digests(project):
    return project.rows(
        "SELECT channel_id, dedup_key, content FROM deliveries WHERE project_id = :p AND action = 'digest'"
    )


def tell(project, at):
    return project.database.run(lambda c: tell_digests(c, project.id, at, "https://gapwatch.example.com"))


def test_a_digest_is_sent_once_a_week_even_if_several_look_at_once(project):
    assert channel(project, digest={"weekday": "mon", "hour": 8, "time_zone": "Europe/Berlin"}).status_code == 201
    assert channel(project, "others").status_code == 201
    assert tell(project, MONDAY - timedelta(hours=1)) == 0, "half past seven in Berlin"
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda _: tell(project, MONDAY), range(4)))
    assert sorted(told) == [0, 0, 0, 1]
    assert tell(project, MONDAY + timedelta(hours=20)) == 0
    [(_, key, content)] = digests(project)
    assert key.endswith("/digest-2026-11-16")
    assert content["link"] == "https://gapwatch.example.com/week"
    assert "No deployments yet" in content["headline"]
    assert tell(project, MONDAY + timedelta(days=3)) == 0, "a digest that is days late is none"
    assert tell(project, MONDAY + timedelta(days=7)) == 1


@pytest.mark.parametrize(
    ("wanted", "now", "day"),
    [
        (DigestTime(), "2026-11-16T08:00:00+00:00", "2026-11-16"),
        (DigestTime(), "2026-11-16T07:59:00+00:00", None),
        (DigestTime(), "2026-11-17T07:59:00+00:00", "2026-11-16"),
        (DigestTime(), "2026-11-17T08:00:00+00:00", None),
        (DigestTime(weekday="sun", hour=23, time_zone="Asia/Tokyo"), "2026-11-15T14:00:00+00:00", "2026-11-15"),
        (DigestTime(weekday="fri", hour=0), "2026-11-13T00:00:00+00:00", "2026-11-13"),
        # The clocks go back on the night before this Monday.
        (DigestTime(time_zone="Europe/Berlin"), "2026-10-26T06:59:00+00:00", None),
        (DigestTime(time_zone="Europe/Berlin"), "2026-10-26T07:00:00+00:00", "2026-10-26"),
    ],
)
def test_a_digest_is_due_on_its_day_by_the_clock_on_the_wall(wanted, now, day):
    due = wanted.due_day(datetime.fromisoformat(now))
    assert (None if due is None else due.isoformat()) == day


@pytest.mark.parametrize(
    ("kind", "routing", "pointer"),
    [
        ("webhook", {"digest": {"weekday": "monday"}}, "/body/routing/digest/weekday"),
        ("webhook", {"digest": {"hour": 24}}, "/body/routing/digest/hour"),
        ("webhook", {"digest": {"time_zone": "Mars"}}, "/body/routing/digest/time_zone"),
        ("webhook", {"events": []}, "/body/routing"),
        ("pagerduty", {"digest": {}}, "/body/routing/digest"),
    ],
)
def test_a_bad_digest_is_refused_with_its_place(project, kind, routing, pointer):
    answer = channel(project, kind=kind, **routing)
    assert answer.status_code == 422
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


def test_a_channel_may_want_nothing_but_the_digest():
    routing = Routing.model_validate({"events": [], "digest": {}})
    assert routing.events == [] and routing.digest == DigestTime()
    assert Routing().digest is None


def test_the_digest_as_a_mail_has_every_line():
    content = {
        "headline": "demo, 9 Nov to 15 Nov: 1 fell.",
        "lines": ["Moved:", "  a fell"],
        "link": "https://x/week",
    }
    message = Message("demo-1", "demo", "digest", "gapwatch/demo/digest-2026-11-16", content, MONDAY, MONDAY)
    mail = compose(EmailConfig(to=["a@example.com"], sender="g@example.com", host="smtp.example.com"), message)
    assert mail["Subject"] == "demo, 9 Nov to 15 Nov: 1 fell."
    assert "Moved:\n  a fell" in mail.get_content() and "https://x/week" in mail.get_content()
