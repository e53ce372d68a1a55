"""Windows, scopes and filters as what is asked of the rollups, without a database: SQLite reads the clauses."""

import re
import sqlite3
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapwatch.levels import MISSING
from gapwatch.store.read.selection import (
    Cell,
    CellFilter,
    Parts,
    Scope,
    Window,
    bucket_clauses,
    split,
    time_clauses,
)

DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)
steady = settings(deadline=None, derandomize=True, database=None)


def t(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def window(since: str | None, until: str | None) -> Window:
    return Window(since and t(since), until and t(until))


def pair(since: str | None, until: str | None):
    return since and t(since), until and t(until)


@pytest.mark.parametrize(
    ("since", "until", "months", "days", "edges"),
    [
        (None, None, (None, None), [], []),
        ("2026-01-01", "2026-03-01", ("2026-01-01", "2026-03-01"), [], []),
        ("2026-01-01", "2026-01-02", None, [("2026-01-01", "2026-01-02")], []),
        ("2026-01-31", "2026-02-02", None, [("2026-01-31", "2026-02-02")], []),
        (
            "2026-01-31",
            "2026-03-02",
            ("2026-02-01", "2026-03-01"),
            [("2026-01-31", "2026-02-01"), ("2026-03-01", "2026-03-02")],
            [],
        ),
        ("2026-01-30T12:00", "2026-01-31T12:00", None, [], [("2026-01-30T12:00", "2026-01-31T12:00")]),
        (
            "2026-01-30T12:00",
            "2026-02-01T12:00",
            None,
            [("2026-01-31", "2026-02-01")],
            [("2026-01-30T12:00", "2026-01-31"), ("2026-02-01", "2026-02-01T12:00")],
        ),
        (
            "2024-01-31T23:59:59.999999",
            "2024-03-01T00:00:00.000001",
            ("2024-02-01", "2024-03-01"),
            [],
            [("2024-01-31T23:59:59.999999", "2024-02-01"), ("2024-03-01", "2024-03-01T00:00:00.000001")],
        ),
        ("2026-12-15", None, ("2027-01-01", None), [("2026-12-15", "2027-01-01")], []),
        ("2026-12-01", None, ("2026-12-01", None), [], []),
        (None, "2026-12-01T00:00:01", (None, "2026-12-01"), [], [("2026-12-01", "2026-12-01T00:00:01")]),
        (None, "2026-12-03", (None, "2026-12-01"), [("2026-12-01", "2026-12-03")], []),
        ("2026-12-01", "2026-12-01", None, [], []),
        ("2026-12-02", "2026-12-01", None, [], []),
        ("2026-12-02T10:00", "2026-12-02T09:00", None, [], []),
    ],
)
def test_a_window_is_whole_months_whole_days_and_what_is_left(since, until, months, days, edges):
    assert split(window(since, until)) == Parts(
        months and pair(*months), tuple(pair(*one) for one in days), tuple(pair(*one) for one in edges)
    )


START, END = t("2023-11-01"), t("2026-03-01")
instants = st.one_of(
    st.datetimes(START.replace(tzinfo=None), END.replace(tzinfo=None), timezones=st.just(UTC)),
    st.integers(0, (END - START).days).map(lambda days: START + days * DAY),
    st.builds(
        lambda year, month, ticks: datetime(year, month, 1, tzinfo=UTC) + ticks * TICK,
        st.integers(2024, 2025),
        st.integers(1, 12),
        st.integers(-1, 1),
    ),
)
ends = st.one_of(st.none(), instants)


def is_month(at: datetime) -> bool:
    return at == at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def is_day(at: datetime) -> bool:
    return at == at.replace(hour=0, minute=0, second=0, microsecond=0)


@steady
@given(ends, ends)
def test_the_parts_of_a_window_cover_it_once(since, until):
    parts = split(Window(since, until))
    months = [parts.months] if parts.months else []
    pieces = [*months, *parts.days, *parts.edges]
    early, late = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    spans = sorted((early if a is None else a, late if b is None else b) for a, b in pieces)
    if since is not None and until is not None and since >= until:
        assert spans == []
        return
    assert spans[0][0] == (since or early)
    assert spans[-1][1] == (until or late)
    assert all(a < b for a, b in spans)
    assert all(one[1] == other[0] for one, other in pairwise(spans))
    # Each of the kind it is said to be, and nothing small that could have been large.
    assert all(at is None or is_month(at) for span in months for at in span)
    assert all(is_day(at) for span in parts.days for at in span)
    assert len(parts.days) <= 2
    assert len(parts.edges) <= 2
    if months:
        assert all(b - a < 31 * DAY for a, b in parts.days)
    if months or parts.days:
        assert all(b - a < DAY for a, b in parts.edges)
    else:
        assert all(b - a < 2 * DAY for a, b in parts.edges)


@pytest.fixture(scope="module")
def rollups():
    """An episode every seven hours of two years, and how many of them each day and month has."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE episodes (started_at TEXT)")
    connection.execute("CREATE TABLE rollups (tier TEXT, bucket_at TEXT, n INTEGER)")
    moments = [START + number * timedelta(hours=7) for number in range((END - START) // timedelta(hours=7))]
    connection.executemany("INSERT INTO episodes VALUES (?)", [(f"{at:%F %T.%f}",) for at in moments])
    for tier, size in (("day", 10), ("month", 7)):
        rest = "" if tier == "day" else "-01"
        connection.execute(
            f"INSERT INTO rollups SELECT '{tier}', substr(started_at, 1, {size}) || '{rest} 00:00:00.000000', count(*)"
            " FROM episodes GROUP BY 2"
        )
    yield connection
    connection.close()


def total(connection: sqlite3.Connection, statement: str, parameters: dict[str, datetime]) -> int:
    written = re.sub(r"%\((\w+)\)s", r":\1", statement)
    given = {name: f"{at:%F %T.%f}" for name, at in parameters.items()}
    return connection.execute(written, given).fetchone()[0] or 0


@steady
@given(since=ends, until=ends)
def test_buckets_and_edges_together_hold_every_episode_of_the_window_once(rollups, since, until):
    asked = Window(since, until)
    parts = split(asked)
    clause, parameters = bucket_clauses(parts)
    found = total(rollups, f"SELECT sum(n) FROM rollups WHERE {clause}", parameters)
    for edge in parts.edges:
        clause, parameters = time_clauses(Window(*edge), "started_at")
        found += total(rollups, f"SELECT count(*) FROM episodes WHERE true{clause}", parameters)
    clause, parameters = time_clauses(asked, "started_at")
    assert found == total(rollups, f"SELECT count(*) FROM episodes WHERE true{clause}", parameters)


def test_a_window_without_whole_days_asks_for_no_bucket():
    assert bucket_clauses(split(window("2026-01-01T01:00", "2026-01-01T02:00"))) == ("false", {})


@pytest.mark.parametrize(
    ("since", "until", "clause", "names"),
    [
        (None, None, "", set()),
        ("2026-01-01", None, " AND e.started_at >= %(since)s", {"since"}),
        (None, "2026-01-01", " AND e.started_at < %(until)s", {"until"}),
        (
            "2026-01-01",
            "2026-01-02",
            " AND e.started_at >= %(since)s AND e.started_at < %(until)s",
            {"since", "until"},
        ),
    ],
)
def test_a_window_has_its_first_instant_and_not_its_last(since, until, clause, names):
    found, parameters = time_clauses(window(since, until))
    assert (found, set(parameters)) == (clause, names)


ROOM = Scope("real", (1, 2), (7,), None)


@pytest.mark.parametrize(
    ("episode", "held"),
    [
        (("real", 1, 7, 3), True),
        (("real", 2, 7, 99), True),
        (("sim", 1, 7, 3), False),
        (("real", 3, 7, 3), False),
        (("real", 1, 8, 3), False),
    ],
)
def test_a_scope_holds_the_episodes_of_its_side(episode, held):
    assert ROOM.holds(*episode) is held


@pytest.mark.parametrize(
    ("other", "held"),
    [
        (ROOM, True),
        (Scope("real", (1,), (7,), (3,)), True),
        (Scope("real", (1,), None, (3,)), False),
        (Scope("real", (1,), (7, 8)), False),
        (Scope("real", (1, 3), (7,)), False),
        (Scope("sim", (1,), (7,)), False),
    ],
)
def test_a_scope_contains_another_when_it_holds_each_of_its_episodes(other, held):
    assert ROOM.contains(other) is held
    assert not held or all(
        ROOM.holds(other.domain, policy, task, 3) for policy in other.policy_ids for task in other.task_ids
    )


def test_what_is_one_is_asked_for_by_equality_and_what_is_open_not_at_all():
    assert ROOM.clauses() == "domain = %(domain)s AND policy_id = ANY(%(policies)s) AND task_id = %(tasks)s"
    assert ROOM.parameters() == {"domain": "real", "policies": [1, 2], "tasks": 7, "sources": None}


@pytest.mark.parametrize(("domain", "column"), [("real", "deployment_id"), ("sim", "simulator_id")])
def test_the_source_of_an_episode_is_its_deployment_or_its_simulator(domain, column):
    one = Scope(domain, (1,), source_ids=(3, 4))
    assert one.clauses("e") == (
        f"e.domain = %(domain)s AND e.policy_id = %(policies)s AND e.{column} = ANY(%(sources)s)"
    )
    assert one.clauses().endswith("AND source_id = ANY(%(sources)s)")


DIM = Cell("r1", "berlin", "full", {"lighting": "dim", "mass_kg": "0.2 to 0.5"})


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        (CellFilter(), True),
        (CellFilter(robots=frozenset({"r1", "r2"})), True),
        (CellFilter(robots=frozenset({"r2"})), False),
        (CellFilter(sites=frozenset({"berlin"}), stages=frozenset({"full"})), True),
        (CellFilter(sites=frozenset({"oslo"})), False),
        (CellFilter(stages=frozenset({"shadow"})), False),
        (CellFilter(robots=frozenset({"r1"}), sites=frozenset({"oslo"})), False),
        (CellFilter(conditions={"lighting": frozenset({"dim", "bright"})}), True),
        (CellFilter(conditions={"lighting": frozenset({"bright"})}), False),
        (CellFilter(conditions={"lighting": frozenset({"dim"}), "mass_kg": frozenset({"0.5 to 1"})}), False),
        (CellFilter(conditions={"object": frozenset({""})}), True),
        (CellFilter(conditions={"object": frozenset({MISSING})}), True),
        (CellFilter(conditions={"object": frozenset({"mug"})}), False),
        (CellFilter(conditions={"lighting": frozenset({"", MISSING})}), False),
    ],
)
def test_a_cell_matches_any_value_of_each_field_that_is_given(wanted, matches):
    assert wanted.matches(DIM) is matches


def test_a_filter_is_open_when_it_asks_for_nothing():
    assert CellFilter().is_open
    assert not CellFilter(conditions={"a": frozenset({"x"})}).is_open
    assert CellFilter().clauses() == ("", {})


@pytest.mark.parametrize(
    ("level", "signs", "bounds"),
    [
        ("3", (">=", "<="), (3.0, 3.0)),
        ("0.2 to 0.5", (">=", "<"), (0.2, 0.5)),
        ("-5 to -2", (">", "<="), (-5.0, -2.0)),
    ],
)
def test_a_level_of_numbers_is_asked_for_as_its_bin(level, signs, bounds):
    clause, parameters = CellFilter(conditions={"mass_kg": frozenset({level})}).clauses()
    assert (parameters["low_0_0"], parameters["high_0_0"]) == bounds
    assert f"{signs[0]} %(low_0_0)s" in clause
    assert f"{signs[1]} %(high_0_0)s" in clause
    assert clause.startswith(" AND (")


@pytest.mark.parametrize(("level", "asks"), [("", True), (MISSING, True), ("dim", False)])
def test_a_condition_that_was_not_given_is_asked_for_by_name_only(level, asks):
    clause, _ = CellFilter(conditions={"lighting": frozenset({level})}).clauses()
    assert ("IS NULL" in clause) is asks
