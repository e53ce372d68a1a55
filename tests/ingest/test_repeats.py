"""The same content again under new ids: stored, counted, and told."""

import uuid
from datetime import timedelta

import pytest
from answers.lab import NOON, Lab, real, sim


@pytest.fixture
def lab(project):
    return Lab(project)


def measured(make, n, **fields):
    return [
        make(
            "success" if i % 3 else "failure",
            at=NOON + timedelta(minutes=i),
            duration_s=10.0 + i,
            signals={"peak_force_n": 20.0 + i},
            **fields,
        )
        for i in range(n)
    ]


def again(records):
    return [record | {"id": str(uuid.uuid4())} for record in records]


def post(lab, records):
    with lab.project.client("ingest") as client:
        answer = client.post("/episodes/batch", json=records)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_batch_under_new_ids_is_stored_counted_and_told(lab):
    sent = [*measured(real, 40), *measured(sim, 60)]
    first = post(lab, sent)
    assert (first["accepted"], "repeated" in first, "warnings" in first) == (100, False, False)
    # As itself it is known, under other ids it is new.
    assert post(lab, sent)["duplicates"] == 100
    second = post(lab, again(sent))
    assert (second["accepted"], second["duplicates"], second["repeated"]) == (100, 0, 100)
    assert second["warnings"][0]["code"] == "same-content"
    assert "100 episodes" in second["warnings"][0]["message"]
    lab.wait()
    drop = lab.ask("/deployments/berlin-line-3/drop")
    assert (drop["n_real"], drop["n_sim"]) == (80, 120)
    [told] = [caution for caution in drop["warnings"] if caution["code"] == "same-content"]
    assert told["message"].startswith("100 stored episodes are the same")
    trust = lab.ask("/simulators/mujoco/trust")
    assert "same-content" in {caution["code"] for caution in trust["warnings"]}


def test_single_episodes_are_looked_for_too_and_forgotten_when_deleted(lab):
    [one] = measured(real, 1)
    post(lab, [one])
    [other] = again([one])
    with lab.project.client("ingest") as client:
        answer = client.post("/episodes", json=other)
    assert (answer.status_code, answer.json()["status"], answer.json()["repeated"]) == (201, "accepted", 1)
    lab.wait()
    assert lab.ask("/deployments/berlin-line-3/drop")["warnings"]
    with lab.project.client("admin") as client:
        assert client.delete(f"/episodes/{other['id']}").status_code == 204
    lab.wait()
    warnings = lab.ask("/deployments/berlin-line-3/drop")["warnings"]
    assert "same-content" not in {caution["code"] for caution in warnings}


def test_within_one_batch_and_a_part_of_another(lab):
    sent = measured(real, 6)
    assert post(lab, [*sent, *again(sent[:2])])["repeated"] == 2
    changed = [record | {"duration_s": record["duration_s"] + 0.5} for record in again(sent)]
    assert "repeated" not in post(lab, changed)
    # Attempts that say no number may well be told in the same words.
    assert "repeated" not in post(lab, [real(), real()])
    assert "repeated" not in post(lab, [real(), sim(), sim()])
