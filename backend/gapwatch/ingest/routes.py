"""`POST /api/v1/episodes` and `/episodes/batch`: from the bytes of a request to a committed transaction.

Answered directly (`fast_answers.py`): the body is read, checked and packed by us, and of a framework only the cost
would be left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope

from gapwatch.access.keys import KeyHolder
from gapwatch.errors import Conflict, Fault, GapwatchError, Invalid, MalformedBody, NotFound
from gapwatch.fast_answers import Handler, RawAnswer
from gapwatch.ingest.batch import split_batch
from gapwatch.ingest.body import JSON, LARGEST_BATCH, LARGEST_SINGLE, NDJSON, Call, media_type, read_body
from gapwatch.ingest.checks import Refused
from gapwatch.ingest.clock_skew import read_clock
from gapwatch.ingest.commits import GroupCommit
from gapwatch.ingest.disk_space import SpaceGuard
from gapwatch.ingest.rate_limits import Buckets, Lanes
from gapwatch.ingest.reading import MOST_KEPT, Read, Reader
from gapwatch.keyring import Keyring
from gapwatch.store.write.accept import (
    Acceptor,
    Rejection,
    Status,
)

# Of a refused record so much is kept: enough to find the typo, not enough to fill a disk.
LARGEST_QUARANTINED_BYTES = 64 * 1024

NO_SUCH_EPISODE = "There is no episode with this id."

_encode = msgspec.json.Encoder().encode

FAULT_OF_STATUS: dict[Status, tuple[str, str]] = {
    "conflict": (
        "episode-conflict",
        "An episode with this id and other content is stored; correct it with PUT /episodes/{id}.",
    ),
    "deleted": ("episode-deleted", "The episode with this id was deleted; a new attempt needs a new id."),
}


class IngestRoutes:
    def __init__(
        self,
        acceptor: Acceptor,
        keyring: Keyring,
        buckets: Buckets,
        space: SpaceGuard,
        nudge: Callable[[str], None],
    ) -> None:
        self._acceptor = acceptor
        self._group = GroupCommit(acceptor, lambda: nudge("fold"))
        self._reader = Reader()
        self._keyring = keyring
        self._buckets = buckets
        self._lanes = Lanes()
        self._space = space
        self._nudge = nudge

    def routes(self) -> list[Route]:
        return [
            *(Route(path, _through_framework(post), methods=["POST"]) for path, post in self.posts().items()),
            Route("/api/v1/episodes/{episode_id}", self.put_episode, methods=["PUT"]),
            Route("/api/v1/episodes/{episode_id}", self.delete_episode, methods=["DELETE"]),
        ]

    def posts(self) -> dict[str, Handler]:
        """The calls that are worth answering directly."""
        return {"/api/v1/episodes": self.post_episode, "/api/v1/episodes/batch": self.post_batch}

    async def post_episode(self, scope: Scope, receive: Receive) -> RawAnswer:
        call = Call(scope, receive)
        holder = await self._authorize(call)
        media_type(call.first(b"content-type"), (JSON,))
        clock = read_clock(call.first(b"gapwatch-sent-at"))
        raw = await read_body(call, LARGEST_SINGLE)
        self._buckets.take(holder.key_id, 1)
        try:
            episode = self._reader.read_one(holder.project_id, raw, clock)
        except Refused as refused:
            raise await self._refuse_one(holder, raw, refused) from None
        status = await self._group.store(episode)
        if status in FAULT_OF_STATUS:
            code, message = FAULT_OF_STATUS[status]
            raise Conflict(message, errors=[Fault(pointer="/id", code=code, message=message)])
        body = {"id": episode.id, "status": status} | clock.told()
        return RawAnswer(201 if status == "accepted" else 200, _encode(body))

    async def post_batch(self, scope: Scope, receive: Receive) -> RawAnswer:
        call = Call(scope, receive)
        holder = await self._authorize(call)
        kind = media_type(call.first(b"content-type"), (JSON, NDJSON))
        clock = read_clock(call.first(b"gapwatch-sent-at"))
        strict = "handling=strict" in (call.first(b"prefer") or "").replace(" ", "").lower()
        async with self._lanes.of(holder.key_id):
            body = await read_body(call, LARGEST_BATCH)
            read = await self._reader.read_batch(holder.project_id, body, kind, clock)
            self._buckets.take(holder.key_id, read.sent)
            outcome = await self._store_batch(holder, read, lambda: split_batch(body, kind), strict=strict)
        if outcome["accepted"]:
            self._nudge("fold")
        return RawAnswer(200, _encode(outcome | clock.told()))

    async def put_episode(self, request: Request) -> Response:
        """Correct a stored episode: the whole record again, under the same id."""
        call = Call(request.scope, request.receive)
        holder = await self._authorize(call, "admin")
        media_type(call.first(b"content-type"), (JSON,))
        raw = await read_body(call, LARGEST_SINGLE)
        try:
            episode = self._reader.read_one(holder.project_id, raw, read_clock(None))
        except Refused as refused:
            raise _refusal(refused) from None
        if episode.id != request.path_params["episode_id"]:
            message = "The id of the record is not the one of the address."
            raise Invalid(message, errors=[Fault(pointer="/id", code="other-id", message=message)])
        change = await self._acceptor.replace(episode, f"key/{holder.prefix}")
        if change is None:
            raise NotFound(NO_SUCH_EPISODE)
        if change.changed:
            self._nudge("fold")
        status = "corrected" if change.changed else "unchanged"
        return _json({"id": episode.id, "status": status, "revision": change.revision}, 200)

    async def delete_episode(self, request: Request) -> Response:
        """Take an episode out of every number; the audit trail keeps what it was."""
        holder = await self._authorize(Call(request.scope, request.receive), "admin")
        episode_id = request.path_params["episode_id"]
        actor = f"key/{holder.prefix}"
        if "\0" in episode_id or not await self._acceptor.delete(holder.project_id, episode_id, actor):
            raise NotFound(NO_SUCH_EPISODE)
        self._nudge("fold")
        return Response(status_code=204)

    async def _authorize(self, call: Call, scope: str = "ingest") -> KeyHolder:
        holder = await self._keyring.authorize(call.all(b"authorization"), scope)
        self._buckets.check(holder.key_id)
        self._space.refuse_when_full()
        return holder

    async def _store_batch(
        self, holder: KeyHolder, read: Read, split: Callable[[], list[bytes]], *, strict: bool
    ) -> dict[str, Any]:
        faults = read.faults
        if strict and faults:
            raise _none_stored(read.sent, faults, "Nothing was stored: all or nothing was asked for.")
        rejections = [_rejection(holder, raw, found) for raw, found in read.kept]
        statuses = await self._acceptor.store(read.episodes, rejections, all_or_nothing=strict)
        conflicts = statuses.count("conflict") + statuses.count("deleted")
        if conflicts:
            items = split()
            conflicting = []
            for place, status in zip(read.places, statuses, strict=True):
                if status in FAULT_OF_STATUS:
                    code, message = FAULT_OF_STATUS[status]
                    found = Fault(pointer="/id", code=code, message=message)
                    faults.append(Fault(**found, index=place))
                    conflicting.append(_rejection(holder, items[place], [found]))
            faults.sort(key=lambda fault: fault["index"])
            if strict:
                raise _none_stored(read.sent, faults, "Nothing was stored: all or nothing was asked for.")
            await self._acceptor.store([], conflicting[:MOST_KEPT])
        if len(statuses) == conflicts:
            raise _none_stored(read.sent, faults, "None of the records could be stored.")
        return {
            "sent": read.sent,
            "accepted": statuses.count("accepted"),
            "duplicates": statuses.count("duplicate"),
            "conflicts": conflicts,
            "rejected": read.rejected,
            "errors": faults,
        }

    async def _refuse_one(self, holder: KeyHolder, raw: bytes, refused: Refused) -> GapwatchError:
        if not refused.is_malformed:
            await self._acceptor.store([], [_rejection(holder, raw, refused.faults)])
        return _refusal(refused)


def _refusal(refused: Refused) -> GapwatchError:
    if refused.is_malformed:
        return MalformedBody(refused.faults[0]["message"], errors=refused.faults)
    return Invalid("The episode was not stored; `errors` says why.", errors=refused.faults)


def _rejection(holder: KeyHolder, raw: bytes, faults: list[Fault]) -> Rejection:
    return Rejection(
        project_id=holder.project_id,
        key_prefix=holder.prefix,
        code=faults[0]["code"],
        errors=list(faults),
        record=raw[:LARGEST_QUARANTINED_BYTES],
    )


def _none_stored(sent: int, faults: list[Fault], detail: str) -> Invalid:
    return Invalid(f"{detail} {sent} sent; `errors` names each by its index.", errors=faults)


def _json(body: dict[str, Any], status: int) -> Response:
    return Response(_encode(body), status, media_type="application/json")


def _through_framework(post: Handler) -> Callable[[Request], Awaitable[Response]]:
    """The same call as a route of the application, which knows by it what the address takes."""

    async def endpoint(request: Request) -> Response:
        answer = await post(request.scope, request.receive)
        return Response(answer.body, answer.status, media_type=answer.media_type.decode())

    return endpoint
