"""Where costly reads go: previews, comparisons and reports to side processes, statistics into a lane here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from gapwatch.doors.lanes import Lanes
from gapwatch.doors.side_process import SideProcess

# Of statistics, in one process: fewer than there are database connections.
STATISTICS_AT_ONCE = 4
MOST_STATISTICS = 12
SIDE_PROCESSES = 2
REFUSE_AFTER_S = 1.0


class CostlyReads:
    """`sides` are the side processes; a process that is one itself has none, and answers everything."""

    def __init__(self, *sides: SideProcess) -> None:
        self._sides = sides
        self._idle = list(sides)
        self._previews = Lanes(
            "one preview, comparison or report",
            overall=len(sides),
            at_once=1,
            waiting=7,
            wait_s=20.0,
            refuse_after_s=REFUSE_AFTER_S,
        )
        self.statistics = Lanes(
            "four statistics", overall=MOST_STATISTICS, at_once=STATISTICS_AT_ONCE, waiting=16, wait_s=10.0
        )

    @property
    def has_side(self) -> bool:
        return bool(self._sides)

    async def aside(self, request: Request, project_id: int, **state: Any) -> Response:
        """Have a side process answer, one request of a project at a time."""
        async with self._previews.of(project_id):
            # As many lanes as processes: one is idle.
            side = self._idle.pop()
            try:
                return await side.answer(request, **state)
            finally:
                self._idle.append(side)

    def close(self) -> None:
        for side in self._sides:
            side.close()


def costly_route(
    costly: CostlyReads, know_key: Callable[[Request], Awaitable[Any]], *, aside: bool
) -> type[APIRoute]:
    """A kind of route of the API whose requests pass the lane of their project, here or at the side process."""

    class CostlyRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            usual = super().get_route_handler()

            async def handle(request: Request) -> Response:
                if not costly.has_side:
                    return await usual(request)
                holder = await know_key(request)
                if aside:
                    return await costly.aside(request, holder.project_id, key_holder=holder)
                async with costly.statistics.of(holder.project_id):
                    return await usual(request)

            return handle

    return CostlyRoute
