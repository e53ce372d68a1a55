"""Sums by hour and day as rows of hours, days and months: what is in a day is in its month, once."""

from collections import defaultdict
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tally.made import NAMES, row, rows, steady

from gapwatch.tally.aggregate import Episodes
from gapwatch.tally.sums import DAY_S, CellContent, EpisodeGroup, Signature, Sums, month_of
from gapwatch.tally.tiers import BucketKey, count_rows, value_rows
from gapwatch.tally.values import ValueSum, add_values

REAL, SIM = EpisodeGroup("real", 1, 2, 3), EpisodeGroup("sim", 1, 2, 4)
CELL = CellContent(7, None, "full", (("lighting", "dim"),))
ELSEWHERE = CellContent(7, 5, None, ())
NOWHERE, BY_ROBOT = CellContent(None, None, None, ()), CellContent(7, None, None, ())
SAID = Signature("lift", ("slip",), None)


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


OCTOBER, NOVEMBER = at("2026-10-01"), at("2026-11-01")
THIRTIETH, LAST, FIRST = at("2026-10-30"), at("2026-10-31"), NOVEMBER


def rows_by_table(sums: Sums) -> dict[str, dict[tuple, list[int]]]:
    """Each table's rows, with the bucket or scope that a key begins with written out."""

    def written_out(key: tuple) -> tuple:
        first, *rest = key
        return (*first, *rest) if isinstance(first, EpisodeGroup | BucketKey) else key

    return {
        table: {written_out(key): counts for key, counts in keyed.items()}
        for table, keyed in vars(count_rows(sums)).items()
    }


def test_hours_are_rows_of_three_tiers():
    noon = LAST + DAY_S // 2
    sums = Sums(hours={(REAL, LAST): [1, 0, 0, 0], (REAL, noon): [2, 3, 0, 0], (REAL, FIRST): [0, 0, 4, 5]})
    assert rows_by_table(sums)["counts"] == {
        (*REAL, "hour", LAST): [1, 0, 0, 0],
        (*REAL, "hour", noon): [2, 3, 0, 0],
        (*REAL, "hour", FIRST): [0, 0, 4, 5],
        (*REAL, "day", LAST): [3, 3, 0, 0],
        (*REAL, "day", FIRST): [0, 0, 4, 5],
        (*REAL, "month", OCTOBER): [3, 3, 0, 0],
        (*REAL, "month", NOVEMBER): [0, 0, 4, 5],
    }


@pytest.mark.parametrize(
    ("hour", "day", "month"),
    [
        ("2024-02-29T23:00", "2024-02-29", "2024-02-01"),
        ("2024-03-01T00:00", "2024-03-01", "2024-03-01"),
        ("2026-12-31T23:00", "2026-12-31", "2026-12-01"),
        ("1970-01-01T00:00", "1970-01-01", "1970-01-01"),
    ],
)
def test_an_hour_belongs_to_its_day_and_month_of_utc(hour, day, month):
    found = rows_by_table(Sums(hours={(SIM, at(hour)): [0, 1, 0, 0]}))["counts"]
    assert set(found) == {(*SIM, "hour", at(hour)), (*SIM, "day", at(day)), (*SIM, "month", at(month))}


def test_cells_are_rows_of_days_and_months_and_of_real_robots_by_day():
    sums = Sums(
        cells={
            (REAL, THIRTIETH, CELL): [1, 2, 3, 4],
            (REAL, LAST, CELL): [10, 20, 30, 40],
            (REAL, LAST, ELSEWHERE): [5, 0, 0, 0],
            (REAL, LAST, NOWHERE): [0, 1, 0, 0],
            (REAL, LAST, BY_ROBOT): [100, 0, 0, 0],
            (SIM, LAST, CELL): [6, 0, 0, 0],
        }
    )
    found = rows_by_table(sums)
    assert found["cells"] == {
        (*REAL, "day", THIRTIETH, CELL): [1, 2, 3, 4],
        (*REAL, "day", LAST, CELL): [10, 20, 30, 40],
        (*REAL, "month", OCTOBER, CELL): [11, 22, 33, 44],
        **{(*REAL, tier, bucket, ELSEWHERE): [5, 0, 0, 0] for tier, bucket in (("day", LAST), ("month", OCTOBER))},
        **{(*REAL, tier, bucket, NOWHERE): [0, 1, 0, 0] for tier, bucket in (("day", LAST), ("month", OCTOBER))},
        **{
            (*REAL, tier, bucket, BY_ROBOT): [100, 0, 0, 0] for tier, bucket in (("day", LAST), ("month", OCTOBER))
        },
        **{(*SIM, tier, bucket, CELL): [6, 0, 0, 0] for tier, bucket in (("day", LAST), ("month", OCTOBER))},
    }
    assert found["places"] == {
        (*REAL, THIRTIETH, 7, 0): [1, 2, 3, 4],
        (*REAL, LAST, 7, 0): [110, 20, 30, 40],
        (*REAL, LAST, 7, 5): [5, 0, 0, 0],
        (*REAL, LAST, 0, 0): [0, 1, 0, 0],
    }


