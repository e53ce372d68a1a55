"""The spool directory itself: lines, segments, their owners, its bound, and what survives which end."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from gapwatch_client import Gapwatch
from gapwatch_client.backlog import Backlog, SendingLock
from gapwatch_client.spool import Spool
from gapwatch_client.spool_segments import list_segments, seal, unseal

from parts import wait_until

NOWHERE = "http://127.0.0.1:9"
STRACE = shutil.which("strace")

# Writes episodes as fast as it can and says each id after the call has returned.
WRITER = """
import sys
from gapwatch_client import Gapwatch
gw = Gapwatch(sys.argv[1], sys.argv[2], sys.argv[3], task="reach", policy="bin-pick@1.4.0", linger_s=0)
for number in range(int(sys.argv[4])):
    with gw.episode(**({"deployment": "line-3"} if number % 2 else {"simulator": "mujoco@3.3"})) as ep:
        ep.signal("number", number)
    print(ep.id, flush=True)
"""


def start_writer(url: str, key: str, directory: Path, count: int) -> subprocess.Popen:
    argv = [sys.executable, "-c", WRITER, url, key, str(directory), str(count)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def pending_ids(directory: Path) -> list[str]:
    backlog, ids = Backlog(directory), []
    while True:
        batch = backlog.gather()
        if not batch.reached:
            return ids
        ids += [json.loads(payload)["id"] for payload in batch.payloads]
        backlog.settle(batch)


def test_a_line_is_read_back_and_half_a_line_is_not():
    line = seal('{"note": "schräg"}'.encode())
    assert unseal(line[:-1]) == '{"note": "schräg"}'.encode()
    assert unseal(line[:-2]) is None
    assert unseal(line[1:-1]) is None
    assert unseal(b"") is None


def test_episodes_of_a_segment_that_lost_its_end_are_all_read_but_the_last(tmp_path):
    spool = Spool(tmp_path)
    for number in range(10):
        spool.append("real", b'{"id": "%d"}' % number)
    spool.close()
    [segment] = list_segments(tmp_path)
    os.truncate(segment.path, segment.size - 3)
    batch = Backlog(tmp_path).gather()
    assert [json.loads(payload)["id"] for payload in batch.payloads] == [str(n) for n in range(9)]
    assert batch.damaged == 1
    Backlog(tmp_path).settle(batch)
    assert not list_segments(tmp_path)


def test_a_damaged_line_in_the_middle_costs_itself_only(tmp_path):
    spool = Spool(tmp_path)
    for number in range(3):
        spool.append("real", b'{"id": "%d"}' % number)
    spool.close()
    [segment] = list_segments(tmp_path)
    segment.path.write_bytes(segment.path.read_bytes().replace(b'"1"', b'"7"'))
    batch = Backlog(tmp_path).gather()
    assert ([json.loads(p)["id"] for p in batch.payloads], batch.damaged) == (["0", "2"], 1)


def test_a_segment_that_is_still_written_is_sent_but_not_removed(tmp_path):
    spool, backlog = Spool(tmp_path), Backlog(tmp_path)
    spool.append("real", b'{"id": "1"}')
    backlog.settle(backlog.gather())
    assert backlog.pending_bytes() == 0
    assert len(list_segments(tmp_path)) == 1
    spool.append("real", b'{"id": "2"}')
    assert backlog.gather().payloads == [b'{"id": "2"}']
    spool.close()
    backlog.settle(backlog.gather())
    assert not list(tmp_path.iterdir())


def test_a_batch_is_prepared_behind_the_one_that_is_on_its_way_and_neither_is_dropped(tmp_path):
    spool, backlog = Spool(tmp_path, segment_bytes=400), Backlog(tmp_path)
    for number in range(30):
        spool.append("real", b'{"id": "%02d"}' % number)
    spool.append("sim", b'{"id": "sim"}')
    spool.close()
    first = backlog.gather(most=12)
    second = backlog.gather(most=12, after=first)
    assert backlog.drop_oldest(0) == {"sim": 1}
    spool.append("real", b'{"id": "30"}')
    backlog.settle(first)
    third = backlog.gather(most=12, after=second)
    backlog.settle(second)
    backlog.settle(third)
    told = [json.loads(p)["id"] for batch in (first, second, third) for p in batch.payloads]
    assert told == [f"{number:02d}" for number in range(31)]
    assert backlog.pending_bytes() == 0
    spool.close()


def test_real_episodes_go_first_and_sim_ones_are_dropped_first_the_oldest_before(tmp_path):
    spool = Spool(tmp_path, segment_bytes=1000)
    for number in range(40):
        spool.append("sim" if number < 20 else "real", b'{"id": "%02d", "x": "%s"}' % (number, b"x" * 200))
    spool.close()
    backlog = Backlog(tmp_path)
    assert backlog.pending() == {"sim": 20, "real": 20}
    assert json.loads(backlog.gather(most=1).payloads[0])["id"] == "20"
    backlog.release()
    dropped = backlog.drop_oldest(7000)
    assert dropped["sim"] > 0
    assert dropped["real"] == 0
    assert sum(segment.size for segment in list_segments(tmp_path)) <= 7000
    left = pending_ids_without_settling(backlog)
    assert left == [f"{n}" for n in range(20, 40)] + [f"{n:02d}" for n in range(dropped["sim"], 20)]
    assert backlog.drop_oldest(2000)["real"] > 0
    assert backlog.pending()["sim"] == 0


def pending_ids_without_settling(backlog: Backlog) -> list[str]:
    batch = backlog.gather()
    backlog.release()
    return [json.loads(payload)["id"] for payload in batch.payloads]


def test_what_is_dropped_is_counted_and_told(tmp_path, caplog):
    with Gapwatch(NOWHERE, "gw_test", tmp_path, max_spool_bytes=300_000, task="t", policy="p@1") as gw:
        for number in range(600):
            gw.episode(simulator="mujoco@3", provenance={"seed": number, "note": "x" * 700}).end()
            gw.episode(deployment="line-3").end()
        wait_until(lambda: gw.status()["dropped_sim"] > 0, what="something being dropped")
    pending = Backlog(tmp_path).pending()
    counted = json.loads((tmp_path / "state.json").read_text())
    assert counted["dropped_real"] == 0
    assert pending["real"] == 600
    assert counted["dropped_sim"] + pending["sim"] == 600
    assert any("dropped the oldest" in text for text in caplog.messages)


def test_kill_9_at_any_moment_loses_no_episode_whose_call_returned(project, tmp_path):
    chance = random.Random(7)
    said: list[str] = []
    for _ in range(6):
        writer = start_writer(NOWHERE, "gw_test", tmp_path, 100_000)
        said.append(writer.stdout.readline().strip())
        time.sleep(chance.uniform(0.0, 0.25))
        writer.send_signal(signal.SIGKILL)
        said += [line.strip() for line in writer.stdout if line.endswith("\n")]
        writer.wait(5)
        writer.stdout.close()
    assert len(said) > 500
    with Gapwatch(project.url, project.keys["ingest"], tmp_path) as gw:
        assert gw.flush(20)
        assert gw.status()["refused"] == 0
    stored = [row[0] for row in project.rows("SELECT id FROM episodes WHERE project_id = :p")]
    assert set(said) <= set(stored)
    # At most the one whose call had not returned yet, for each kill.
    assert len(stored) - len(said) <= 6
    assert len(stored) == len(set(stored))


def test_two_processes_share_a_directory_and_everything_arrives_once(project, tmp_path):
    writers = [start_writer(project.url, project.keys["ingest"], tmp_path, 1500) for _ in range(2)]
    # One of them is killed at its work; the other, or the next to come, sends what it left.
    said = [[writers[0].stdout.readline().strip() for _ in range(700)], []]
    writers[0].send_signal(signal.SIGKILL)
    said[0] += [line.strip() for line in writers[0].stdout]
    said[1] = [line.strip() for line in writers[1].stdout]
    for writer in writers:
        writer.wait(20)
        writer.stdout.close()
    assert len(said[1]) == 1500
    with Gapwatch(project.url, project.keys["ingest"], tmp_path) as gw:
        assert gw.flush(20)
    stored = [row[0] for row in project.rows("SELECT id FROM episodes WHERE project_id = :p")]
    assert {*said[0], *said[1]} <= set(stored)
    assert len(stored) - len(said[0]) - len(said[1]) <= 1
    assert not list_segments(tmp_path)


def test_threads_of_one_process_write_whole_lines(project, tmp_path):
    with Gapwatch(project.url, project.keys["ingest"], tmp_path, task="t", policy="p@1", linger_s=0) as gw:

        def work(number: int) -> None:
            for turn in range(100):
                side = {"deployment": f"line-{number}"} if turn % 2 else {"simulator": "mujoco@3"}
                gw.episode(**side, provenance={"note": "x" * number * 100}).end()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert gw.flush(20)
        assert gw.status()["damaged"] == 0
    assert project.stored() == 800


def test_only_one_process_sends_at_a_time_and_a_dead_one_gives_way(tmp_path):
    script = """
