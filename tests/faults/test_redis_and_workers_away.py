"""Redis and the workers are dead: what may drive is still told and still decided; messages wait and then go out."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from api.test_rollouts import decide
from people import Browser, somebody
from rollouts.test_watching import planned

from parts import wait_until

PERMIT = "/deployments/berlin-line-3/permit"
ROBOTS = 20


@pytest.fixture
def bare(pair):
    """Of the service only web and Postgres live: its supervisor sleeps, so nobody starts the others again."""
    dead = [pid for part in ("redis.sock", "gapwatch worker", "gapwatch beat") for pid in pair.children(part)]
    assert len(dead) == 3
    os.kill(pair.process.pid, signal.SIGSTOP)
    try:
        for pid in dead:
            os.killpg(pid, signal.SIGKILL)
        yield pair
    finally:
        os.kill(pair.process.pid, signal.SIGCONT)


def test_a_stop_is_pressed_and_every_robot_learns_of_it_without_redis_and_workers(
    pair, pair_project, receiver, request
):
    planned(pair_project, 0)
    engineer = Browser(pair, somebody(pair_project, "engineer"))
    with (
        engineer,
        pair_project.client("admin") as admin,
        pair_project.client() as robot,
        ThreadPoolExecutor(ROBOTS) as robots,
    ):
        hook = {"name": "hook", "kind": "webhook", "config": {"url": f"{receiver.url}/hook"}}
        admin.post("/channels", json=hook).raise_for_status()
        tag = robot.get(PERMIT).headers["ETag"]

        def wait(known):
            return robot.get(PERMIT, params={"wait": 25}, headers={"If-None-Match": known})

        # Some wait since before, some ask when all that is left is web and Postgres.
        waiting = [robots.submit(wait, tag) for _ in range(ROBOTS // 2)]
        request.getfixturevalue("bare")
        assert robot.get(PERMIT, headers={"If-None-Match": tag}).status_code == 304
        waiting += [robots.submit(wait, tag) for _ in range(ROBOTS // 2)]
        decide(pair_project, "stop", reason="a bolt is loose")
        told = [answer.result() for answer in waiting]
        assert {(answer.status_code, answer.json()["state"]) for answer in told} == {(200, "stop")}
        # On the page too, and back again.
        waiting = [robots.submit(wait, told[0].headers["ETag"]) for _ in range(3)]
        resumed = engineer.submit(
            "/rollouts", pair_project.slug, deployment="berlin-line-3", act="resume", reason="tightened"
        )
        assert resumed.status_code == 200 and "tightened" in resumed.text
        assert {answer.result().json()["state"] for answer in waiting} == {"go"}
        assert admin.get("/deployments/berlin-line-3/gate").status_code == 200
        due = "SELECT count(*) FROM deliveries WHERE project_id = :p AND state = 'due' AND action = 'rollout'"
        assert pair_project.value(due) == 2 and not receiver.webhooks()
    os.kill(pair.process.pid, signal.SIGCONT)
    wait_until(lambda: len(receiver.webhooks()) == 2, 60, what="the messages that waited")
    assert {got["decision"]["kind"] for got in receiver.webhooks()} == {"stop", "resume"}
