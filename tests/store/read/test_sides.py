"""Any window and any filter, read from rollups and edges, equals counting the stored episodes one by one."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from gapwatch.levels import level_of
from gapwatch.store.read import directory, sides
from gapwatch.store.read.selection import split
from gapwatch.store.read.sides import (
    CellFilter,
    Scope,
    Window,
)
from parts import episode, make_project, wait_until

START = datetime(2026, 8, 3, 5, 30, tzinfo=UTC)
EVERYTHING = Window(None, None)


def make_records(count: int) -> list[dict]:
    chance = random.Random(7)
    records = []
    for number in range(count):
        failed = chance.random() < 0.35
        record = episode(
            id=f"e{number:04}",
            started_at=(START + timedelta(minutes=chance.randrange(90 * 1440))).isoformat(),
            outcome=chance.choice(["aborted", "abandoned"])
            if number % 17 == 0
            else "failure"
            if failed
            else "success",
            robot=chance.choice(["r1", "r2", None]),
            site="berlin" if number % 3 else None,
            stage=chance.choice(["full", "supervised"]),
            session=f"s{number // 9}" if number % 4 else None,
            reward=chance.gauss(1, 2),
            duration_s=chance.gammavariate(2, 3),
            conditions={"lighting": chance.choice(["dim", "bright"])}
            | ({"mass": chance.uniform(0, 9)} if number % 5 else {}),
            signals={"peak_force_n": chance.gauss(20, 6)},
            contract={"control_hz": 50} if number % 2 else None,
            pair=f"scene-{number // 2}",
        )
        if failed:
            record["failure"] = {
                "phase": chance.choice(["grasp", "perceive"]),
                "labels": ["slip"] if number % 3 else [],
            }
        if number % 2:
            record |= {"domain": "sim", "simulator": {"name": "mujoco", "version": "3.3.0"}}
            del record["deployment"]
        records.append(record)
    return records


@pytest.fixture(scope="module")
def fleet(service):
    """A project with 600 episodes of both sides, folded, beside the records it was made of."""
    from gapwatch.store.core.database import Database

    database = Database(service.database_url)
    project = make_project(service, database)
    records = make_records(600)
    with project.client() as client:
        assert client.post("/episodes/batch", json=records).json()["accepted"] == 600
    wait_until(lambda: not project.value("SELECT count(*) FROM work WHERE project_id = :p"), 20)
    yield project, records
    database.close()


WINDOWS = [
    EVERYTHING,
    Window(START + timedelta(days=10, hours=3), None),
    Window(None, START + timedelta(days=60, minutes=7)),
    Window(START + timedelta(days=3, hours=1), START + timedelta(days=80, hours=2, minutes=30)),
    Window(START + timedelta(days=10, hours=1), START + timedelta(days=10, hours=9)),
    Window(START + timedelta(days=10, hours=23), START + timedelta(days=11, hours=2)),
    Window(datetime(2026, 9, 1, tzinfo=UTC), datetime(2026, 10, 1, tzinfo=UTC)),
    Window(datetime(2027, 9, 1, tzinfo=UTC), None),
]
FILTERS = [
    CellFilter(),
    CellFilter(robots=frozenset({"r1"})),
    CellFilter(sites=frozenset({"berlin"}), stages=frozenset({"full"})),
    CellFilter(conditions={"lighting": frozenset({"dim"})}),
    CellFilter(conditions={"mass": frozenset({"2 to 5", "1 to 2"}), "lighting": frozenset({"bright"})}),
    CellFilter(conditions={"mass": frozenset({""})}),
]


def in_window(record, window) -> bool:
    at = datetime.fromisoformat(record["started_at"])
    return (window.since is None or at >= window.since) and (window.until is None or at < window.until)


def as_cell(record) -> sides.Cell:
    levels = {name: level_of(value) for name, value in record.get("conditions", {}).items()}
    return sides.Cell(record.get("robot"), record.get("site"), record.get("stage"), levels)


def chosen(records, domain, window, wanted):
    return [r for r in records if r["domain"] == domain and in_window(r, window) and wanted.matches(as_cell(r))]


def scope_of(connection, project, domain) -> Scope:
    found = directory.find_deployment(connection, project.id, "berlin-line-3")
    return Scope(domain, (found.policy_id,), (found.task_id,), (found.id,) if domain == "real" else None)


@pytest.mark.parametrize("window", WINDOWS, ids=range(len(WINDOWS)))
@pytest.mark.parametrize("domain", ["real", "sim"])
def test_counts_of_any_window_and_filter(fleet, domain, window):
    project, records = fleet
    with project.database.transaction() as connection:
        scope = scope_of(connection, project, domain)
        cells = sides.cell_counts(connection, project.id, scope, window)
        failures = sides.failure_counts(connection, project.id, scope, window)
        for wanted in FILTERS:
            mine = chosen(records, domain, window, wanted)
            found = [each for each in cells if wanted.matches(each.cell)]
            for outcome, field in (
                ("success", "successes"),
                ("failure", "failures"),
                ("aborted", "aborted"),
                ("abandoned", "abandoned"),
            ):
                assert sum(getattr(each, field) for each in found) == sum(r["outcome"] == outcome for r in mine)
            failed = [r for r in mine if r["outcome"] == "failure"]
            slipped = [r for r in failed if "slip" in r["failure"]["labels"]]
            said = [each for each in failures if wanted.matches(each.cell)]
            assert sum(each.failures for each in said) == len(failed)
            assert sum(each.failures for each in said if "slip" in each.signature.labels) == len(slipped)
            judged = [r for r in mine if r["outcome"] in ("success", "failure") and "session" in r]
            sat = sides.session_counts(connection, project.id, scope, window, wanted)
            assert sum(each.successes for each in sat) == sum(r["outcome"] == "success" for r in judged)
            assert {each.session for each in sat} == {r["session"] for r in judged}
            rows = sides.failed_episodes(connection, project.id, scope, window, wanted, 1000)
            assert {*rows.ids} == {r["id"] for r in failed}
            assert rows.stands_for.sum() == pytest.approx(len(failed))
            by_id = {r["id"]: r for r in failed}
            times = [datetime.fromisoformat(by_id[row]["started_at"]) for row in rows.ids]
            assert times == sorted(times, reverse=True)
            for index, told in enumerate(by_id[row] for row in rows.ids):
                signature = rows.signatures[rows.signature_index[index]]
                assert {"phase": signature.phase, "labels": [*signature.labels]} == told["failure"]
                assert rows.signals_of(index) == told["signals"]
                for name in ("lighting", "mass", "nowhere"):
                    assert rows.levels(name)[index] == as_cell(told).levels.get(name, "missing")


@pytest.mark.parametrize("window", WINDOWS[:6], ids=range(6))
def test_values_and_contracts_of_any_window(fleet, window):
    project, records = fleet
    with project.database.transaction() as connection:
        scope = scope_of(connection, project, "real")
        metrics = sides.value_rollups(connection, project.id, scope, window, "metric")
        signals = sides.value_rollups(connection, project.id, scope, window, "signal")
        contracts = sides.contract_counts(connection, project.id, scope, window)
        for wanted in FILTERS[1:]:
            sampled = sides.sampled_values(connection, project.id, scope, window, "metric", wanted, 10_000)
            rewards = [r["reward"] for r in chosen(records, "real", window, wanted) if r["outcome"] == "success"]
            if rewards:
                assert sampled["reward"]["success"].moments.n == len(rewards)
                assert sampled["reward"]["success"].moments.mean == pytest.approx(
                    sum(rewards) / len(rewards), rel=1e-12
                )
            else:
                assert "success" not in sampled.get("reward", {})
    mine = chosen(records, "real", window, CellFilter())
    for outcome in ("success", "failure"):
        rewards = [r["reward"] for r in mine if r["outcome"] == outcome]
        forces = [r["signals"]["peak_force_n"] for r in mine if r["outcome"] == outcome]
        if rewards:
            assert metrics["reward"][outcome].moments.mean == pytest.approx(sum(rewards) / len(rewards), rel=1e-12)
            assert metrics["duration_s"][outcome].sketch.n == len(rewards)
            assert signals["peak_force_n"][outcome].moments.n == len(forces)
    assert sum(each.episodes for each in contracts) == len(mine)


def test_many_failures_are_sampled_over_the_whole_time(fleet):
    project, records = fleet
    with project.database.transaction() as connection:
        scope = scope_of(connection, project, "real")
        rows = sides.failed_episodes(connection, project.id, scope, EVERYTHING, CellFilter(), 40)
    failed = [r for r in records if r["domain"] == "real" and r["outcome"] == "failure"]
    assert 30 <= len(rows) <= 60 < len(failed)
    assert rows.stands_for.sum() == pytest.approx(len(failed))
    months = {datetime.fromisoformat(r["started_at"]).month for r in failed if r["id"] in {*rows.ids}}
    assert months == {datetime.fromisoformat(r["started_at"]).month for r in failed}


def test_buckets_add_up_to_the_window(fleet):
    project, records = fleet
    with project.database.transaction() as connection:
        scope = scope_of(connection, project, "real")
        for tier in ("hour", "day", "month"):
            found = sides.bucket_counts(connection, project.id, scope, EVERYTHING, tier)
            assert sum(each.successes for each in found) == sum(
                r["outcome"] == "success" for r in records if r["domain"] == "real"
            )
            assert [each.bucket_at for each in found] == sorted(each.bucket_at for each in found)
        dim = CellFilter(conditions={"lighting": frozenset({"dim"})})
        by_cell = sides.bucket_counts(connection, project.id, scope, EVERYTHING, "day", by_cell=True)
        assert sum(each.failures for each in by_cell if dim.matches(each.cell)) == sum(
            r["outcome"] == "failure" for r in chosen(records, "real", EVERYTHING, dim)
        )


def test_pairs_match_a_real_attempt_with_its_simulated_one(fleet):
    project, records = fleet
    with project.database.transaction() as connection:
        real, sim = scope_of(connection, project, "real"), scope_of(connection, project, "sim")
        rows = sides.paired_episodes(connection, project.id, real, sim, EVERYTHING, CellFilter())
    judged = [r for r in records if r["outcome"] in ("success", "failure")]
    by_pair = {d: {r["pair"]: r for r in judged if r["domain"] == d} for d in ("real", "sim")}
    both = by_pair["real"].keys() & by_pair["sim"].keys()
    assert {row.pair for row in rows} == both
    for row in rows:
        assert row.real_success == (by_pair["real"][row.pair]["outcome"] == "success")
        assert row.sim_reward == by_pair["sim"][row.pair]["reward"]


def test_a_window_falls_into_months_days_and_edges():
    parts = split(Window(datetime(2026, 1, 30, 5, tzinfo=UTC), datetime(2026, 4, 2, tzinfo=UTC)))
    assert parts.months == (datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC))
    assert parts.days == (
        (datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)),
        (datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 4, 2, tzinfo=UTC)),
    )
    assert parts.edges == ((datetime(2026, 1, 30, 5, tzinfo=UTC), datetime(2026, 1, 31, tzinfo=UTC)),)
    assert split(EVERYTHING).months == (None, None)
    assert split(Window(START, START)).edges == ()
