"""CSV, NDJSON and Parquet: by themselves, with a mapping file, and as the service itself exports them."""

import contextlib
import json
import os
import pty
import re
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from client.network import ScriptedServer
from gapwatch_client import import_command
from gapwatch_client.importers import run

from parts import episode, wait_until

MAPPING = {
    "constants": {"domain": "real", "policy": "bin-pick@1.4.0", "task": "pick-mug", "deployment": "berlin-line-3"},
    "columns": {
        "started_at": "begin",
        "outcome": "result",
        "duration_s": "time_ms",
        "conditions.lighting": "light",
        "conditions.clutter": "n_objects",
        "signals.peak_force_n": "f_max",
        "failure.labels": "why",
    },
    "values": {"outcome": {"IO": "success", "NIO": "failure"}, "conditions.lighting": {"0": "dim", "1": "bright"}},
    "scale": {"duration_s": 0.001},
    "zone": "Europe/Berlin",
    "ignore": ["line_number"],
}
TABLE = """begin;result;time_ms;light;n_objects;f_max;why;operator;line_number
2026-06-02 09:14:03;IO;11800;1;3;31.2;;ana;1
2026-06-02 09:15:03;NIO;9100;0;4;n/a;slip|drop;ben;2
2026-06-02 09:16:03;PAUSE;100;0;4;1;;ben;3
"""


@pytest.fixture
def mapping(tmp_path):
    (tmp_path / "mapping.json").write_text(json.dumps(MAPPING))
    return tmp_path / "mapping.json"


def test_a_table_of_another_system_is_mapped_and_what_is_not_is_told_by_field(bring, stored, tmp_path, mapping):
    (tmp_path / "cell.csv").write_text(TABLE)
    status, told = bring(tmp_path / "cell.csv", "--map", mapping)
    assert status == 65, "one row has an outcome nobody explained"
    first, second = stored()
    assert first["started_at"].startswith("2026-06-02T07:14:03")
    assert (first["outcome"], first["duration_s"]) == ("success", 11.8)
    assert first["conditions"] == {"lighting": "bright", "clutter": 3}
    assert first["signals"] == {"peak_force_n": 31.2}
    assert second["failure"]["labels"] == ["slip", "drop"]
    assert "signals" not in second or not second["signals"]
    assert "3 episodes found, 2 sent: 2 new, 0 already there" in told
    assert "f_max: is no number (1 values, such as 'n/a')" in told
    assert "operator: not mapped (3 values, such as 'ana')" in told
    assert (
        "result: is no outcome; name it under [values.outcome] of the mapping (1 values, such as 'PAUSE')" in told
    )
    assert "1 episodes not sent: no outcome" in told
    assert "line_number" not in told


def test_the_mapping_may_be_toml(bring, stored, tmp_path):
    (tmp_path / "mapping.toml").write_text(
        'zone = "UTC"\n[constants]\npolicy = "p@1"\ntask = "t"\ndeployment = "d"\n'
        '[columns]\nstarted_at = "begin"\noutcome = "result"\nconditions.light = "light"\n'
        '[values.outcome]\nIO = "success"\nNIO = "failure"\nPAUSE = "abandoned"\n'
    )
    (tmp_path / "cell.csv").write_text(TABLE)
    status, told = bring(tmp_path / "cell.csv", "--map", tmp_path / "mapping.toml")
    assert status == 0, told
    assert [e["outcome"] for e in stored()] == ["success", "failure", "abandoned"]


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet"])
def test_importing_twice_stores_nothing_twice_and_a_grown_file_only_its_new_rows(bring, project, tmp_path, kind):
    rows = [{"started_at": f"2026-11-02T09:{n % 3:02}:00Z", "outcome": "success"} for n in range(9)]
    path = tmp_path / f"episodes.{kind}"
    settings = [f"--set={setting}" for setting in ("policy=p@1", "task=t", "deployment=d", "domain=real")]

    def write(some):
        if kind == "csv":
            path.write_text("started_at,outcome\n" + "".join(f"{r['started_at']},{r['outcome']}\n" for r in some))
        elif kind == "ndjson":
            path.write_text("".join(json.dumps(r) + "\n" for r in some))
        else:
            pq.write_table(pa.Table.from_pylist(some), path)

    write(rows[:6])
    assert "6 new, 0 already there" in bring(path, *settings)[1], "equal rows are episodes of their own"
    assert "0 new, 6 already there" in bring(path, *settings)[1]
    write(rows)
    assert "3 new, 6 already there" in bring(path, *settings)[1]
    assert project.stored() == 9
    assert "9 new" in bring(path, *settings, "--salt", "second rig")[1]


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet"])
def test_what_the_service_exports_comes_back_as_the_same_episodes(bring, project, tmp_path, kind):
    records = [
        episode(
            conditions={"lighting": "dim", "clutter": 3, "human_present": False, "code": "=1+1"},
            signals={"force_n_peak": -1.5e-7},
            metrics={"energy_j": 210.5},
            failure={"phase": "contact", "labels": ["slip", "a,b"], "note": 'said "no",\nthen'},
            safety={"violations": 0, "interventions": 1},
            contract={"action": {"order": ["j1", "j2"]}, "control_hz": 50},
            embedding=[0.25, -1],
            links={"video": "https://example.com/a?b=1"},
            provenance={"seed": 4, "auto": True},
            outcome="failure",
        ),
        episode(domain="sim", deployment=None, simulator={"name": "mujoco", "version": "3.3.0"}, reward=0.5),
    ]
    with project.client() as sender:
        assert sender.post("/episodes/batch", json=records).json()["accepted"] == 2
    with project.client("read") as reader:
        (tmp_path / f"export.{kind}").write_bytes(reader.get(f"/episodes/export?format={kind}").content)
    status, told = bring(tmp_path / f"export.{kind}")
    assert (status, "0 new, 2 already there\n" in told) == (0, True), told


