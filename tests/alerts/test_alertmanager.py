"""The real Alertmanager from Debian: what it tells its receiver, what it has after a restart, and what it forgets."""

import json
import os
import shutil
import socket
import subprocess
import time
from datetime import timedelta

import httpx
import pytest
from alerts.receivers import BadDay, Receiver
from alerts.rhythms import fall_silent
from alerts.stage import SECRET

from gapwatch.access.sealing import Sealer
from gapwatch.alerts.resending import is_resend_due, resend_open
from gapwatch.channels.egress import Egress
from gapwatch.incidents import alert_actions
from parts import wait_until

PROGRAM = shutil.which("prometheus-alertmanager")
CONFIG = """
route: {{receiver: people, group_by: ['...'], group_wait: 10ms, group_interval: 100ms, repeat_interval: 1h}}
receivers: [{{name: people, webhook_configs: [{{url: '{url}/people', send_resolved: true}}]}}]
"""

real_program = pytest.mark.skipif(PROGRAM is None, reason="prometheus-alertmanager is not installed")
# A static program: the clock that is preloaded into everything else does not reach it.
own_clock = pytest.mark.skipif(
    "GAPWATCH_TESTS_DAYS_LATER" in os.environ, reason="prometheus-alertmanager goes by the machine's clock"
)


