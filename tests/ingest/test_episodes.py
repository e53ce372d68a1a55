"""Sending, reading, correcting, deleting and exporting episodes."""

import csv
import gzip
import io
import json
import os
import signal
import threading
import time

import psutil
import pyarrow.parquet as pq
import pytest
import zstandard

from gapwatch.api.examples import REAL, SIM
from gapwatch.store.core.database import Database
from parts import episode, make_project, reachable, start_service, wait_until

FULL = REAL | {"embedding": [0.12, -0.4]}


@pytest.fixture
def client(project):
    with project.client("admin") as client:
        yield client


def month_counts(project) -> tuple[int, int]:
    [row] = project.rows(
        "SELECT coalesce(sum(successes), 0)::int, coalesce(sum(failures), 0)::int FROM rollup_counts"
        " WHERE project_id = :p AND tier = 'month'"
    )
    return row


def ids(answer) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [found["id"] for found in answer.json()["episodes"]]


@pytest.mark.parametrize("record", [FULL, SIM, episode()])
def test_an_episode_is_read_back_as_it_was_sent(client, record):
    assert client.post("/episodes", json=record).json() == {"id": record["id"], "status": "accepted"}
    found = client.get(f"/episodes/{record['id']}").json()
    assert found.pop("received_at")
    assert found.pop("revision") == 1
    assert found == record | {"started_at": found["started_at"]}
    assert found["started_at"][:19] == record["started_at"][:19]