def test_an_import_that_was_cut_off_goes_on_where_it_stopped(project, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(run, "BATCH", 50)
    path = tmp_path / "many.ndjson"
    path.write_text("".join(json.dumps(episode(id=None, conditions={"n": n})) + "\n" for n in range(400)))
    stored = {"sent": 50, "accepted": 50, "duplicates": 0, "conflicts": 0, "rejected": 0, "errors": []}
    away = (401, {}, {"type": "/problems/unauthorized", "detail": "The key was revoked."})
    with ScriptedServer([(200, {}, stored)] * 3 + [away]) as server:
        argv = [str(path), "--url", server.url, "--key", "gw_test", "--spool", str(tmp_path / "progress")]
        assert import_command.main(argv) == 75
        assert "The key was revoked.\nCall it again to go on from here." in capsys.readouterr().out
        assert import_command.main(argv) == 0
        assert "400 episodes found, 400 sent: 150 by an earlier call, 250 new" in capsys.readouterr().out
        sent = [record["conditions"]["n"] for request in server.requests for record in request.records]
        assert sorted(set(sent)) == list(range(400))
        assert len(sent) == 400 + 50, "only the batch that got no answer was sent twice"
        assert import_command.main(argv) == 0
        assert "earlier call" not in capsys.readouterr().out, "a complete import starts anew"


def test_a_service_that_is_busy_is_waited_for(tmp_path, capsys):
    path = tmp_path / "one.ndjson"
    path.write_text(json.dumps(episode()))
    with ScriptedServer([(429, {"Retry-After": "0.2"}, {}), (503, {}, {})]) as server:
        assert (
            import_command.main([str(path), "--url", server.url, "--key", "k", "--spool", str(tmp_path / "p")])
            == 0
        )
        wait_until(lambda: len(server.requests) == 3)


def test_what_the_service_refuses_is_counted_by_reason(bring, project, tmp_path):
    path = tmp_path / "some.ndjson"
    records = [episode(started_at="1999-01-01T00:00:00Z") for _ in range(3)] + [episode()]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    status, told = bring(path)
    assert status == 65
    assert "refused 3 ×  /started_at: Times start in the year 2000." in told
    assert project.stored() == 1


def test_a_dry_run_tells_and_sends_nothing(bring, project, tmp_path, mapping):
    (tmp_path / "cell.csv").write_text(TABLE)
    _, told = bring(tmp_path / "cell.csv", "--map", mapping, "--dry-run")
    assert "3 episodes found, 2 would be sent\n" in told
    assert project.stored() == 0


@pytest.mark.parametrize(
    ("arguments", "content", "said"),
    [
        (["f.xyz"], "", "say --format"),
        (["missing.csv"], None, "no such file"),
        (["f.csv", "--set", "tsak=x"], "", "wanted FIELD=VALUE"),
        (["f.csv", "--map", "f.csv"], "{", "cannot be read"),
        (["f.csv", "--map", "f.csv"], '{"colums": {}}', "unknown colums"),
        (["f.csv", "--map", "f.csv"], '{"columns": {"tsak": "x"}}', "tsak is not a field"),
    ],
)
def test_mistakes_are_told_in_a_sentence(bring, tmp_path, monkeypatch, arguments, content, said):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / arguments[0]).write_text(content)
    status, told = bring(*arguments)
    assert status == 2
    assert said in told


def test_a_file_that_is_something_else_is_told_and_the_next_one_is_imported(bring, project, tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"not parquet at all")
    (tmp_path / "b.ndjson").write_text(json.dumps(episode()))
    status, told = bring(tmp_path / "a.parquet", tmp_path / "b.ndjson")
    assert status == 65
    assert "cannot be read as parquet" in told
    assert project.stored() == 1


def test_progress_is_shown_on_a_terminal(project, tmp_path):
    path = tmp_path / "many.ndjson"
    path.write_text("".join(json.dumps(episode(id=None, conditions={"n": n})) + "\n" for n in range(3000)))
    here, there = pty.openpty()
    argv = [
        sys.executable,
        "-c",
        "import sys; from gapwatch_client.shell import main; sys.exit(main())",
        "import",
        path,
    ]
    argv += ["--url", project.url, "--key", project.keys["ingest"], "--spool", tmp_path / "progress"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=there, text=True)
    os.close(there)
    told, _ = process.communicate(timeout=30)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal is an error
        while chunk := os.read(here, 65536):
            shown += chunk
    os.close(here)
    assert re.search(rb"many.ndjson: [\d,]+ of 3,000 episodes \(\d+ %\)", shown)
    assert "3000 episodes found, 3000 sent: 3000 new" in told