import sys, time
from pathlib import Path
from gapwatch_client.backlog import SendingLock
lock = SendingLock(Path(sys.argv[1]))
print(lock.try_acquire(), flush=True)
time.sleep(60)
"""
    other = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "True\n"
    lock = SendingLock(tmp_path)
    assert not lock.try_acquire()
    other.kill()
    other.wait(5)
    other.stdout.close()
    assert lock.try_acquire()
    lock.release()


def test_a_forked_child_writes_files_of_its_own_and_its_parent_sends_them(project, tmp_path):
    script = """
import os, sys
from gapwatch_client import Gapwatch
gw = Gapwatch(*sys.argv[1:4], task="reach", policy="bin-pick@1.4.0", deployment="line-3")
gw.episode(robot="parent").end()
child = os.fork()
for _ in range(50):
    gw.episode(robot="parent" if child else "child").end()
if not child:
    os._exit(0)
os.waitpid(child, 0)
sys.exit(0 if gw.flush() else 1)
"""
    argv = [sys.executable, "-W", "ignore", "-c", script, project.url, project.keys["ingest"], str(tmp_path)]
    assert subprocess.run(argv, timeout=30, check=False).returncode == 0
    assert project.stored() == 101


@pytest.mark.parametrize("ending", ["", "sys.exit(3)", "raise KeyboardInterrupt"])
def test_a_process_that_just_ends_sends_what_it_has_first(project, tmp_path, ending):
    script = """
