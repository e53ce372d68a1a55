import json
import logging
import os
import time
from datetime import UTC, datetime, timedelta

import pytest
from client.network import Proxy, ScriptedServer
from gapwatch_client import Gapwatch
from gapwatch_client.robot_status import StatusBoard

from parts import wait_until

NOWHERE = "http://127.0.0.1:9"
REAL = {"task": "reach", "policy": "bin-pick@1.4.0", "deployment": "berlin-line-3"}


@pytest.fixture
def gw(project, tmp_path):
    with Gapwatch(project.url, project.keys["ingest"], spool=tmp_path / "spool", linger_s=0) as client:
        yield client


def robot(project, name):
    with project.client("read") as reader:
        return reader.get(f"/robots/{name}").raise_for_status().json()


def client_of(server, tmp_path, **options):
    return Gapwatch(server.url, "gw_key", tmp_path / "spool", linger_s=0, **options)


def files(tmp_path):
    return sorted((tmp_path / "spool").glob("*.status"))


def test_a_robot_says_that_it_is_parked_and_that_it_works(gw, project):
    gw.episode(**REAL, robot="ur5e-1").end()
    until = datetime.now(UTC) + timedelta(hours=2)
    gw.parked(robot="ur5e-1", until=until, reason="shift is over")
    assert gw.flush()
    said = robot(project, "ur5e-1")
    assert (said["status"], said["reason"]) == ("parked", "shift is over")
    assert datetime.fromisoformat(said["until"]) == until
    gw.working(robot="ur5e-1")
    assert gw.flush()
    assert robot(project, "ur5e-1")["status"] == "working"
    assert "complaints" not in gw.status()


def test_what_is_said_before_closing_is_told(project, tmp_path):
    with Gapwatch(project.url, project.keys["ingest"], tmp_path / "spool", robot="ur5e-1") as gw:
        gw.episode(**REAL).end()
        gw.parked()
    assert robot(project, "ur5e-1")["status"] == "parked"


def test_the_newest_word_of_each_robot_is_told_once_the_service_is_back(project, tmp_path):
    with Proxy(project.url) as proxy:
        proxy.is_down = True
        with Gapwatch(proxy.url, project.keys["ingest"], tmp_path / "spool", linger_s=0) as gw:
            for name in ("a", "b"):
                gw.episode(**REAL, robot=name).end()
            gw.parked(robot="a", reason="first")
            gw.working(robot="a")
            gw.parked(robot="a", reason="last")
            gw.parked(robot="b")
            gw.working(robot="b")
            assert not gw.flush(0.3)
            assert gw.status()["pending_statuses"] == 2
            assert len(files(tmp_path)) == 2
            proxy.is_down = False
            assert gw.flush(20)
    assert (robot(project, "a")["status"], robot(project, "a")["reason"]) == ("parked", "last")
    assert robot(project, "b")["status"] == "working"
    assert [line["change"] for line in robot(project, "a")["history"]] == ["parked"]


def test_what_was_said_by_a_process_that_is_gone_is_told_by_the_next_one_with_its_age(tmp_path):
    with Gapwatch(NOWHERE, "gw_key", tmp_path / "spool", linger_s=0) as gone:
        gone.parked(robot="ur5e-1")
    [file] = files(tmp_path)
    said = json.loads(file.read_text())
    file.write_text(json.dumps(said | {"said_at": time.time() - 3600}))
    with ScriptedServer() as server, client_of(server, tmp_path) as gw:
        assert gw.flush()
        [status] = server.statuses
    assert (status["robot"], status["status"]) == ("ur5e-1", "parked")
    assert 3600 <= status["age_s"] < 3700
    assert files(tmp_path) == []


def test_a_rest_that_is_over_by_the_time_it_is_told_is_told_as_work(tmp_path):
    with ScriptedServer() as server, client_of(server, tmp_path) as gw:
        gw.parked(robot="ur5e-1", until=datetime.now(UTC) - timedelta(seconds=1), reason="lunch")
        assert gw.flush()
        [status] = server.statuses
    assert {name: status[name] for name in ("robot", "status")} == {"robot": "ur5e-1", "status": "working"}
    assert "until" not in status