def test_the_same_episode_again_is_a_duplicate_however_it_is_written(client, project):
    assert client.post("/episodes", json=FULL).status_code == 201
    again = dict(reversed(FULL.items())) | {
        "started_at": "2026-11-02T10:14:03.120+01:00",
        "reward": 0.41,
        "task": "pick-mug",
    }
    answer = client.post(
        "/episodes", content=json.dumps(again, indent=2), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 200
    assert answer.json()["status"] == "duplicate"
    assert project.stored() == 1


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_a_batch_is_taken_in_every_form(client, project, kind, pack):
    records = [episode() for _ in range(30)]
    body = json.dumps(records) if kind == "application/json" else "\n".join(map(json.dumps, records)) + "\n"
    encoding = {bytes: "identity", gzip.compress: "gzip", zstandard.compress: "zstd"}[pack]
    headers = {"Content-Type": kind, "Content-Encoding": encoding}
    answer = client.post("/episodes/batch", content=pack(body.encode()), headers=headers)
    assert answer.json() == {
        "sent": 30,
        "accepted": 30,
        "duplicates": 0,
        "conflicts": 0,
        "rejected": 0,
        "errors": [],
    }
    assert project.stored() == 30


def test_every_record_of_a_mixed_batch_is_accounted_for(client, project):
    stored = episode()
    client.post("/episodes", json=stored)
    records = [
        episode(),
        stored,
        stored | {"outcome": "failure"},
        episode(outcome="great"),
        (twice := episode()),
        twice,
        twice | {"task": "other"},
        episode(reward=float("nan")),
    ]
    answer = client.post(
        "/episodes/batch", content=json.dumps(records), headers={"Content-Type": "application/json"}
    )
    outcome = answer.json()
    assert (outcome["sent"], outcome["accepted"], outcome["duplicates"]) == (8, 2, 2)
    assert (outcome["conflicts"], outcome["rejected"]) == (2, 2)
    assert [(fault["index"], fault["code"]) for fault in outcome["errors"]] == [
        (2, "episode-conflict"),
        (3, "unknown-value"),
        (6, "episode-conflict"),
        (7, "not-finite"),
    ]
    assert project.stored() == 3


def test_strict_handling_stores_all_or_nothing(client, project):
    prefer = {"Prefer": "handling=strict"}
    bad = client.post("/episodes/batch", json=[episode(), episode(outcome="great")], headers=prefer)
    assert bad.status_code == 422
    stored = episode()
    client.post("/episodes", json=stored)
    conflict = client.post("/episodes/batch", json=[episode(), stored | {"task": "x"}], headers=prefer)
    assert conflict.status_code == 422
    assert project.stored() == 1
    assert client.post("/episodes/batch", json=[episode(), stored], headers=prefer).json()["accepted"] == 1


def test_unknown_names_are_registered_once(client, project):
    for _ in range(2):
        client.post("/episodes/batch", json=[FULL | {"id": episode()["id"]} for _ in range(5)]).raise_for_status()
    for table in ("policies", "tasks", "robots", "sites", "deployments", "contracts", "condition_sets"):
        assert project.value(f"SELECT count(*) FROM {table} WHERE project_id = :p") == 1, table
    kinds = project.rows("SELECT kind FROM name_sets WHERE project_id = :p ORDER BY 1")
    assert kinds == [("condition",), ("metric",), ("signal",)]


def test_a_deployment_is_described_by_its_newest_episode(client, project):
    def described():
        return project.rows(
            "SELECT p.version, d.stage FROM deployments d JOIN policies p USING (project_id)"
            " WHERE p.id = d.policy_id AND project_id = :p"
        )

    def send(version, stage, at):
        policy = {"name": "bin-pick", "version": version}
        client.post("/episodes", json=episode(policy=policy, stage=stage, started_at=at)).raise_for_status()

    send("1.0", "shadow", "2026-11-01T00:00:00Z")
    send("1.1", "supervised", "2026-11-03T00:00:00Z")
    send("1.1", "supervised", "2026-11-09T00:00:00Z")
    assert described() == [("1.1", "supervised")]
    send("1.0", "shadow", "2026-11-05T00:00:00Z")
    assert described() == [("1.1", "supervised")]


def test_a_late_episode_seen_by_a_fresh_process_does_not_stop_newer_ones_from_describing(client, project, service):
    """Both web processes, and a restarted one, start without remembering what stands."""

    def send(version, day):
        policy = {"name": "bin-pick", "version": version}
        record = episode(policy=policy, started_at=f"2026-11-{day:02}T00:00:00Z")
        wait_until(lambda: client.post("/episodes", json=record).is_success, what="an accepted episode")

    send("A", 1)
    send("B", 5)
    [web] = service.children("gapwatch web")
    os.kill(web, signal.SIGKILL)
    send("A", 2)
    send("A", 6)
    described = project.value(
        "SELECT p.version FROM deployments d JOIN policies p USING (project_id)"
        " WHERE p.id = d.policy_id AND project_id = :p"
    )
    assert described == "A"


def test_a_large_batch_that_is_sent_again_is_known_as_a_whole(client, project):
    records = [episode(id=f"e{number}") for number in range(10_000)]
    first, again = (client.post("/episodes/batch", json=records).json() for _ in range(2))
    assert (first["accepted"], first["duplicates"]) == (10_000, 0)
    assert (again["accepted"], again["duplicates"]) == (0, 10_000)
    assert project.stored() == 10_000


def test_a_frozen_database_is_a_503_and_not_a_hanging_request(tmp_path):
    service = start_service(reachable(tmp_path) / "data")
    database = Database(service.database_url)
    try:
        own = make_project(service, database)
        with own.client() as sender:
            assert sender.post("/episodes", json=episode()).status_code == 201
            [postgres] = service.children("bin/postgres")
            frozen = [psutil.Process(postgres), *psutil.Process(postgres).children()]
            for process in frozen:
                process.suspend()
            try:
                answer = sender.post("/episodes", json=episode(), timeout=30)
            finally:
                for process in frozen:
                    process.resume()
            assert answer.status_code == 503
            assert answer.headers["retry-after"]
            record = episode()
            wait_until(lambda: sender.post("/episodes", json=record).is_success, 10, what="service as before")
    finally:
        database.close()
        service.stop()


@pytest.fixture
def mixed(client):
    """Ten episodes that differ in everything a filter can ask for."""
    sim = {"domain": "sim", "deployment": None}
    records = [
        episode(id="a", started_at="2026-11-01T00:00:00Z", robot="r1", site="berlin", stage="shadow"),
        episode(id="b", started_at="2026-11-02T00:00:00Z", robot="r2", site="lyon", stage="full"),
        episode(id="c", started_at="2026-11-03T00:00:00Z", task="pour", deployment="lyon-1"),
        episode(id="d", started_at="2026-11-04T00:00:00Z", policy={"name": "act", "version": "2"}),
        episode(
            id="e",
            started_at="2026-11-05T00:00:00Z",
            outcome="failure",
            failure={"phase": "contact", "labels": ["slip", "late"]},
        ),
        episode(id="f", started_at="2026-11-06T00:00:00Z", outcome="failure", failure={"category": "visual"}),
        episode(
            id="g", started_at="2026-11-07T00:00:00Z", conditions={"lighting": "dim", "clutter": 3, "human": True}
        ),
        episode(
            id="h", started_at="2026-11-08T00:00:00Z", conditions={"lighting": "bright"}, signals={"force": 31.5}
        ),
        episode(id="i", started_at="2026-11-09T00:00:00Z", **sim, simulator={"name": "mujoco", "version": "3.3"}),
        episode(id="j", started_at="2026-11-10T00:00:00Z", **sim, simulator={"name": "isaac", "version": "5"}),
    ]
    client.post("/episodes/batch", json=records).raise_for_status()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", "jihgfedcba"),
        ("domain=sim", "ji"),
        ("policy=act", "d"),
        ("policy=bin-pick&version=1.4.0&domain=real", "hgfecba"),
        ("task=pour", "c"),
        ("deployment=lyon-1", "c"),
        ("robot=r1", "a"),
        ("robot=r1&robot=r2", "ba"),
        ("site=lyon", "b"),
        ("stage=shadow&stage=full", "ba"),
        ("outcome=failure", "fe"),
        ("phase=contact", "e"),
        ("label=late", "e"),
        ("category=visual", "f"),
        ("condition=lighting:dim", "g"),
        ("condition=lighting:dim&condition=lighting:bright", "hg"),
        ("condition=lighting:dim&condition=clutter:3", "g"),
        ("condition=lighting:dim&condition=clutter:4", ""),
        ("condition=human:true", "g"),
        ("condition=lighting:&domain=sim", "ji"),
        ("signal=force:30..32", "h"),
        ("signal=force:..31", ""),
        ("signal=force:31.5..", "h"),
        ("simulator=mujoco", "i"),
        ("simulator=mujoco@3.3&simulator=isaac", "ji"),
        ("simulator=mujoco@9", ""),
        ("since=2026-11-08T00:00:00Z", "jih"),
        ("until=2026-11-02T00:00:00Z", "a"),
        ("since=2026-11-02T01:00:00%2B01:00&until=2026-11-03T00:00:00Z", "b"),
        ("since=1h", ""),
    ],
)
def test_episodes_are_found_by_every_filter(client, mixed, query, found):
    assert "".join(ids(client.get(f"/episodes?{query}"))) == found


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("outcom=failure", "/query/outcom"),
        ("domain=moon", "/query/domain"),
        ("domain=sim&domain=real", "/query/domain"),
        ("condition=dim", "/query/condition/0"),
        ("signal=force:high", "/query/signal/0"),
        ("since=yesterday", "/query/since"),
        ("category=bad-luck", "/query/category"),
        ("limit=100000", "/query/limit"),
        ("after=%00%ff", "/query/after"),
    ],
)
def test_a_bad_filter_is_named(client, query, pointer):
    answer = client.get(f"/episodes?{query}")
    assert answer.status_code == 422, answer.text
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


