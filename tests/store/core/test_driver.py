"""Rows by name: a query whose columns are not the fields of its row is refused."""

from typing import NamedTuple

import pytest

from gapwatch.store.core.driver import named_cursor


class Point(NamedTuple):
    x: int
    label: str | None


def test_rows_have_the_fields_of_their_class(database):
    with database.transaction() as connection, named_cursor(connection, Point) as cursor:
        assert cursor.execute("SELECT 1 AS x, 'a' AS label UNION ALL SELECT 2, NULL ORDER BY 1").fetchall() == [
            Point(1, "a"),
            Point(2, None),
        ]


@pytest.mark.parametrize("query", ["SELECT 'a' AS label, 1 AS x", "SELECT 1 AS x", "SELECT 1, 'a' AS label"])
def test_columns_in_another_order_or_under_another_name_are_refused(database, query):
    with (
        database.transaction() as connection,
        named_cursor(connection, Point) as cursor,
        pytest.raises(TypeError, match="label"),
    ):
        cursor.execute(query).fetchall()


def test_a_named_cursor_fetches_in_parts(database):
    with database.transaction() as connection, named_cursor(connection, Point, name="points") as cursor:
        cursor.execute("SELECT x::int, NULL AS label FROM generate_series(1, 5) AS s (x)")
        assert [row.x for row in cursor.fetchmany(3)] == [1, 2, 3]
        assert [row.x for row in cursor.fetchmany(3)] == [4, 5]