def test_a_robot_that_the_service_does_not_know_yet_waits_for_its_episodes(tmp_path):
    unknown = (404, {"type": "/problems/not-found", "detail": "no such robot"})
    with ScriptedServer(status_script=[unknown]) as server, client_of(server, tmp_path) as gw:
        gw._keeper.run_once()
        gw._sender._not_before = time.monotonic() + 0.3
        gw.episode(**REAL, robot="new").end()
        gw.parked(robot="new")
        assert gw.flush()
        assert len(server.requests) == 1
        assert [said["status"] for said in server.statuses] == ["parked", "parked"]


@pytest.mark.parametrize("status", [403, 404, 422])
def test_what_the_service_refuses_is_told_once_and_does_not_hold_up_episodes(tmp_path, status, caplog):
    problem = (status, {"type": "/problems/x", "detail": "no"})
    with ScriptedServer(status_script=[problem] * 9) as server, client_of(server, tmp_path) as gw:
        with caplog.at_level(logging.WARNING, "gapwatch_client"):
            gw.parked(robot="ur5e-1")
            assert gw.flush()
        gw.episode(**REAL).end()
        assert gw.flush()
        assert len(server.statuses) == 1
        assert gw.status()["complaints"] == {"status": 1}
    assert any("the service refused it" in text for text in caplog.messages)


@pytest.mark.parametrize("answer", [(503, {"type": "/problems/unavailable"}), (200, {"portal": "please sign in"})])
def test_what_is_no_answer_of_the_service_is_tried_again(tmp_path, answer):
    with ScriptedServer(status_script=[answer]) as server, client_of(server, tmp_path) as gw:
        gw.parked(robot="ur5e-1")
        assert gw.flush()
        assert len(server.statuses) == 2


class Odd:
    def __str__(self):
        raise RuntimeError("even its text")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"robot": Odd()},
        {"robot": "x", "reason": Odd()},
        {"robot": "x", "until": "tomorrow"},
        {"robot": "x", "until": 5},
    ],
)
def test_nothing_that_is_said_raises(tmp_path, arguments):
    with Gapwatch(NOWHERE, "gw_key", tmp_path / "spool", linger_s=0) as gw:
        gw.parked(**arguments)
        assert gw.status()["complaints"]["status"] == 1


def test_a_wrong_end_is_left_out_and_the_rest_is_told(tmp_path):
    with ScriptedServer() as server, client_of(server, tmp_path) as gw:
        gw.parked(robot="x", until="tomorrow", reason=" two \n lines ")
        assert gw.flush()
    [status] = server.statuses
    assert (status["status"], status["reason"], "until" in status) == ("parked", "two lines", False)


def test_an_end_may_be_a_time_of_this_machine_a_text_or_how_long(tmp_path):
    board = StatusBoard(tmp_path, lambda *_: None)
    now = time.time()
    naive = datetime.fromtimestamp(now + 60)  # noqa: DTZ006
    for until in (naive, timedelta(minutes=1), datetime.fromtimestamp(now + 60, UTC).isoformat()):
        assert board._moment(until) == pytest.approx(now + 60, abs=1)