def test_pages_join_without_gap_or_overlap_even_when_times_are_equal(client):
    at = "2026-11-02T00:00:00Z"
    sent = [episode(id=f"e{number:03}", started_at=at) for number in range(55)]
    client.post("/episodes/batch", json=sent).raise_for_status()
    seen, mark = [], ""
    while mark is not None:
        page = client.get("/episodes", params={"limit": 10} | ({"after": mark} if mark else {})).json()
        seen += [found["id"] for found in page["episodes"]]
        mark = page["next"]
    assert seen == sorted((record["id"] for record in sent), reverse=True)


def test_a_correction_makes_a_new_revision_and_the_numbers_follow(client, project):
    record = FULL
    client.post("/episodes", json=record).raise_for_status()
    wait_until(lambda: month_counts(project) == (0, 1))
    fixed = record | {"outcome": "success", "failure": None, "task": "pick-cup"}
    answer = client.put(f"/episodes/{record['id']}", json=fixed)
    assert answer.json() == {"id": record["id"], "status": "corrected", "revision": 2}
    assert client.put(f"/episodes/{record['id']}", json=fixed).json()["status"] == "unchanged"
    found = client.get(f"/episodes/{record['id']}").json()
    assert (found["outcome"], found["task"], found["revision"]) == ("success", "pick-cup", 2)
    wait_until(lambda: month_counts(project) == (1, 0), what="the counts after the correction")
    [entry] = project.rows(
        "SELECT actor, action, subject FROM audit_entries WHERE project_id = :p AND action LIKE 'episode.%'"
    )
    assert entry == (f"key/{project.keys['admin'][:11]}", "episode.correction", f"episode/{record['id']}")
    # The first content under the same id is now another content.
    assert client.post("/episodes", json=record).status_code == 409