def test_failures_sessions_and_contracts():
    sums = Sums(
        failures={(REAL, THIRTIETH, CELL, SAID): 2, (REAL, LAST, CELL, SAID): 3, (REAL, FIRST, CELL, SAID): 4},
        sessions={(REAL, LAST, "a"): [1, 2], (REAL, FIRST, "a"): [3, 0]},
        contracts={(REAL, THIRTIETH, 8): 5, (REAL, LAST, 8): 6, (REAL, LAST, 0): 7},
    )
    found = rows_by_table(sums)
    assert found["failures"] == {
        (*REAL, "day", THIRTIETH, CELL, SAID): [2],
        (*REAL, "day", LAST, CELL, SAID): [3],
        (*REAL, "day", FIRST, CELL, SAID): [4],
        (*REAL, "month", OCTOBER, CELL, SAID): [5],
        (*REAL, "month", NOVEMBER, CELL, SAID): [4],
    }
    assert found["sessions"] == {(*REAL, LAST, "a"): [1, 2], (*REAL, FIRST, "a"): [3, 0]}
    assert found["contracts"] == {
        (*REAL, "day", THIRTIETH, 8): [5],
        (*REAL, "day", LAST, 8): [6],
        (*REAL, "day", LAST, 0): [7],
        (*REAL, "month", OCTOBER, 8): [11],
        (*REAL, "month", OCTOBER, 0): [7],
    }


def test_what_comes_to_nothing_is_no_row_but_less_than_nothing_is():
    """A correction within a day moves nothing in its month; a deletion takes from both."""
    sums = Sums(
        hours={(REAL, LAST): [-1, 0, 0, 0], (REAL, LAST + 3600): [1, 0, 0, 0], (REAL, FIRST): [0, -1, 0, 0]}
    )
    assert rows_by_table(sums)["counts"] == {
        (*REAL, "hour", LAST): [-1, 0, 0, 0],
        (*REAL, "hour", LAST + 3600): [1, 0, 0, 0],
        **{(*REAL, tier, FIRST): [0, -1, 0, 0] for tier in ("hour", "day", "month")},
    }


def test_making_rows_leaves_the_sums_as_they_were():
    sums = Sums(cells={(REAL, THIRTIETH, CELL): [1, 0, 0, 0], (REAL, LAST, CELL): [1, 0, 0, 0]})
    assert count_rows(sums) == count_rows(sums)
    assert list(sums.cells.values()) == [[1, 0, 0, 0]] * 2


def test_values_are_rows_of_days_and_months_one_group_at_a_time():
    def value(total):
        return {"force_n": ValueSum(1, total, total * total, 0, {total: 1})}

    values = {
        (REAL, THIRTIETH, "signal", "success"): value(2),
        (REAL, LAST, "signal", "success"): value(3),
        (REAL, FIRST, "signal", "success"): value(5),
        (REAL, LAST, "signal", "failure"): value(7),
    }
    succeeded, failed = value_rows(values)
    both = {"force_n": ValueSum(2, 5, 13, 0, {2: 1, 3: 1})}
    key = (*REAL, "signal", "success")
    assert succeeded == {
        (*key, "day", THIRTIETH): value(2),
        (*key, "day", LAST): value(3),
        (*key, "day", FIRST): value(5),
        (*key, "month", OCTOBER): both,
        (*key, "month", NOVEMBER): value(5),
    }
    assert failed == {
        (*REAL, "signal", "failure", tier, bucket): value(7)
        for tier, bucket in (("day", LAST), ("month", OCTOBER))
    }


def coarser(key: tuple) -> tuple[str, int] | None:
    """The tier and bucket that a row of hours or days is a part of."""
    tier, bucket = key
    return {"hour": ("day", bucket - bucket % DAY_S), "day": ("month", month_of(bucket))}.get(tier)


@pytest.mark.parametrize("table", ["counts", "cells", "failures", "contracts"])
@steady
@given(episodes=st.lists(rows, max_size=25))
def test_the_rows_of_a_tier_add_up_to_those_of_the_next(table, episodes):
    found = rows_by_table(Episodes(episodes, NAMES).sums())[table]
    finest = "hour" if table == "counts" else "day"
    added = defaultdict(list)
    for key, counts in found.items():
        into = coarser(key[4:6])
        if into is not None:
            added[*key[:4], *into, *key[6:]].append(counts)
    assert {key: [sum(each) for each in zip(*parts, strict=True)] for key, parts in added.items()} == {
        key: counts for key, counts in found.items() if key[4] != finest
    }


@steady
@given(st.lists(rows, max_size=25))
def test_the_values_of_days_add_up_to_those_of_months(episodes):
    sums = Episodes(episodes, NAMES).sums()
    found = {key: named for group in value_rows(sums.values) for key, named in group.items()}
    days = {((*key[:4],), key[7], *key[4:6]): named for key, named in found.items() if key[6] == "day"}
    assert days == sums.values
    added = defaultdict(dict)
    for key, named in found.items():
        if key[6] == "day":
            add_values(added[*key[:6], "month", month_of(key[7])], named)
    assert added == {key: named for key, named in found.items() if key[6] == "month"}


@steady
@given(st.lists(rows, max_size=25))
def test_every_table_holds_each_episode_once_a_tier(episodes):
    found = rows_by_table(Episodes(episodes, NAMES).sums())

    def total(table, tier):
        return sum(sum(counts) for key, counts in found[table].items() if tier is None or key[4] == tier)

    failures = sum(episode.outcome == "failure" for episode in episodes)
    for tier in ("day", "month"):
        assert total("counts", tier) == total("cells", tier) == len(episodes)
        assert total("contracts", tier) == len(episodes)
        assert total("failures", tier) == failures
    assert total("counts", "hour") == len(episodes)
    assert total("places", None) == sum(episode.domain == "real" for episode in episodes)


def test_no_sums_are_no_rows():
    assert not any(rows_by_table(Sums()).values())
    assert list(value_rows({})) == []
    assert not any(rows_by_table(Episodes([row(), row(sign=-1)], NAMES).sums()).values())