def test_a_full_disk_keeps_the_word_in_memory(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with ScriptedServer() as server, client_of(server, tmp_path) as gw:
        monkeypatch.setattr(StatusBoard, "_write", full)
        gw.parked(robot="ur5e-1")
        assert gw.flush()
        assert [said["robot"] for said in server.statuses] == ["ur5e-1"]


def test_a_file_that_a_power_cut_left_empty_is_removed(tmp_path):
    (tmp_path / "spool").mkdir()
    for number, content in enumerate(["", "[]", "{", '{"status": "parked", "said_at": "x"}']):
        (tmp_path / "spool" / f"{number}.status").write_text(content)
    with ScriptedServer() as server, client_of(server, tmp_path) as gw:
        assert gw.flush()
        assert server.statuses == []


def test_a_loop_that_repeats_itself_writes_seldom(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(StatusBoard, "_write", lambda self, path, content: written.append(content))
    board = StatusBoard(tmp_path, lambda *_: None)
    for _ in range(1000):
        board.say("working", "ur5e-1", None, None, None)
    assert len(written) == 1
    board.say("parked", "ur5e-1", None, None, None)
    assert len(written) == 2


def test_saying_it_takes_no_network_and_little_time(tmp_path):
    with Gapwatch(NOWHERE, "gw_key", tmp_path / "spool", linger_s=0) as gw:
        took = []
        for number in range(50):
            start = time.perf_counter()
            gw.parked(robot=f"r{number}")
            took.append(time.perf_counter() - start)
        assert sorted(took)[25] < 0.02


def test_every_batch_tells_how_old_the_oldest_waiting_record_is(tmp_path):
    with ScriptedServer() as server, client_of(server, tmp_path) as gw:
        gw.episode(**REAL).end()
        assert gw.flush()
        [first] = server.requests
        assert 0 <= float(first.headers["Gapwatch-Spool-Age-S"]) < 30


def test_a_spool_of_hours_says_so_and_history_that_is_pushed_does_not(tmp_path):
    with Gapwatch(NOWHERE, "gw_key", tmp_path / "spool", linger_s=0) as gone:
        started = datetime.now(UTC) - timedelta(hours=3)
        gone.episode(**REAL, started_at=started).end()
    [segment] = (tmp_path / "spool").glob("*.seg")
    with ScriptedServer() as server, client_of(server, tmp_path) as gw:
        assert gw.flush()
        assert float(server.requests[0].headers["Gapwatch-Spool-Age-S"]) < 60
    # The same, written three hours ago.
    with Gapwatch(NOWHERE, "gw_key", tmp_path / "old", linger_s=0) as gone:
        gone.episode(**REAL, started_at=started).end()
    [segment] = (tmp_path / "old").glob("*.seg")
    created, rest = segment.name.split("-", 1)
    segment.rename(segment.with_name(f"{int(created) - 10_000 * 1_000_000:016d}-{rest}"))
    with ScriptedServer() as server, Gapwatch(server.url, "gw_key", tmp_path / "old", linger_s=0) as gw:
        assert gw.flush()
        assert 9_900 < float(server.requests[0].headers["Gapwatch-Spool-Age-S"]) < 10_900


def test_a_forked_child_says_its_own(tmp_path):
    with ScriptedServer() as server, client_of(server, tmp_path) as gw:
        child = os.fork()
        if child == 0:
            gw.parked(robot="child")
            os._exit(0)
        os.waitpid(child, 0)
        wait_until(lambda: [said["robot"] for said in server.statuses] == ["child"], what="the child's word")


def test_the_command_parks_a_robot_and_puts_it_back_to_work(project, tmp_path, capsys):
    from gapwatch_client.shell import main

    where = ["--url", project.url, "--key", project.keys["ingest"], "--spool", str(tmp_path / "spool")]
    assert main(["parked", "--robot", "nobody", *where]) == 65
    with project.client() as client:
        record = {"id": "e1", "domain": "real", "robot": "ur5e-1", "started_at": "2026-11-02T09:14:03Z"}
        record |= {"policy": {"name": "p", "version": "1"}, "task": "t", "deployment": "d", "outcome": "success"}
        client.post("/episodes", json=record).raise_for_status()
    assert main(["parked", "--robot", "ur5e-1", "--reason", "fair", *where]) == 0
    assert robot(project, "ur5e-1")["reason"] == "fair"
    assert main(["working", "--robot", "ur5e-1", *where]) == 0
    assert robot(project, "ur5e-1")["status"] == "working"
    assert "ur5e-1 is working" in capsys.readouterr().out
    assert main(["parked", *where]) == 2
    away = ["--url", NOWHERE, "--key", "gw_key", "--spool", str(tmp_path / "other"), "--timeout", "0.3"]
    assert main(["parked", "--robot", "ur5e-1", *away]) == 75
