"""A service of two web processes for the tests that load it and leave it whole."""

import pytest
from faults.harness import WEB_PROCESSES, internal_errors, stop

from gapwatch.store.core.database import Database
from parts import make_project, reachable, start_service


@pytest.fixture(scope="package")
def pair(tmp_path_factory):
    service = start_service(
        reachable(tmp_path_factory.mktemp("pair")) / "data",
        GAPWATCH_WEB_PROCESSES=str(WEB_PROCESSES),
        GAPWATCH_ALLOW_PRIVATE_TARGETS="true",
    )
    try:
        yield service
        assert internal_errors(service.log) == []
    finally:
        stop(service)


@pytest.fixture
def pair_project(pair):
    database = Database(pair.database_url)
    yield make_project(pair, database)
    database.close()