def test_a_correction_before_the_fold_is_counted_once(client, project):
    """The fold of the first revision may still be due when the second arrives; revisions keep them apart."""
    for _ in range(20):
        record = episode()
        client.post("/episodes", json=record).raise_for_status()
        client.put(f"/episodes/{record['id']}", json=record | {"outcome": "failure"}).raise_for_status()
    wait_until(
        lambda: (
            project.value("SELECT count(*) FROM work WHERE project_id = :p") == 0
            and month_counts(project) == (0, 20)
        ),
        what="twenty failures and no success",
    )


def test_a_deleted_episode_leaves_the_numbers_and_its_id_stays_taken(client, project):
    record = episode()
    client.post("/episodes", json=record).raise_for_status()
    assert client.delete(f"/episodes/{record['id']}").status_code == 204
    assert client.get(f"/episodes/{record['id']}").status_code == 404
    assert client.delete(f"/episodes/{record['id']}").status_code == 404
    again = client.post("/episodes", json=record)
    assert again.status_code == 409
    assert again.json()["errors"][0]["code"] == "episode-deleted"
    wait_until(lambda: project.value("SELECT count(*) FROM work WHERE project_id = :p") == 0)
    assert month_counts(project) == (0, 0)


def test_what_is_not_there_cannot_be_corrected_or_deleted(client):
    record = episode()
    assert client.put(f"/episodes/{record['id']}", json=record).status_code == 404
    assert client.delete(f"/episodes/{record['id']}").status_code == 404
    assert client.put("/episodes/other", json=record).status_code == 422
    assert client.get("/episodes/a%00b").status_code == 404


def test_one_project_never_reaches_into_another(client, service, service_database):
    record = episode()
    client.post("/episodes", json=record).raise_for_status()
    other = make_project(service, service_database)
    with other.client("admin") as stranger:
        absent = stranger.get("/episodes/absent")
        foreign = stranger.get(f"/episodes/{record['id']}")
        assert foreign.status_code == 404
        assert {**foreign.json(), "instance": ""} == {**absent.json(), "instance": ""}
        assert stranger.put(f"/episodes/{record['id']}", json=record).status_code == 404
        assert stranger.delete(f"/episodes/{record['id']}").status_code == 404
        assert ids(stranger.get("/episodes")) == []
        # The same id may live in both.
        assert stranger.post("/episodes", json=record).status_code == 201


