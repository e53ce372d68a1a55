import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

COLUMNS = {
    "project_id": "1",
    "id": "'e1'",
    "started_at": "now()",
    "policy_id": "1",
    "task_id": "1",
    "deployment_id": "1",
    "domain": "'real'",
    "outcome": "'success'",
    "content_hash": "'\\x00'",
}


def insert(database, **changes):
    columns = COLUMNS | changes
    statement = f"INSERT INTO episodes ({', '.join(columns)}) VALUES ({', '.join(columns.values())})"
    with database.engine.begin() as connection:
        connection.execute(text(statement.replace(":", "\\:")))


def test_a_plain_episode_is_accepted(database):
    insert(database)


@pytest.mark.parametrize("number", ["'NaN'", "'Infinity'", "'-Infinity'"])
@pytest.mark.parametrize("column", ["reward", "duration_s", "clock_skew_s"])
def test_the_database_refuses_numbers_that_are_not_finite(database, column, number):
    with pytest.raises(DBAPIError, match=f"episodes_{column.removesuffix('_s')}.*_check"):
        insert(database, **{column: number})


@pytest.mark.parametrize("column", ["signals", "numbers", "metrics", "embedding"])
def test_the_database_refuses_arrays_with_a_number_that_is_not_finite(database, column):
    for number in ("NaN", "Infinity", "-Infinity"):
        with pytest.raises(DBAPIError, match=f"episodes_{column}_finite_check"):
            insert(database, **{column: f"'{{1,{number}}}'"})


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("domain", "'moon'"),
        ("outcome", "'great'"),
        ("stage", "'beta'"),
        ("duration_s", "-1"),
        ("violations", "-1"),
        ("deployment_id", "NULL"),
    ],
)
def test_the_database_refuses_what_the_record_refuses(database, column, value):
    with pytest.raises(DBAPIError, match="violates check constraint"):
        insert(database, **{column: value})


@pytest.mark.parametrize("statement", ["UPDATE audit_entries SET actor = 'x'", "DELETE FROM audit_entries"])
def test_audit_entries_cannot_be_changed(database, statement):
    with database.engine.begin() as connection:
        connection.execute(text("INSERT INTO projects (slug, name) VALUES ('p', 'p')"))
        connection.execute(
            text("INSERT INTO audit_entries (project_id, actor, action, subject) VALUES (1, 'a', 'b', 'c')")
        )
    with pytest.raises(DBAPIError, match="never changed or deleted"), database.engine.begin() as connection:
        connection.execute(text(statement))
