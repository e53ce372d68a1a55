import pytest
from sqlalchemy import text

from gapwatch.ingest.spool_age import LARGEST_AGE_S, read_age
from parts import episode, wait_until


@pytest.mark.parametrize(
    ("header", "age_s"),
    [("61", 61.0), (" 61.5 ", 61.5), ("0", 0.0), ("999999999999", LARGEST_AGE_S)],
)
def test_an_age_is_a_number_of_seconds(header, age_s):
    assert read_age(header) == age_s


@pytest.mark.parametrize("header", ["", "-5", "nan", "inf", "1e3", "old", "٣", "1" * 4000, "5;6", "0x10"])
def test_anything_else_says_nothing(header):
    assert read_age(header) is None


@pytest.fixture
def spool_of(project):
    """Sends live episodes with a header; says what is known of the sender's spool."""

    def send(header, count=1, **fields):
        headers = {} if header is None else {"Gapwatch-Spool-Age-S": header}
        with project.client() as client:
            if count == 1:
                answer = client.post("/episodes", json=episode(**fields), headers=headers)
            else:
                answer = client.post("/episodes/batch", json=[episode(**fields), episode()], headers=headers)
            assert answer.is_success, answer.text
        rows = project.rows(
            "SELECT extract(epoch FROM now() - spool_oldest_at)::float, spool_told_at IS NOT NULL FROM presence"
            " WHERE project_id = :p AND robot NOT LIKE '@%'"
        )
        return rows[0] if rows else None

    send(None, robot="ur5e-1")
    wait_until(lambda: project.rows("SELECT 1 FROM presence WHERE project_id = :p"), what="the robot heard")
    return send


@pytest.mark.parametrize("count", [1, 2])
def test_a_sender_that_is_behind_is_noted_and_one_that_caught_up_too(spool_of, count):
    assert spool_of("12", count, robot="ur5e-1") == (None, False)

    # A batch that arrives while the watch writes the robot's row leaves it to the next one.
    def is_behind():
        age_s, told = spool_of("7200.5", count, robot="ur5e-1")
        return told and 7200 <= age_s < 7300

    wait_until(is_behind, what="the sender noted as behind")
    # Within ten seconds of the last note nothing is written.
    assert spool_of("3600", count, robot="ur5e-1")[0] > 7000
    wait_until(
        lambda: spool_of("3.0", count, robot="ur5e-1") == (None, True), what="the sender noted as up to date"
    )


def test_what_met_a_busy_row_is_noted_with_the_next_batch(project, spool_of):
    wait_until(lambda: (spool_of("7200.5", robot="ur5e-1")[0] or 0) > 7000, what="the sender noted as behind")
    with project.database.transaction() as watch:
        watch.execute(text("SELECT 1 FROM presence WHERE project_id = :p FOR UPDATE"), {"p": project.id})
        assert spool_of("3.0", robot="ur5e-1")[0] > 7000
    wait_until(lambda: spool_of("3.0", robot="ur5e-1") == (None, True), what="the sender noted as up to date")


@pytest.mark.parametrize("header", ["many", "-7200", "NaN", "\xff"])
def test_a_bad_age_refuses_nothing(spool_of, header):
    assert spool_of(header.encode("latin-1"), robot="ur5e-1") == (None, False)


def test_robots_without_a_name_are_noted_with_their_deployment(project, spool_of):
    spool_of(None)
    wait_until(
        lambda: project.rows("SELECT 1 FROM presence WHERE project_id = :p AND robot LIKE '@%'"), what="hearing"
    )
    is_behind = "SELECT spool_oldest_at < now() - interval '1 hour' FROM presence WHERE project_id = :p AND robot LIKE '@%'"
    wait_until(lambda: spool_of("7200") and project.value(is_behind), what="the sender noted as behind")