class RealAlertmanager:
    """The program on a port of this machine, telling what it has to a receiver."""

    def __init__(self, directory):
        self.people = Receiver()
        self.directory = directory
        (directory / "config.yml").write_text(CONFIG.format(url=self.people.url))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        self.starts = 0
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        """With an empty storage, as in a container."""
        self.starts += 1
        self.process = subprocess.Popen(
            [
                PROGRAM,
                f"--config.file={self.directory / 'config.yml'}",
                f"--storage.path={self.directory / f'storage-{self.starts}'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--cluster.listen-address=",
                "--log.level=error",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: httpx.get(f"{self.url}/-/ready").is_success, what="Alertmanager ready")

    def stop(self):
        self.process.terminate()
        self.process.wait(10)

    def has(self):
        """What it holds, by kind of reason."""
        found = httpx.get(f"{self.url}/api/v2/alerts").json()
        return sorted(alert["labels"].get("reason", alert["labels"]["alertname"]) for alert in found)

    def told(self):
        """What its receiver was told, oldest first: status, kind of reason and severity of each alert."""
        groups = [got.json for got in list(self.people.taken)]
        return [
            (alert["status"], alert["labels"].get("reason", ""), alert["labels"]["severity"])
            for group in groups
            for alert in group["alerts"]
        ]

    def close(self):
        self.stop()
        self.people.close()


@pytest.fixture
def alertmanager(tmp_path):
    alertmanager = RealAlertmanager(tmp_path)
    yield alertmanager
    alertmanager.close()


@pytest.fixture
def told(stage, alertmanager):
    """A deployment whose drop its receiver has been told of."""
    stage.only("success-drift", "drift")
    stage.put_rule("robot-silent", "no_data")
    stage.receiver = alertmanager
    stage.add_channel("", kind="alertmanager")
    stage.fall()
    stage.send()
    wait_until(alertmanager.told, what="its receiver told")
    assert alertmanager.told() == [("firing", "performance", "warning")]
    return stage


def resend(stage, *, is_due=True):
    stage.back_date("channels", "resend_tried_at", timedelta(minutes=4))
    with stage.database.transaction() as connection:
        assert is_resend_due(connection) is is_due
    return resend_open(stage.database, Sealer(SECRET), Egress(allow_private=True))


@real_program
@own_clock
def test_a_restarted_alertmanager_has_what_is_open_again_and_the_end_reaches_its_receiver(told, alertmanager):
    alertmanager.stop()
    alertmanager.start()
    assert alertmanager.has() == []
    resend(told)
    assert alertmanager.has() == ["performance"]
    wait_until(lambda: len(alertmanager.told()) == 2, what="its receiver told again")
    told.recover()
    told.send()
    wait_until(lambda: len(alertmanager.told()) == 3, what="the end")
    assert alertmanager.told()[1:] == [
        ("firing", "performance", "warning"),
        ("resolved", "performance", "warning"),
    ]
    assert alertmanager.has() == []


@real_program
@own_clock
def test_what_is_acknowledged_is_kept_up_and_what_joins_is_told_by_itself(told, alertmanager):
    [(alert_id,)] = told.rows("SELECT id FROM alerts")
    with told.database.transaction() as connection:
        alert_actions.acknowledge(connection, 1, alert_id, "anna", None)
    told.send()
    alertmanager.stop()
    alertmanager.start()
    resend(told)
    assert alertmanager.has() == ["performance"]
    fall_silent(told)
    told.send()
    wait_until(lambda: ("firing", "silence", "warning") in alertmanager.told(), what="the silence told")
    assert alertmanager.has() == ["performance", "silence"]


@real_program
@own_clock
def test_an_alert_that_becomes_critical_takes_the_place_of_the_warning_and_nothing_else_ever_shows(
    told, alertmanager
):
    told.run("UPDATE alerts SET severity = 'critical'")
    told.happen(0.1, 5)
    told.send()
    wait_until(lambda: len(alertmanager.told()) == 3, what="both told")
    assert sorted(alertmanager.told()[1:]) == [
        ("firing", "performance", "critical"),
        ("resolved", "performance", "warning"),
    ]
    resend(told)
    told.put_rule("success-drift", "drift", enabled=False)
    told.happen(0.1, 5)
    told.send()
    wait_until(lambda: len(alertmanager.told()) == 4, what="the end")
    assert alertmanager.told()[3] == ("resolved", "performance", "critical")
    resend(told)
    time.sleep(0.5)
    assert len(alertmanager.told()) == 4
    assert not [told for told in alertmanager.told() if told[2] == "info"]


@real_program
@own_clock
def test_the_test_of_a_channel_reaches_the_receiver_as_a_firing_alert(watched, alertmanager):
    body = {"name": "alertmanager", "kind": "alertmanager", "config": {"url": alertmanager.url}}
    with watched.client("admin") as client:
        channel = client.post("/channels", json=body).raise_for_status().json()
        for expected in (1, 2):
            answer = client.post(f"/channels/{channel['id']}/test").raise_for_status().json()
            assert (answer["outcome"], answer["status"]) == ("sent", 200)
            wait_until(lambda n=expected: len(alertmanager.told()) == n, what="the receiver told of the test")
    assert {status for status, *_ in alertmanager.told()} == {"firing"}
    assert alertmanager.has() == ["GapwatchTest", "GapwatchTest"]


@pytest.fixture
def open_there(stage):
    """A deployment whose drop a played Alertmanager has been told of."""
    stage.only("success-drift", "drift")
    stage.add_channel("/am", kind="alertmanager")
    stage.fall()
    stage.send()
    return stage


def test_a_round_is_one_request_and_no_row(open_there):
    before = open_there.rows("SELECT count(*) FROM deliveries")
    assert resend(open_there) == 1
    assert resend(open_there) == 1
    assert len(open_there.receiver.got) == 3
    assert open_there.rows("SELECT count(*) FROM deliveries") == before
    assert open_there.rows("SELECT count(*) FROM delivery_attempts") == before
    with open_there.database.transaction() as connection:
        assert not is_resend_due(connection)


def test_failures_are_counted_at_the_channel_and_forgotten_when_it_takes_them_again(open_there):
    open_there.receiver.bad_days = [BadDay(503, body=b"starting"), BadDay(reset=True)]
    for _ in range(2):
        resend(open_there)
    assert open_there.rows("SELECT resend_failures, resent_at FROM channels") == [(2, None)]
    resend(open_there)
    assert open_there.rows("SELECT resend_failures, resent_at IS NOT NULL FROM channels") == [(0, True)]


def test_what_ended_is_ended_there_even_if_a_round_overtook_the_resolve(open_there):
    [trigger] = [got.json for got in open_there.receiver.got]
    open_there.recover()
    open_there.send()
    assert open_there.receiver.alertmanager_firing() == []
    # The stale round arrives now.
    httpx.post(f"{open_there.receiver.url}/am/api/v2/alerts", json=trigger)
    assert len(open_there.receiver.alertmanager_firing()) == 1
    assert resend(open_there) == 1
    assert open_there.receiver.alertmanager_firing() == []
    open_there.back_date("incidents", "resolved_at", timedelta(minutes=16))
    assert resend(open_there, is_due=False) == 0


def silence(stage, kind, **match):
    stage.run(
        "INSERT INTO silences (project_id, kind, match, owner, reason, starts_at, ends_at)"
        " VALUES (1, :kind, CAST(:match AS jsonb), 'anna', 'known', now() - interval '1 minute', now() + interval '1 hour')",
        kind=kind,
        match=json.dumps(match),
    )


@pytest.mark.parametrize("kind", ["silence", "maintenance"])
def test_what_is_silenced_is_not_sent_again_and_is_when_the_silence_is_over(open_there, kind):
    silence(open_there, kind, deployment="berlin-line-3")
    told = len(open_there.receiver.got)
    resend(open_there)
    assert len(open_there.receiver.got) == told
    # Nothing failed: it ends there by itself.
    assert open_there.rows("SELECT resend_failures FROM channels") == [(0,)]
    open_there.run("UPDATE silences SET ends_at = now()")
    resend(open_there)
    [again] = [got.json for got in open_there.receiver.got][told:]
    assert [alert["labels"]["reason"] for alert in again] == ["performance"]


def test_a_silence_of_another_rule_or_deployment_stops_no_round_and_no_end(open_there):
    for match in ({"deployment": "oslo-1"}, {"rule": "robot-silent"}):
        silence(open_there, "silence", **match)
    told = len(open_there.receiver.got)
    resend(open_there)
    assert len(open_there.receiver.got) == told + 1
    silence(open_there, "maintenance", deployment="berlin-line-3")
    open_there.recover()
    open_there.send()
    assert open_there.receiver.alertmanager_firing() == []


def test_a_channel_that_is_switched_off_is_told_nothing_more(open_there):
    open_there.run("UPDATE channels SET disabled_at = now()")
    assert resend(open_there, is_due=False) == 0


def test_a_channel_whose_secrets_cannot_be_read_is_a_failure_and_not_an_end(open_there):
    open_there.back_date("channels", "resend_tried_at", timedelta(minutes=4))
    resend_open(open_there.database, Sealer(b"another"), Egress(allow_private=True))
    [(failures, answer)] = open_there.rows("SELECT resend_failures, resend_answer FROM channels")
    assert failures == 1
    assert "another server secret" in answer
