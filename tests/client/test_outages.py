"""Servers and networks that are away, slow, busy or broken: nothing is lost, nothing doubled, nobody waits."""

import random
import time

import pytest
from client.network import Proxy, ScriptedServer
from gapwatch_client import Gapwatch, sender
from gapwatch_client.proxies import connect
from gapwatch_client.transport import ANSWER_WITHIN_S, Transport

from parts import wait_until

REAL = {"task": "reach", "policy": "bin-pick@1.4.0", "deployment": "berlin-line-3"}
SIM = {"task": "reach", "policy": "bin-pick@1.4.0", "simulator": "mujoco@3.3.0"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Pauses of our own are short here; what a server asks for is not touched."""
    monkeypatch.setattr(sender, "LONGEST_WAIT_S", 0.2)
    monkeypatch.setattr(sender, "LOOK_EVERY_S", 0.05)


def assert_arrived_once(project, ids) -> None:
    found = [row[0] for row in project.rows("SELECT id FROM episodes WHERE project_id = :p")]
    assert len(found) == len(ids)
    assert set(found) == set(ids)


def test_ten_thousand_episodes_through_a_flaky_network_arrive_exactly_once(project, tmp_path):
    ids = []
    with Proxy(project.url, trouble=1.0) as proxy:
        with Gapwatch(proxy.url, project.keys["ingest"], tmp_path, linger_s=0, timeout_s=5) as gw:
            for number in range(10_000):
                with gw.episode(**(SIM if number % 3 else REAL), conditions={"object": "mug"}) as ep:
                    ep.signal("peak_force_n", number)
                ids.append(ep.id)
                if number % 100 == 0:
                    time.sleep(0.02)  # so that it is many requests, not ten
            assert gw.flush(40)
            status = gw.status()
        assert min(proxy.harmed.values()) > 0, "each kind of harm was met"
    assert_arrived_once(project, ids)
    assert status["duplicates"] > 0, "some were stored although no answer came through"
    assert status["refused"] == status["dropped_real"] == status["dropped_sim"] == 0


def test_a_server_that_is_down_for_the_whole_run_gets_everything_when_it_is_back(project, tmp_path):
    with Proxy(project.url) as proxy:
        proxy.is_down = True
        started = time.monotonic()
        with Gapwatch(proxy.url, project.keys["ingest"], tmp_path) as gw:
            ids = []
            for _ in range(300):
                with gw.episode(**REAL) as ep:
                    ids.append(ep.id)
            assert gw.status()["pending"]["real"] == 300
        assert time.monotonic() - started < 4, "ending the process does not wait for the server"
        assert project.stored() == 0
        proxy.is_down = False
        with Gapwatch(proxy.url, project.keys["ingest"], tmp_path) as later:
            assert later.flush()
            assert "no answer" not in str(later.status().get("last_error"))
    assert_arrived_once(project, ids)
    assert not list(tmp_path.glob("*.seg"))


def test_a_server_that_comes_back_while_the_robot_runs_is_found_by_itself(project, tmp_path):
    with Proxy(project.url) as proxy:
        proxy.is_down = True
        with Gapwatch(proxy.url, project.keys["ingest"], tmp_path, linger_s=0) as gw:
            gw.episode(**REAL).end()
            wait_until(lambda: "no answer" in str(gw.status().get("last_error")), what="the outage being noticed")
            proxy.is_down = False
            wait_until(lambda: project.stored() == 1, 5, what="the episode")


def test_a_network_that_swallows_everything_holds_up_neither_the_loop_nor_the_end(project, tmp_path):
    with Proxy(project.url) as proxy:
        proxy.swallows = True
        gw = Gapwatch(proxy.url, project.keys["ingest"], tmp_path, linger_s=0)
        began = time.monotonic()
        for _ in range(200):
            gw.episode(**REAL).end()
        assert time.monotonic() - began < ANSWER_WITHIN_S, "no turn of the loop waited for an answer"
        began = time.monotonic()
        assert not gw.close(timeout_s=0.5)
        assert time.monotonic() - began < 2
    with Gapwatch(project.url, project.keys["ingest"], tmp_path / "other") as other:
        assert other.flush()
    # The swallowed request still holds the directory's lock in this process; its episodes are all on disk.
    assert gw.status()["pending"]["real"] == 200


@pytest.mark.parametrize("status", [429, 503, 507])
def test_a_server_that_asks_for_a_pause_gets_it(status, tmp_path):
    asked_s = 1.2
    with ScriptedServer([(status, {"Retry-After": str(asked_s)}, {"type": "/problems/later"})]) as server:
        with Gapwatch(server.url, "gw_test", tmp_path, linger_s=0) as gw:
            gw.episode(**REAL).end()
            wait_until(lambda: server.requests, what="the first attempt")
            assert not gw.flush(0.5), "asking for a flush does not cut the server's pause short"
            assert gw.flush(5)
        first, second = server.requests
        assert second.at - first.at >= asked_s
        assert [r["id"] for r in first.records] == [r["id"] for r in second.records]


def test_a_date_is_a_pause_too(tmp_path):
    then = int(time.time()) + 3
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(then))
    with ScriptedServer([(503, {"Retry-After": date}, {})]) as server:
        with Gapwatch(server.url, "gw_test", tmp_path, linger_s=0) as gw:
            gw.episode(**REAL).end()
            assert gw.flush(10)
        since_then = time.monotonic() - (time.time() - then)
        assert server.requests[1].at >= since_then - 0.01


def test_pauses_of_our_own_grow_and_differ(tmp_path, monkeypatch):
    monkeypatch.setattr(sender, "LONGEST_WAIT_S", 60.0)
    waits = []
    for seed in range(2):
        random.seed(seed)
        with Gapwatch("http://127.0.0.1:9", "gw_test", tmp_path / str(seed)) as gw:
            for _ in range(8):
                before = time.monotonic()
                gw._sender._back_off(sender.Postponed("away"))
                waits.append(gw._sender._not_before - before)
    first, second = waits[:8], waits[8:]
    assert first != second
    for number, wait_s in enumerate(first, 1):
        longest = min(60.0, 0.5 * 2**number)
        assert longest / 2 <= wait_s <= longest + 0.1


@pytest.mark.parametrize(
    "answer",
    [
        (401, {}, {"type": "/problems/unauthorized", "title": "No valid key"}),
        (404, {}, {}),
        (302, {"Location": "https://example.com/"}, {}),
        (200, {}, {"hotel": "please sign in"}),
        (200, {}, {"sent": 7, "accepted": 7, "duplicates": 0, "conflicts": 0, "rejected": 0}),
        (422, {}, {"detail": "from a proxy that knows nothing of us"}),
        (500, {}, {}),
    ],
)
def test_answers_that_settle_nothing_leave_the_records_in_the_spool(answer, tmp_path):
    with ScriptedServer([answer]) as server, Gapwatch(server.url, "gw_test", tmp_path, linger_s=0) as gw:
        gw.episode(**REAL).end()
        wait_until(lambda: len(server.requests) > 1, what="another attempt")
        assert gw.flush()
        assert not list(gw._refused)
        assert gw.status()["accepted"] == 1


def test_a_batch_that_is_too_large_is_halved_and_only_the_culprit_is_put_aside(tmp_path):
    too_large = (413, {}, {"type": "/problems/body-too-large", "title": "Too large"})
    stored = {"sent": 1, "accepted": 1, "duplicates": 0, "conflicts": 0, "rejected": 0, "errors": []}
    with ScriptedServer([too_large, too_large, (200, {}, stored)]) as server:
        gw = Gapwatch(server.url, "gw_test", tmp_path, linger_s=0.5)
        culprit = gw.episode(**REAL)
        culprit.end()
        gw.episode(**REAL).end()
        assert gw.flush()
        assert [len(request.records) for request in server.requests] == [2, 1, 1]
        [entry] = gw._refused
        assert entry["record"]["id"] == culprit.id
        gw.close()


def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(tmp_path, monkeypatch):
    with ScriptedServer() as proxy, ScriptedServer() as here:
        address = proxy.url.replace("//", "//line%203:secret@")
        monkeypatch.setenv("http_proxy", address)
        monkeypatch.setenv("no_proxy", "")
        with Gapwatch("http://gapwatch.example.com/base", "gw_test", tmp_path / "far", linger_s=0) as gw:
            gw.episode(**REAL).end()
            assert gw.flush()
        [request] = proxy.requests
        assert request.target == "http://gapwatch.example.com/base/api/v1/episodes/batch"
        assert request.headers["Proxy-Authorization"] == "Basic bGluZSAzOnNlY3JldA=="
        with Gapwatch(here.url, "gw_test", tmp_path / "near", linger_s=0) as gw:
            gw.episode(**REAL).end()
            assert gw.flush()
        assert [request.target for request in here.requests] == ["/api/v1/episodes/batch"]


def test_https_goes_through_a_proxy_as_a_tunnel(monkeypatch):
    monkeypatch.setenv("https_proxy", "proxy.plant:3128")
    monkeypatch.setenv("no_proxy", "inside.plant")
    connection, before, headers = connect("https", "gapwatch.example.com", None, 1.0)
    assert (connection.host, connection.port, before, headers) == ("proxy.plant", 3128, "", {})
    assert connection._tunnel_host == "gapwatch.example.com"
    connection, _, _ = connect("https", "inside.plant", 8443, 1.0)
    assert (connection.host, connection.port, connection._tunnel_host) == ("inside.plant", 8443, None)


@pytest.mark.parametrize("trouble", ["an answer of 500", "an error of our own"])
def test_a_batch_without_an_answer_is_not_overtaken_by_the_one_behind_it(tmp_path, monkeypatch, trouble):
    """The next one is prepared by then; noting it as sent would note the earlier one too."""
    with Gapwatch("http://127.0.0.1:9", "gw_test", tmp_path, **REAL) as away:
        episodes = [away.episode() for _ in range(2500)]
        for ep in episodes:
            ep.end()
    post, first = Transport.post, [trouble == "an error of our own"]

    def failing_once(self, body, meanwhile=None):
        answer = post(self, body, meanwhile)
        if first.pop() if first else False:
            raise RuntimeError("something nobody thought of")
        return answer

    monkeypatch.setattr(Transport, "post", failing_once)
    with ScriptedServer([(500, {}, {})]) as server, Gapwatch(server.url, "gw_test", tmp_path, linger_s=0) as gw:
        assert gw.flush(20)
    arrived = [record["id"] for request in server.requests[1:] for record in request.records]
    assert sorted(arrived) == sorted(ep.id for ep in episodes)
