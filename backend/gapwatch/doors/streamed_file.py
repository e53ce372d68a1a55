"""A file that is sent while it is read from the database, and lets go of everything however it ends.

Starlette's StreamingResponse leaves a plain generator where it stood when the client goes away: its connection
stays checked out until the garbage collector finds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gapwatch.doors.lanes import Lanes
from gapwatch.errors import GapwatchError
from gapwatch.fast_answers import ABORT

log = structlog.get_logger()

# A reader that takes longer for a piece of a file is cut off.
PIECE_WITHIN_S = 60.0
# One that takes this long for all of it too: an open read keeps Postgres from cleaning up.
FILE_WITHIN_S = 3600.0


Pieces = Generator[bytes, None, None]


class StreamedFile(Response):
    """`open_file` returns the pieces; closing the iterator gives back what they are read from."""

    def __init__(
        self,
        open_file: Callable[[], Pieces],
        *,
        name: str,
        media_type: str,
        lanes: Lanes,
        project_id: int,
    ) -> None:
        super().__init__(None, 200, {"Content-Disposition": f'attachment; filename="{name}"'}, media_type)
        del self.headers["content-length"]
        self._open_file = open_file
        self._lanes, self._project_id = lanes, project_id
        self._is_started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await send({"type": "http.response.body"})
            return
        await self._lanes.enter(self._project_id)
        loop = asyncio.get_running_loop()
        file = _OpenFile(self._open_file(), lambda: loop.call_soon_threadsafe(self._lanes.leave, self._project_id))
        sending = asyncio.ensure_future(self._send_pieces(file, send))
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait({sending, gone}, timeout=FILE_WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
            if sending.done() and (error := sending.exception()) is not None and not self._is_started:
                raise error
            if not gone.done() and not (sending.done() and sending.exception() is None):
                await self._cut_off(scope, gone, sending)
        finally:
            sending.cancel()
            gone.cancel()
            file.close()

    async def _send_pieces(self, file: _OpenFile, send: Send) -> None:
        # The first piece before the head: what fails at once becomes a proper answer.
        piece = await file.read()
        self._is_started = True
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        while piece is not None:
            async with asyncio.timeout(PIECE_WITHIN_S):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            piece = await file.read()
        await send({"type": "http.response.body"})

    async def _cut_off(self, scope: Scope, gone: asyncio.Future[None], sending: asyncio.Future[None]) -> None:
        """Break the connection, so that nobody takes the part that was sent for all of it."""
        error = sending.exception() if sending.done() else None
        if error is not None and not isinstance(error, TimeoutError | GapwatchError):
            raise error
        log.warning("a file was cut off", reason="slow reader" if error is None else str(error) or "slow reader")
        abort = scope.get("extensions", {}).get(ABORT)
        if abort is None:
            raise ConnectionAbortedError("the file was cut off")
        abort()
        await asyncio.wait({gone}, timeout=1)


class _OpenFile:
    """Pieces read in a thread of their own, apart from the threads of the pages.

    The thread keeps the order: closing comes after the piece that is being read, even if nobody waits for it.
    """

    def __init__(self, pieces: Pieces, when_closed: Callable[[], object]) -> None:
        self._pieces = pieces
        self._when_closed = when_closed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="file")

    async def read(self) -> bytes | None:
        return await asyncio.get_running_loop().run_in_executor(self._thread, next, self._pieces, None)

    def close(self) -> None:
        self._thread.submit(self._close)
        self._thread.shutdown(wait=False)

    def _close(self) -> None:
        try:
            self._pieces.close()
        finally:
            # At the end of the process there may be no event loop left to tell.
            with suppress(RuntimeError):
                self._when_closed()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