NASTY = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "a,b", 'say "hi"', "line\nbreak", "bell\x07"]


def test_exports_hold_every_matching_episode(client, project):
    records = [
        episode(id=f"n{n}", site="berlin", conditions={"label": text, "clutter": n}, signals={"force": n + 0.5})
        for n, text in enumerate(NASTY)
    ]
    client.post("/episodes/batch", json=[*records, FULL]).raise_for_status()
    lines = client.get("/episodes/export?format=ndjson&site=berlin&condition=clutter:4").text.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["n4"]

    answer = client.get("/episodes/export?format=csv")
    assert answer.headers["content-disposition"].startswith('attachment; filename="episodes-')
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert len(rows) == len(NASTY) + 1
    cells = {row["id"]: row["conditions.label"] for row in rows}
    assert cells["n0"] == "'=cmd|' /C calc'!A0"
    assert [cells[f"n{n}"] for n in range(1, 6)] == ["'+1", "'-1", "'@SUM(A1)", "'\tx", "'\rx"]
    assert cells["n6"] == "a,b"
    assert cells["n7"] == 'say "hi"'
    assert cells["n9"] == "bell"
    assert all(
        not cell or cell[0] not in "=+-@\t\r" for row in rows for cell in row.values() if not _is_number(cell)
    )

    table = pq.read_table(io.BytesIO(client.get("/episodes/export?format=parquet").content))
    assert table.num_rows == len(NASTY) + 1
    found = {row["id"]: row for row in table.to_pylist()}
    assert found["n4"]["signals.force"] == 4.5
    assert found["n0"]["conditions.label"] == NASTY[0]
    assert found[FULL["id"]]["failure.labels"] == '["slip"]'
    assert found[FULL["id"]]["safety.interventions"] == 1


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_an_empty_export_is_a_valid_file(client):
    assert client.get("/episodes/export?format=csv").text.startswith("id,domain,")
    assert client.get("/episodes/export?format=ndjson").text == ""
    assert pq.read_table(io.BytesIO(client.get("/episodes/export?format=parquet").content)).num_rows == 0


def test_refused_records_are_listed_with_their_reasons(client):
    client.post("/episodes/batch", json=[episode(), episode(id="typo", outcom="success", outcome=None)])
    client.post("/episodes", json=episode(id="late", started_at="2031-01-01T00:00:00Z"))
    listed = client.get("/rejected").json()["rejected"]
    assert [entry["code"] for entry in listed] == ["clock-skew", "unknown-field"]
    assert json.loads(listed[1]["record"])["id"] == "typo"
    assert {fault["pointer"] for fault in listed[1]["errors"]} == {"/outcom", "/outcome"}
    assert len(client.get("/rejected?code=clock-skew").json()["rejected"]) == 1
    first = client.get("/rejected?limit=1").json()
    second = client.get(f"/rejected?limit=1&after={first['next']}").json()
    assert first["rejected"] + second["rejected"] == listed
    assert second["next"] is None


def test_equal_posts_at_once_are_stored_once(client, project):
    record, answers = episode(), []
    barrier = threading.Barrier(20)

    def post():
        with project.client() as own:
            barrier.wait()
            answers.append(own.post("/episodes", json=record).status_code)

    threads = [threading.Thread(target=post) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] * 19 + [201]


def test_an_episode_of_a_sender_with_a_wrong_clock_is_set_right(client):
    ahead = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3 * 3600))
    answer = client.post(
        "/episodes", json=episode(id="ahead", started_at=ahead), headers={"Gapwatch-Sent-At": ahead}
    )
    assert answer.status_code == 201
    assert answer.json()["clock_skew_s"] == pytest.approx(3 * 3600, abs=5)
    found = client.get("/episodes/ahead").json()
    assert (
        found["started_at"][:13] == time.strftime("%Y-%m-%dT%H", time.gmtime())[:13] or time.gmtime().tm_min == 0
    )
    assert found["clock_skew_s"] == pytest.approx(3 * 3600, abs=5)
