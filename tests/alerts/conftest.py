"""A service that may talk to this machine, the outside world on it, and projects with a webhook."""

import pytest
from alerts.stage import Stage

from gapwatch.store.core.database import Database
from parts import make_project, reachable, start_service


@pytest.fixture(scope="session")
def alerting_service(tmp_path_factory):
    data_dir = reachable(tmp_path_factory.mktemp("alerting")) / "data"
    service = start_service(data_dir, GAPWATCH_ALLOW_PRIVATE_TARGETS="true")
    yield service
    assert service.stop() == 0, service.log


@pytest.fixture
def watched(alerting_service):
    """A fresh project of that service."""
    database = Database(alerting_service.database_url)
    yield make_project(alerting_service, database)
    database.close()


@pytest.fixture
def stage(database, receiver):
    return Stage(database, receiver)