import sys
from gapwatch_client import Gapwatch
gw = Gapwatch(*sys.argv[1:4], task="reach", policy="bin-pick@1.4.0", deployment="line-3")
with gw.episode() as ep:
    pass
"""
    argv = [sys.executable, "-c", script + ending, project.url, project.keys["ingest"], str(tmp_path)]
    subprocess.run(argv, timeout=30, check=False, stderr=subprocess.DEVNULL)
    assert project.stored() == 1
    assert not list_segments(tmp_path)


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
def test_what_is_written_is_synced_within_a_second(tmp_path):
    script = "import sys, time\nfrom gapwatch_client import Gapwatch\ngw = Gapwatch(*sys.argv[1:4])\n"
    script += "for _ in range(4):\n    gw.episode(task='t').end(); time.sleep(0.4)\ntime.sleep(1)"
    trace = tmp_path / "trace"
    argv = [STRACE, "-f", "-ttt", "-y", "-e", "trace=write,fsync", "-o", trace]
    argv += [sys.executable, "-c", script, NOWHERE, "gw_test", str(tmp_path / "spool")]
    subprocess.run(argv, timeout=30, check=True, stderr=subprocess.DEVNULL)
    calls = [line.split(None, 2)[1:] for line in trace.read_text().splitlines() if "-real.seg" in line]
    writes = [float(at) for at, call in calls if call.startswith("write")]
    syncs = [float(at) for at, call in calls if call.startswith("fsync")]
    assert len(writes) == 4
    for at in writes:
        assert any(at < sync < at + 1.0 for sync in syncs), (writes, syncs)
