"""Many senders of the same episodes and the same new names at the same moment: one row each, and no error."""

import itertools
import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from faults.harness import compare, settle

from parts import episode


def at_once(project, calls: list, *, scopes: tuple[str, ...] = ("admin",)) -> list:
    """Each call from a thread and a connection of its own, all released together; the answers in order."""
    barrier = threading.Barrier(len(calls))

    def run(call, scope):
        with project.client(scope) as client:
            # Connected before the start, so that nobody is late.
            client.get("/nothing")
            barrier.wait()
            return call(client)

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls, itertools.cycle(scopes)))


def post(path: str, body, client):
    return client.post(path, json=body)


def put(path: str, body, client):
    return client.put(path, json=body)


def delete(path: str, client):
    return client.delete(path)


def assert_counted_once(service, project, records) -> None:
    settle(service, project)
    sent = {record["id"]: record["outcome"] for record in records}
    found = compare(project, sent, sent)
    assert found.is_clean, found
    assert found.stored == len(sent)


def test_of_50_equal_posts_at_once_one_is_accepted_and_the_others_are_duplicates(pair, pair_project):
    record = episode()
    answers = at_once(pair_project, [partial(post, "/episodes", record)] * 50)
    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: 49}
    assert Counter(answer.json()["status"] for answer in answers) == {"accepted": 1, "duplicate": 49}
    assert_counted_once(pair, pair_project, [record])


def test_of_50_posts_of_one_id_with_other_content_one_is_accepted_and_the_others_conflict(pair, pair_project):
    record = episode()
    others = [record | {"reward": number / 100} for number in range(50)]
    answers = at_once(pair_project, [partial(post, "/episodes", body) for body in others])
    assert Counter(answer.status_code for answer in answers) == {201: 1, 409: 49}
    assert_counted_once(pair, pair_project, [record])


def test_16_senders_of_the_same_episodes_and_new_names_in_opposite_orders_never_meet_an_error(pair, pair_project):
    names = {"policies": 12, "tasks": 11, "robots": 10, "sites": 9, "deployments": 7}
    records = [
        episode(
            policy={"name": f"policy-{number % 12}", "version": "1"},
            task=f"task-{number % 11}",
            robot=f"robot-{number % 10}",
            site=f"site-{number % 9}",
            deployment=f"line-{number % 7}",
            conditions={"lighting": f"level-{number % 8}"},
        )
        for number in range(240)
    ]
    batches = []
    for number in range(16):
        # Three quarters of everything each, so that any two overlap; half of them backwards.
        part = random.Random(number).sample(records, 180)
        part.sort(key=records.index, reverse=number % 2 == 1)
        batches.append(part)
    # By two keys: the batches of one alone would wait for each other.
    calls = [partial(post, "/episodes/batch", batch) for batch in batches]
    answers = at_once(pair_project, calls, scopes=("ingest", "admin"))
    assert Counter(answer.status_code for answer in answers) == {200: 16}
    bodies = [answer.json() for answer in answers]
    assert all(body["accepted"] + body["duplicates"] == 180 for body in bodies)
    sent = {record["id"]: record for batch in batches for record in batch}
    # Accepted by exactly one of the senders, and a duplicate to all others.
    assert sum(body["accepted"] for body in bodies) == len(sent)
    for table, count in names.items():
        assert pair_project.value(f"SELECT count(*) FROM {table} WHERE project_id = :p") == count
    assert_counted_once(pair, pair_project, sent.values())


def test_corrections_and_a_deletion_of_one_episode_at_once_are_all_made_one_after_another(pair, pair_project):
    record = episode()
    with pair_project.client() as client:
        client.post("/episodes", json=record).raise_for_status()
    address = f"/episodes/{record['id']}"
    corrections = [record | {"reward": number / 10} for number in range(8)]
    answers = at_once(pair_project, [partial(put, address, body) for body in corrections])
    assert Counter(answer.status_code for answer in answers) == {200: 8}
    assert sorted(answer.json()["revision"] for answer in answers) == list(range(2, 10))
    answers = at_once(pair_project, [partial(put, address, record), partial(delete, address)])
    assert answers[0].status_code in {200, 404}
    assert answers[1].status_code == 204
    assert pair_project.stored() == 0
    assert_counted_once(pair, pair_project, [])
