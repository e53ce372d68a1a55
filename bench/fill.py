"""A table that has been in use for a year: rows of the benchmark's own records under time-ordered ids."""

from __future__ import annotations

import psycopg
from psycopg import sql

from bench.floor import columns_of

CHUNK = 100_000
PATTERNS = 20_000

STATEMENT = sql.SQL("""
INSERT INTO episodes ({columns})
SELECT {values}
FROM (SELECT n, interval '365 days' * (n::float8 / {count} - 1) AS age
      FROM generate_series({first}, {last}) n) AS spread
JOIN pattern ON place = n % {patterns} ORDER BY n
""")
# Every other column is copied from the repeated row.
OWN = {
    "id": sql.SQL("uuidv7(age)::text"),
    "started_at": sql.SQL("now() + age"),
    "session": sql.SQL("to_char(now() + age, 'YYYY-MM-DD-AM')"),
}


def fill_episodes(url: str, project_id: int, count: int) -> None:
    """Multiply the project's stored episodes to `count` more, spread evenly over the last 365 days, in order.

    Made inside Postgres, where ten million take minutes; the rows and indexes are those that COPY would leave.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        names = [name for name, _ in columns_of(connection)]
        columns = sql.SQL(", ").join(map(sql.Identifier, names))
        values = sql.SQL(", ").join(OWN.get(name) or sql.Identifier(name) for name in names)
        connection.execute(
            sql.SQL(
                "CREATE TEMP TABLE pattern AS SELECT row_number() OVER (ORDER BY id) - 1 AS place, {}"
                " FROM episodes WHERE project_id = {} LIMIT {}"
            ).format(columns, project_id, PATTERNS)
        )
        connection.execute("ANALYZE pattern")
        [patterns] = connection.execute("SELECT count(*) FROM pattern").fetchone() or [0]
        for first in range(0, count, CHUNK):
            last = min(first + CHUNK, count) - 1
            connection.execute(
                STATEMENT.format(
                    columns=columns, values=values, count=count, first=first, last=last, patterns=patterns
                )
            )
        connection.execute("VACUUM ANALYZE episodes")
        connection.execute("CHECKPOINT")
