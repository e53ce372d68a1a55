"""`POST /api/v1/episodes` and `/episodes/batch`: from the bytes of a request to a committed transaction.

Plain Starlette routes: the body is read, checked and packed by us, so a framework that parses it first
would only do the work twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gapwatch.access.keys import KeyHolder
from gapwatch.errors import Conflict, Fault, GapwatchError, Invalid, MalformedBody, NotFound
from gapwatch.ingest.batch import split_batch
from gapwatch.ingest.body import JSON, LARGEST_BATCH, LARGEST_SINGLE, NDJSON, media_type, read_body
from gapwatch.ingest.checks import Refused, check_record, content_hash
from gapwatch.ingest.clocks import SenderClock, read_clock
from gapwatch.ingest.commits import GroupCommit
from gapwatch.ingest.rates import Buckets, Lanes
from gapwatch.ingest.space import SpaceGuard
from gapwatch.keyring import Keyring
from gapwatch.store.accept import Acceptor, Rejection, Status
from gapwatch.store.arrivals import Arrival, make_arrival

# What is kept of refused records: enough to find the typo, not enough to fill a disk.
LARGEST_QUARANTINED_BYTES = 64 * 1024
MOST_QUARANTINED = 100
MOST_FAULTS = 1000
# Other requests get their turn after so many records of a batch.
YIELD_EVERY = 200

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
        self._group = GroupCommit(acceptor)
        self._keyring = keyring
        self._buckets = buckets
        self._lanes = Lanes()
        self._space = space
        self._nudge = nudge

    def routes(self) -> list[Route]:
        return [
            Route("/api/v1/episodes", self.post_episode, methods=["POST"]),
            Route("/api/v1/episodes/batch", self.post_batch, methods=["POST"]),
            Route("/api/v1/episodes/{episode_id}", self.put_episode, methods=["PUT"]),
            Route("/api/v1/episodes/{episode_id}", self.delete_episode, methods=["DELETE"]),
        ]

    async def post_episode(self, request: Request) -> Response:
        holder = await self._authorize(request)
        media_type(request.headers, (JSON,))
        clock = read_clock(request.headers.get("gapwatch-sent-at"))
        raw = await read_body(request, LARGEST_SINGLE)
        self._buckets.take(holder.key_id, 1)
        try:
            arrival = _arrive(holder, raw, clock)
        except Refused as refused:
            raise await self._refuse_one(holder, raw, refused) from None
        status = await self._group.store(arrival)
        if status in FAULT_OF_STATUS:
            code, message = FAULT_OF_STATUS[status]
            raise Conflict(message, errors=[Fault(pointer="/id", code=code, message=message)])
        if status == "accepted":
            self._nudge("fold")
        body = {"id": arrival.id, "status": status} | clock.told()
        return _json(body, 201 if status == "accepted" else 200)

    async def post_batch(self, request: Request) -> Response:
        holder = await self._authorize(request)
        kind = media_type(request.headers, (JSON, NDJSON))
        clock = read_clock(request.headers.get("gapwatch-sent-at"))
        strict = "handling=strict" in request.headers.get("prefer", "").replace(" ", "").lower()
        async with self._lanes.of(holder.key_id):
            body = await read_body(request, LARGEST_BATCH)
            items = split_batch(body, kind)
            self._buckets.take(holder.key_id, len(items))
            outcome = await self._store_batch(holder, items, clock, strict=strict)
        if outcome["accepted"]:
            self._nudge("fold")
        return _json(outcome | clock.told(), 200)

    async def put_episode(self, request: Request) -> Response:
        """Correct a stored episode: the whole record again, under the same id."""
        holder = await self._authorize(request, "admin")
        media_type(request.headers, (JSON,))
        raw = await read_body(request, LARGEST_SINGLE)
        try:
            arrival = _arrive(holder, raw, read_clock(None))
        except Refused as refused:
            raise _refusal(refused) from None
        if arrival.id != request.path_params["episode_id"]:
            message = "The id of the record is not the one of the address."
            raise Invalid(message, errors=[Fault(pointer="/id", code="other-id", message=message)])
        change = await self._acceptor.replace(arrival, f"key/{holder.prefix}")
        if change is None:
            raise NotFound(NO_SUCH_EPISODE)
        if change.changed:
            self._nudge("fold")
        status = "corrected" if change.changed else "unchanged"
        return _json({"id": arrival.id, "status": status, "revision": change.revision}, 200)

    async def delete_episode(self, request: Request) -> Response:
        """Take an episode out of every number; the audit trail keeps what it was."""
        holder = await self._authorize(request, "admin")
        episode_id = request.path_params["episode_id"]
        actor = f"key/{holder.prefix}"
        if "\0" in episode_id or not await self._acceptor.delete(holder.project_id, episode_id, actor):
            raise NotFound(NO_SUCH_EPISODE)
        self._nudge("fold")
        return Response(status_code=204)

    async def _authorize(self, request: Request, scope: str = "ingest") -> KeyHolder:
        holder = await self._keyring.authorize(request.headers.getlist("authorization"), scope)
        self._buckets.check(holder.key_id)
        self._space.refuse_when_full()
        return holder

    async def _store_batch(
        self, holder: KeyHolder, items: list[bytes], clock: SenderClock, *, strict: bool
    ) -> dict[str, Any]:
        arrivals: list[Arrival] = []
        places: list[int] = []
        faults: list[Fault] = []
        rejections: list[Rejection] = []
        rejected = 0
        for index, raw in enumerate(items):
            try:
                arrivals.append(_arrive(holder, raw, clock))
                places.append(index)
            except Refused as refused:
                # Every refused record is named; beyond a thousand faults, with its first reason only.
                told = refused.faults if len(faults) < MOST_FAULTS else refused.faults[:1]
                faults += [Fault(**fault, index=index) for fault in told]
                rejected += 1
                if len(rejections) < MOST_QUARANTINED:
                    rejections.append(_rejection(holder, raw, refused.faults))
                # Explaining takes time; others get their turn.
                await asyncio.sleep(0)
            if index % YIELD_EVERY == YIELD_EVERY - 1:
                await asyncio.sleep(0)
        if strict and faults:
            raise _none_stored(len(items), faults, "Nothing was stored: all or nothing was asked for.")
        statuses = await self._acceptor.store(arrivals, rejections, all_or_nothing=strict)
        conflicting = []
        for place, status in zip(places, statuses, strict=True):
            if status in FAULT_OF_STATUS:
                code, message = FAULT_OF_STATUS[status]
                found = Fault(pointer="/id", code=code, message=message)
                faults.append(Fault(**found, index=place))
                conflicting.append(_rejection(holder, items[place], [found]))
        if conflicting and not strict:
            await self._acceptor.store([], conflicting[:MOST_QUARANTINED])
        faults.sort(key=lambda fault: fault["index"])
        conflicts = statuses.count("conflict") + statuses.count("deleted")
        if strict and conflicts:
            raise _none_stored(len(items), faults, "Nothing was stored: all or nothing was asked for.")
        stored = len(statuses) - conflicts
        if stored == 0:
            raise _none_stored(len(items), faults, "None of the records could be stored.")
        return {
            "sent": len(items),
            "accepted": statuses.count("accepted"),
            "duplicates": statuses.count("duplicate"),
            "conflicts": conflicts,
            "rejected": rejected,
            "errors": faults,
        }

    async def _refuse_one(self, holder: KeyHolder, raw: bytes, refused: Refused) -> GapwatchError:
        if not refused.is_malformed:
            await self._acceptor.store([], [_rejection(holder, raw, refused.faults)])
        return _refusal(refused)


def _arrive(holder: KeyHolder, raw: bytes, clock: SenderClock) -> Arrival:
    record = check_record(raw, clock.now)
    return make_arrival(holder.project_id, record, content_hash(record), clock.skew_s)


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
