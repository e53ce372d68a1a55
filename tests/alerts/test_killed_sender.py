"""kill -9 at each point between an alarm and its delivery: at least once, one open incident, no trigger after resolve.

The service is the one people run. Triggers in Postgres make a transaction wait at a gate that the test holds closed, and
the receiver can hold a request; once it waits there, the worker is exactly at that point and is killed.
"""

import os
import signal

import numpy as np
import psutil
import psycopg
import pytest
from alerts.test_end_to_end import batch, is_idle, post

from gapwatch.store.core.database import Database
from parts import make_project, wait_until

# Where a transaction waits: number, event and table, and whether only at COMMIT.
GATES = {
    "the alert is open, the outbox row is not written": (11, "BEFORE INSERT ON deliveries", False),
    "the watch is done, COMMIT is not": (12, "AFTER DELETE ON watch_due", True),
    "it was sent and answered, and is not marked": (13, "BEFORE UPDATE OF state ON deliveries", False),
    "it was sent and marked, COMMIT is not done": (14, "AFTER INSERT ON delivery_attempts", True),
}


@pytest.fixture(scope="module")
def own(alerting_service):
    """The service, with the gates built in for as long as these tests run."""
    with psycopg.connect(alerting_service.database_url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::bigint); RETURN coalesce(NEW, OLD); END $$"
        )
        for number, event, at_commit in GATES.values():
            kind = "CONSTRAINT TRIGGER" if at_commit else "TRIGGER"
            deferred = "DEFERRABLE INITIALLY DEFERRED" if at_commit else ""
            connection.execute(
                f"CREATE {kind} gate_{number} {event} {deferred}"
                f" FOR EACH ROW EXECUTE FUNCTION wait_at_gate('{number}')"
            )
    yield alerting_service
    with psycopg.connect(alerting_service.database_url, autocommit=True) as connection:
        connection.execute("DROP FUNCTION wait_at_gate() CASCADE")


@pytest.fixture
def project(own):
    database = Database(own.database_url)
    yield make_project(own, database)
    database.close()


@pytest.fixture
def fallen(project, receiver):
    """A project with PagerDuty as its channel, and the bad episodes that would alarm."""
    rng = np.random.default_rng(1)
    config = {"routing_key": "R" * 32, "url": f"{receiver.url}/v2/enqueue"}
    with project.client("admin") as client:
        client.post("/channels", json={"name": "pd", "kind": "pagerduty", "config": config}).raise_for_status()
    post(project, batch(rng, 0.95, 200, 0))
    wait_until(lambda: is_idle(project), 20, what="the good episodes watched")
    return project, batch(rng, 0.05, 40, 200), batch(rng, 1.0, 200, 240)


def kill_pool(service):
    [worker] = service.children("gapwatch worker")
    for child in psutil.Process(worker).children():
        child.kill()


def kill_worker(service):
    for pid in service.children("gapwatch worker"):
        os.killpg(pid, signal.SIGKILL)


class Gate:
    def __init__(self, service, number):
        self._number = number
        self._holder = psycopg.connect(service.database_url, autocommit=True)
        self._holder.execute("SELECT pg_advisory_lock(%s)", (number,))

    def wait_for_arrival(self):
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"
        wait_until(
            lambda: self._holder.execute(waiting, (self._number,)).fetchone() != (0,),
            20,
            pause_s=0.01,
            what="a transaction at the gate",
        )

    def open(self):
        self._holder.close()


def assert_told_once_and_over(project, receiver, good, triggers=1):
    """One incident was opened over there, whatever was killed; it is resolved when the trouble is over."""
    wait_until(
        lambda: receiver.incidents and next(iter(receiver.incidents.values()))["triggers"] >= triggers,
        30,
        what="the notification",
    )
    [incident] = receiver.incidents.values()
    assert (incident["opened"], incident["state"]) == (1, "triggered")
    assert project.value("SELECT count(*) FROM incidents WHERE project_id = :p AND state <> 'resolved'") == 1
    assert project.value("SELECT count(DISTINCT rule || series) = count(*) FROM alerts WHERE project_id = :p")
    post(project, good)
    wait_until(lambda: incident["state"] == "resolved", 30, what="the resolve")
    wait_until(lambda: is_idle(project), 20, what="nothing due")
    assert incident["opened"] == 1
    last = [got.json["event_action"] for got in receiver.taken][-1]
    assert last == "resolve"


@pytest.mark.parametrize("point", GATES)
def test_killed_at_a_point(own, fallen, receiver, point):
    project, bad, good = fallen
    gate = Gate(own, GATES[point][0])
    try:
        post(project, bad)
        gate.wait_for_arrival()
        kill_pool(own)
    finally:
        gate.open()
    sent_before = len(receiver.taken)
    # What was sent and not marked is sent again under the same key; a COMMIT that Postgres has is done.
    triggers = 1 + ("is not marked" in point)
    assert_told_once_and_over(project, receiver, good, triggers)
    [incident] = receiver.incidents.values()
    assert sent_before == ("sent" in point)
    assert incident["triggers"] == triggers


def test_killed_while_the_other_side_has_the_request_and_has_not_answered(own, fallen, receiver):
    project, bad, good = fallen
    receiver.gate.clear()
    try:
        post(project, bad)
        wait_until(lambda: receiver.got, 20, pause_s=0.01, what="a request over there")
        kill_worker(own)
    finally:
        receiver.gate.set()
    assert_told_once_and_over(project, receiver, good)


def test_killed_with_the_trigger_on_its_way_while_the_trouble_ends(own, fallen, receiver):
    """The trigger may have arrived; whatever is sent afterwards ends with the resolve."""
    project, bad, good = fallen
    receiver.gate.clear()
    try:
        post(project, bad)
        wait_until(lambda: receiver.got, 20, pause_s=0.01, what="a request over there")
        kill_worker(own)
        post(project, good)
    finally:
        receiver.gate.set()
    wait_until(lambda: is_idle(project), 30, what="nothing due")
    wait_until(
        lambda: all(one["state"] == "resolved" for one in receiver.incidents.values()), 30, what="nothing open"
    )
    assert all(one["opened"] <= 1 for one in receiver.incidents.values())
    actions = [got.json["event_action"] for got in receiver.taken]
    assert "resolve" not in actions or "trigger" not in actions[actions.index("resolve") :]
