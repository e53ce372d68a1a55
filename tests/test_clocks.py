"""One clock: what the tests, the service and its servers take for now, also in a run of another day (later.py)."""

import os
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import httpx
import psycopg
import redis

LATER = timedelta(days=int(os.environ.get("GAPWATCH_TESTS_DAYS_LATER", "0")))
ONE_MINUTE = timedelta(minutes=1)


def test_the_tests_are_as_many_days_ahead_of_the_machine_as_they_were_told(tmp_path):
    (tmp_path / "stamped").touch()
    of_the_machine = datetime.fromtimestamp((tmp_path / "stamped").stat().st_mtime, UTC)
    assert abs(datetime.now(UTC) - LATER - of_the_machine) < ONE_MINUTE


def test_web_postgres_and_redis_have_the_clock_of_the_tests(service):
    of_web = parsedate_to_datetime(httpx.get(f"{service.url}/healthz").headers["Date"])
    with psycopg.connect(service.database_url) as connection:
        [of_postgres] = connection.execute("SELECT clock_timestamp()").fetchone()
    with redis.Redis.from_url(service.running["redis_url"]) as connection:
        of_redis = datetime.fromtimestamp(connection.time()[0], UTC)
    for clock in (of_web, of_postgres, of_redis):
        assert abs(datetime.now(UTC) - clock) < ONE_MINUTE


def test_a_postgres_without_the_service_has_it_too(postgres):
    with psycopg.connect(postgres.url) as connection:
        [of_postgres] = connection.execute("SELECT clock_timestamp()").fetchone()
    assert abs(datetime.now(UTC) - of_postgres) < ONE_MINUTE
