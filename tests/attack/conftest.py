"""A service of its own for attackers: what they do to it must not slow down the tests beside them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gapwatch.store.core.database import Database
from parts import Project, Service, make_project, reachable, start_service


@pytest.fixture(scope="session")
def attacked(tmp_path_factory) -> Iterator[Service]:
    service = start_service(reachable(tmp_path_factory.mktemp("attacked")) / "data")
    yield service
    assert service.stop() == 0, service.log


@pytest.fixture
def attacked_database(attacked: Service) -> Iterator[Database]:
    database = Database(attacked.database_url)
    yield database
    database.close()


@pytest.fixture
def attacker(attacked: Service, attacked_database: Database) -> Project:
    return make_project(attacked, attacked_database)


@pytest.fixture
def victim(attacked: Service, attacked_database: Database) -> Project:
    return make_project(attacked, attacked_database)
