"""What one project computes does not slow down another: lanes, and processes beside the one that answers pages."""

import asyncio
import contextlib

import psutil
import pytest
from attack.serving import serving
from people import Browser, somebody
from starlette.requests import Request
from starlette.responses import Response

from gapwatch.app import make_app
from gapwatch.doors import costly_reads
from gapwatch.doors.costly_reads import CostlyReads
from gapwatch.doors.lanes import Lanes, Places
from gapwatch.errors import ServiceUnavailable, TooManyRequests
from gapwatch.settings import Settings
from parts import Project, Service, episode, wait_until

PREVIEW = {"kind": "drop", "days": 30}


class HeldSide:
    """In the place of a side process: it answers when it is told to."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def answer(self, request: Request, **state: object) -> Response:
        await self.go_on.wait()
        return Response("done")


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_previews_beyond_the_lane_are_refused_and_other_projects_have_their_own(monkeypatch):
    monkeypatch.setattr(costly_reads, "REFUSE_AFTER_S", 0)

    async def scenario() -> None:
        first, second = HeldSide(), HeldSide()
        costly = CostlyReads(first, second)  # type: ignore[arg-type]
        request = Request({"type": "http"})
        noisy = [asyncio.ensure_future(costly.aside(request, 1)) for _ in range(10)]
        await turns()
        refused = [one for one in noisy if one.done()]
        assert len(refused) == 2  # one runs, seven wait
        for one in refused:
            error = one.exception()
            assert isinstance(error, TooManyRequests)
            assert "one preview, comparison or report at a time" in error.detail
            assert int(error.headers["Retry-After"]) > 0
        other = asyncio.ensure_future(costly.aside(request, 2))
        await turns()
        first.go_on.set()
        second.go_on.set()
        assert (await other).body == b"done"
        assert [(await one).body for one in noisy if one not in refused] == [b"done"] * 8

    asyncio.run(scenario())


def test_lanes_keep_room_for_others_and_take_turns():
    async def scenario() -> None:
        lanes = Lanes("two files", overall=4, at_once=2, waiting=2, wait_s=0.05)
        await lanes.enter(1)
        await lanes.enter(1)
        # The second half is given out one a project.
        await lanes.enter(2)
        waiting = asyncio.ensure_future(lanes.enter(2))
        await turns()
        assert not waiting.done()
        await lanes.enter(3)
        # All places are taken: a project that has none is told that it is not its own fault.
        with pytest.raises(ServiceUnavailable):
            await lanes.enter(4)
        with pytest.raises(TooManyRequests):
            await waiting
        for project in (1, 1, 2, 3):
            lanes.leave(project)
        assert lanes.running == 0
        # Whoever leaves does not come first again.
        single = Lanes("one", overall=1, at_once=1, waiting=2, wait_s=5)
        await single.enter(1)
        order: list[int] = []

        async def wait(project: int) -> None:
            await single.enter(project)
            order.append(project)
            single.leave(project)

        tasks = [asyncio.ensure_future(wait(project)) for project in (1, 1, 2)]
        await turns()
        single.leave(1)
        await asyncio.gather(*tasks)
        assert order == [2, 1, 1]

        # One that gives up leaves nothing behind.
        await single.enter(1)
        task = asyncio.ensure_future(single.enter(2))
        await turns()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        single.leave(1)
        assert single.running == 0

    asyncio.run(scenario())


def test_pages_of_one_project_leave_connections_to_others():
    places = Places(2)
    with places.of(1), places.of(1):
        with pytest.raises(TooManyRequests), places.of(1):
            pass
        with places.of(2):
            pass
    with places.of(1):
        pass


def side_processes(service: Service) -> list[psutil.Process]:
    [web] = service.children(" web")
    return [child for child in psutil.Process(web).children() if "spawn_main" in " ".join(child.cmdline())]


@pytest.fixture
def working(attacker: Project) -> Project:
    with attacker.client() as client:
        client.post("/episodes/batch", json=[episode() for _ in range(30)]).raise_for_status()
    wait_until(
        lambda: attacker.value("SELECT count(*) FROM rollup_counts WHERE project_id = :p"), what="the counts"
    )
    return attacker


def test_costly_reads_are_computed_beside_and_survive_the_death_of_their_process(attacked, working, victim):
    with working.client("read") as client:
        assert client.post("/rules/preview", json=PREVIEW).status_code == 200
        beside = side_processes(attacked)
        assert beside and all(process.nice() > 0 for process in beside)
        for process in beside:
            process.kill()
            process.wait(10)
        wait_until(
            lambda: client.post("/rules/preview", json=PREVIEW).status_code == 200, 30, what="a new process"
        )
        # What is refused is refused there as it is here.
        assert client.post("/rules/preview", json={"kind": "nonsense"}).status_code == 422
    with working.client("ingest") as client:
        assert client.post("/rules/preview", json=PREVIEW).status_code == 403
    with Browser(attacked, somebody(working, "engineer")) as browser:
        for address in ("/compare?deployment=berlin-line-3", "/deployments/berlin-line-3?format=report",
                        "/compare/simulators"):  # fmt: skip
            answer = browser.get(address)
            assert answer.status_code == 200
            assert "content-security-policy" in answer.headers and "<html" in answer.text
        form = {"name": "mine", "kind": "drop", "severity": "warning", "act": "preview"}
        assert browser.submit("/settings/rules", working.slug, **form).status_code == 200
        assert browser.get(f"/compare?project={victim.slug}").status_code == 404


def test_a_computation_that_takes_too_long_is_ended(attacked, working, monkeypatch):
    monkeypatch.setattr("gapwatch.doors.side_process.ANSWER_WITHIN_S", 0.01)
    settings = Settings(
        database_url=attacked.database_url, redis_url=attacked.running["redis_url"], data_dir=attacked.data_dir
    )
    with serving(make_app(settings), "on") as (port, _), working.client("read") as client:
        client.base_url = f"http://127.0.0.1:{port}/api/v1"
        answer = client.post("/rules/preview", json=PREVIEW)
        assert answer.status_code == 503
        assert "ask for less" in answer.json()["detail"]
        assert int(answer.headers["retry-after"]) > 0
