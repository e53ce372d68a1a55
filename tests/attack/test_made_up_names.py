"""A key that makes up names by the thousand is stopped at its budget; everything else goes on as before."""

from collections.abc import Iterator

import pytest
from people import Browser, somebody

from gapwatch.store.core.database import Database
from parts import Project, Service, episode, make_project, reachable, start_service, wait_until

BUDGET = 20


@pytest.fixture(scope="module")
def strict(tmp_path_factory) -> Iterator[Service]:
    """Two web processes, so that a count in one of them would not do."""
    service = start_service(
        reachable(tmp_path_factory.mktemp("names")) / "data",
        GAPWATCH_NEW_NAMES_A_DAY=str(BUDGET),
        GAPWATCH_WEB_PROCESSES="2",
    )
    yield service
    assert service.stop() == 0, service.log


@pytest.fixture
def strict_database(strict: Service) -> Iterator[Database]:
    database = Database(strict.database_url)
    yield database
    database.close()


@pytest.fixture
def noisy(strict, strict_database) -> Project:
    return make_project(strict, strict_database)


@pytest.fixture
def quiet(strict, strict_database) -> Project:
    return make_project(strict, strict_database)


def made_up(field: str, number: int) -> dict:
    name = f"name-{number}"
    return {
        "robot": {"robot": name},
        "site": {"site": name},
        "task": {"task": name},
        "deployment": {"deployment": name},
        "policy": {"policy": {"name": "p", "version": name}},
        "signals": {"signals": {name: 1.0}},
        "metrics": {"metrics": {name: 1.0}},
        "conditions": {"conditions": {"light": name}},
        "contract": {"contract": {"hz": number}},
    }[field]


@pytest.mark.parametrize(
    "field", ["robot", "site", "task", "deployment", "policy", "signals", "metrics", "conditions", "contract"]
)
def test_names_beyond_the_budget_are_refused_by_field(noisy, field):
    most = BUDGET * 10 if field == "conditions" else BUDGET
    # One name of each field is the first episode's own.
    most -= field in ("task", "deployment", "policy")
    with noisy.client() as client:
        client.post("/episodes", json=episode()).raise_for_status()
        records = [episode(**made_up(field, number)) for number in range(most + 5)]
        answer = client.post("/episodes/batch", json=records).json()
        assert (answer["accepted"], answer["rejected"], answer["conflicts"]) == (most, 5, 0)
        assert {(fault["pointer"], fault["code"]) for fault in answer["errors"]} == {
            (f"/{field}", "too-many-names")
        }
        assert "GAPWATCH_NEW_NAMES_A_DAY" in answer["errors"][0]["message"]
        # Known names are taken as before, new ones of this field one by one are not.
        assert client.post("/episodes", json=episode()).status_code == 201
        one = client.post("/episodes", json=episode(**made_up(field, 9999)))
        assert one.status_code == 422
        assert one.json()["errors"][0]["pointer"] == f"/{field}"
    assert noisy.stored() == most + 2
    assert (
        noisy.value("SELECT count(*) FROM rejected_records WHERE project_id = :p AND code = 'too-many-names'") == 6
    )


def test_nothing_of_a_strict_batch_is_stored_and_its_budget_is_kept(noisy):
    records = [episode(robot=f"r-{number}") for number in range(BUDGET + 1)]
    with noisy.client() as client:
        refused = client.post("/episodes/batch", json=records, headers={"Prefer": "handling=strict"})
        assert refused.status_code == 422
        assert noisy.stored() == 0
        assert client.post("/episodes/batch", json=records[:-1]).json()["accepted"] == BUDGET


def test_a_repeat_of_a_refused_record_is_refused_too(noisy):
    with noisy.client() as client:
        client.post("/episodes/batch", json=[episode(robot=f"r-{n}") for n in range(BUDGET)]).raise_for_status()
        record = episode(robot="one-more")
        answer = client.post("/episodes/batch", json=[record, record, episode()]).json()
    assert (answer["accepted"], answer["rejected"], answer["duplicates"]) == (1, 2, 0)


def test_the_budget_is_of_one_key_and_shown_to_people(strict, noisy, quiet):
    records = [episode(robot=f"r-{number}", deployment=f"d-{number}") for number in range(5 * BUDGET)]
    with noisy.client() as client:
        assert client.post("/episodes/batch", json=records).json()["accepted"] == BUDGET
    with noisy.client("admin") as other_key, quiet.client() as other_project:
        for client in (other_key, other_project):
            assert client.post("/episodes", json=episode(robot="mine")).status_code == 201
    # A correction is no way around it.
    with noisy.client("admin") as client:
        for number in range(BUDGET):
            client.post("/episodes", json=episode(id=f"e-{number}", robot=f"mine-{number}"))
        corrected = client.put("/episodes/e-0", json=episode(id="e-0", robot="one-more"))
        assert corrected.status_code == 422
    wait_until(lambda: noisy.value("SELECT count(*) FROM work WHERE project_id = :p") == 0, 30, what="the fold")
    with Browser(strict, somebody(noisy, "viewer")) as browser:
        page = browser.get("/settings/quarantine").text
        assert "Keys with too many new names" in page
        assert noisy.keys["ingest"][:8] in page
        for address in ("/", "/deployments/d-1", "/episodes", "/settings/robots"):
            assert browser.get(address).status_code == 200
    with Browser(strict, somebody(quiet, "viewer")) as browser:
        assert "too many new names" not in browser.get("/settings/quarantine").text
