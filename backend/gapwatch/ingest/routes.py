"""`POST /api/v1/episodes` and `/episodes/batch`: from the bytes of a request to a committed transaction.

Posts are answered without the framework (`fast_answers.py`): we read, check and pack the body ourselves, so only
the framework's cost would be left.
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
from gapwatch.ingest.checks import RecordRefused
from gapwatch.ingest.clock_skew import read_clock
from gapwatch.ingest.commits import GroupCommit
from gapwatch.ingest.disk_space import DiskSpaceGuard
from gapwatch.ingest.rate_limits import BatchSlots, RateLimits
from gapwatch.ingest.reading import MOST_KEPT, ParsedBatch, Reader
from gapwatch.ingest.spool_age import SPOOL_AGE, SpoolAges
from gapwatch.keyring import Keyring
from gapwatch.store.write.accept import (
    Acceptor,
    Rejection,
    Status,
    TooManyNames,
)

# Kept of a refused record: enough to find the typo, not enough to fill a disk.
LARGEST_QUARANTINED_BYTES = 64 * 1024

NO_SUCH_EPISODE = "There is no episode with this id."

_encode = msgspec.json.Encoder().encode

CONFLICTS: dict[Status, tuple[str, str]] = {
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
        rate_limits: RateLimits,
        disk_space: DiskSpaceGuard,
        nudge: Callable[[str], None],
    ) -> None:
        self._acceptor = acceptor
        self._group = GroupCommit(acceptor, lambda: nudge("fold"))
        self._reader = Reader()
        self._keyring = keyring
        self._rate_limits = rate_limits
        self._batch_slots = BatchSlots()
        self._disk_space = disk_space
        self._nudge = nudge
        self._spool_ages = SpoolAges(acceptor)

    def routes(self) -> list[Route]:
        return [
            *(Route(path, _through_framework(post), methods=["POST"]) for path, post in self.posts().items()),
            Route("/api/v1/episodes/{episode_id}", self.put_episode, methods=["PUT"]),
            Route("/api/v1/episodes/{episode_id}", self.delete_episode, methods=["DELETE"]),
        ]

    def posts(self) -> dict[str, Handler]:
        """Return the calls that are answered without the framework."""
        return {"/api/v1/episodes": self.post_episode, "/api/v1/episodes/batch": self.post_batch}

    async def post_episode(self, scope: Scope, receive: Receive) -> RawAnswer:
        call = Call(scope, receive)
        holder = await self._authorize(call)
        media_type(call.first(b"content-type"), (JSON,))
        clock = read_clock(call.first(b"gapwatch-sent-at"))
        raw = await read_body(call, LARGEST_SINGLE)
        self._rate_limits.take(holder.key, 1)
        try:
            episode = self._reader.read_one(holder.project_id, raw, clock)
        except RecordRefused as refused:
            raise await self._refuse_one(holder, raw, refused) from None
        episode.key_id = holder.key_id
        status = await self._group.store(episode)
        spool_age = call.first(SPOOL_AGE)
        if spool_age is not None:
            await self._spool_ages.note(holder.key, spool_age, [episode])
        fault = _fault_of(status)
        if fault is not None:
            if status in CONFLICTS:
                raise Conflict(fault["message"], errors=[fault])
            await self._acceptor.store([], [_rejection(holder, raw, [fault])])
            raise Invalid("The episode was not stored; `errors` says why.", errors=[fault])
        is_new = status in ("accepted", "repeated")
        body = {"id": episode.id, "status": "accepted" if is_new else status} | clock.as_answer()
        if status == "repeated":
            body |= _repeated(1)
        return RawAnswer(201 if is_new else 200, _encode(body))

    async def post_batch(self, scope: Scope, receive: Receive) -> RawAnswer:
        call = Call(scope, receive)
        holder = await self._authorize(call)
        kind = media_type(call.first(b"content-type"), (JSON, NDJSON))
        clock = read_clock(call.first(b"gapwatch-sent-at"))
        strict = "handling=strict" in (call.first(b"prefer") or "").replace(" ", "").lower()
        async with self._batch_slots.of(holder.key):
            body = await read_body(call, LARGEST_BATCH)
            batch = await self._reader.read_batch(holder.project_id, body, kind, clock)
            self._rate_limits.take(holder.key, batch.sent)
            outcome = await self._store_batch(holder, batch, lambda: split_batch(body, kind), strict=strict)
        if outcome["accepted"]:
            self._nudge("fold")
        spool_age = call.first(SPOOL_AGE)
        if spool_age is not None:
            await self._spool_ages.note(holder.key, spool_age, batch.episodes)
        return RawAnswer(200, _encode(outcome | clock.as_answer()))

    async def put_episode(self, request: Request) -> Response:
        """Correct a stored episode: the whole record again, under the same id."""
        call = Call(request.scope, request.receive)
        holder = await self._authorize(call, "admin")
        media_type(call.first(b"content-type"), (JSON,))
        raw = await read_body(call, LARGEST_SINGLE)
        try:
            episode = self._reader.read_one(holder.project_id, raw, read_clock(None))
        except RecordRefused as refused:
            raise _refusal(refused) from None
        if episode.id != request.path_params["episode_id"]:
            message = "The id of the record is not the one of the address."
            raise Invalid(message, errors=[Fault(pointer="/id", code="other-id", message=message)])
        episode.key_id = holder.key_id
        try:
            correction = await self._acceptor.replace(episode, f"key/{holder.prefix}")
        except TooManyNames as error:
            fault = _too_many_names(str(error))
            raise Invalid("The correction was not stored; `errors` says why.", errors=[fault]) from None
        if correction is None:
            raise NotFound(NO_SUCH_EPISODE)
        if correction.changed:
            self._nudge("fold")
        status = "corrected" if correction.changed else "unchanged"
        return _json({"id": episode.id, "status": status, "revision": correction.revision}, 200)

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
        holder = await self._keyring.authorize(call.all(b"authorization"), scope, call.client)
        self._rate_limits.check(holder.key)
        self._disk_space.refuse_when_full()
        return holder

    async def _store_batch(
        self, holder: KeyHolder, batch: ParsedBatch, split: Callable[[], list[bytes]], *, strict: bool
    ) -> dict[str, Any]:
        faults = batch.faults
        if strict and faults:
            raise _none_stored(batch.sent, faults, "Nothing was stored: all or nothing was asked for.")
        rejections = [_rejection(holder, raw, reasons) for raw, reasons in batch.kept]
        for episode in batch.episodes:
            episode.key_id = holder.key_id
        statuses = await self._acceptor.store(batch.episodes, rejections, all_or_nothing=strict)
        conflicts = statuses.count("conflict") + statuses.count("deleted")
        repeated = statuses.count("repeated")
        accepted = statuses.count("accepted") + repeated
        unstored = len(statuses) - accepted - statuses.count("duplicate")
        if unstored:
            items = split()
            kept = []
            for index, status in zip(batch.indexes, statuses, strict=True):
                fault = _fault_of(status)
                if fault is not None:
                    faults.append(Fault(**fault, index=index))
                    kept.append(_rejection(holder, items[index], [fault]))
            faults.sort(key=lambda fault: fault["index"])
            if strict:
                raise _none_stored(batch.sent, faults, "Nothing was stored: all or nothing was asked for.")
            await self._acceptor.store([], kept[:MOST_KEPT])
        if len(statuses) == unstored:
            raise _none_stored(batch.sent, faults, "None of the records could be stored.")
        return {
            "sent": batch.sent,
            "accepted": accepted,
            "duplicates": statuses.count("duplicate"),
            "conflicts": conflicts,
            "rejected": batch.rejected + unstored - conflicts,
            "errors": faults,
        } | (_repeated(repeated) if repeated else {})

    async def _refuse_one(self, holder: KeyHolder, raw: bytes, refused: RecordRefused) -> GapwatchError:
        if not refused.is_malformed:
            await self._acceptor.store([], [_rejection(holder, raw, refused.faults)])
        return _refusal(refused)


def _fault_of(status: Status) -> Fault | None:
    """What is wrong with an episode that was not stored."""
    if status in ("accepted", "repeated", "duplicate"):
        return None
    if status in CONFLICTS:
        code, message = CONFLICTS[status]
        return Fault(pointer="/id", code=code, message=message)
    return _too_many_names(status)


def _repeated(n: int) -> dict[str, Any]:
    """What is said of episodes that were stored although they repeat others."""
    what = "1 episode is" if n == 1 else f"{n} episodes are"
    message = (
        f"{what} the same as another one in everything but the id. They are stored and counted: if they were sent "
        "twice, delete them, or keep the id of an attempt when it is sent again."
    )
    return {"repeated": n, "warnings": [{"code": "same-content", "message": message}]}


def _too_many_names(field: str) -> Fault:
    message = (
        f"This key has brought as many new names in `{field}` as it may in a day. Names that are known are still "
        "taken. If these are meant, raise GAPWATCH_NEW_NAMES_A_DAY, or send them again tomorrow."
    )
    return Fault(pointer=f"/{field}", code="too-many-names", message=message)


def _refusal(refused: RecordRefused) -> GapwatchError:
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
    """Wrap a call as a route, so that the application knows its address and method."""

    async def endpoint(request: Request) -> Response:
        answer = await post(request.scope, request.receive)
        return Response(answer.body, answer.status, media_type=answer.media_type.decode())

    return endpoint
