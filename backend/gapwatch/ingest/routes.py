"""`POST /api/v1/episodes` and `/episodes/batch`: from the bytes of a request to a committed transaction.

Plain Starlette routes: the body is read, checked and packed by us, so a framework that parses it first
would only do the work twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gapwatch.access.keys import KeyHolder
from gapwatch.errors import Conflict, Fault, GapwatchError, Invalid, MalformedBody
from gapwatch.ingest.batch import split_batch
from gapwatch.ingest.body import JSON, LARGEST_BATCH, LARGEST_SINGLE, NDJSON, media_type, read_body
from gapwatch.ingest.checks import Refused, check_record, content_hash
from gapwatch.ingest.commits import GroupCommit
from gapwatch.ingest.keyring import Keyring
from gapwatch.store.accept import Acceptor, Rejection, Status
from gapwatch.store.arrivals import Arrival, make_arrival
from gapwatch.store.pool import Pool

LARGEST_QUARANTINED_BYTES = 64 * 1024
# Other requests get their turn after so many records of a batch.
YIELD_EVERY = 200

_encode = msgspec.json.Encoder().encode

FAULT_OF_STATUS: dict[Status, tuple[str, str]] = {
    "conflict": (
        "episode-conflict",
        "An episode with this id and other content is stored; correct it with PUT /episodes/{id}.",
    ),
    "deleted": ("episode-deleted", "The episode with this id was deleted; a new attempt needs a new id."),
}


class IngestRoutes:
    def __init__(self, pool: Pool, server_secret: bytes, nudge: Callable[[str], None]) -> None:
        self._acceptor = Acceptor(pool)
        self._group = GroupCommit(self._acceptor)
        self._keyring = Keyring(pool, server_secret)
        self._nudge = nudge

    def routes(self) -> list[Route]:
        return [
            Route("/api/v1/episodes", self.post_episode, methods=["POST"]),
            Route("/api/v1/episodes/batch", self.post_batch, methods=["POST"]),
        ]

    async def post_episode(self, request: Request) -> Response:
        holder = await self._authorize(request)
        media_type(request.headers, (JSON,))
        raw = await read_body(request, LARGEST_SINGLE)
        try:
            arrival = _arrive(holder, raw, datetime.now(UTC))
        except Refused as refused:
            raise await self._refuse_one(holder, raw, refused) from None
        status = await self._group.store(arrival)
        if status in FAULT_OF_STATUS:
            code, message = FAULT_OF_STATUS[status]
            raise Conflict(message, errors=[Fault(pointer="/id", code=code, message=message)])
        if status == "accepted":
            self._nudge("fold")
        body = {"id": arrival.id, "status": status}
        return _json(body, 201 if status == "accepted" else 200)

    async def post_batch(self, request: Request) -> Response:
        holder = await self._authorize(request)
        kind = media_type(request.headers, (JSON, NDJSON))
        body = await read_body(request, LARGEST_BATCH)
        strict = "handling=strict" in request.headers.get("prefer", "").replace(" ", "").lower()
        items = split_batch(body, kind)
        outcome = await self._store_batch(holder, items, strict=strict)
        if outcome["accepted"]:
            self._nudge("fold")
        return _json(outcome, 200)

    async def _authorize(self, request: Request) -> KeyHolder:
        return await self._keyring.authorize(request.headers.getlist("authorization"), "ingest")

    async def _store_batch(self, holder: KeyHolder, items: list[bytes], *, strict: bool) -> dict[str, Any]:
        now = datetime.now(UTC)
        arrivals: list[Arrival] = []
        places: list[int] = []
        faults: list[Fault] = []
        rejections: list[Rejection] = []
        for index, raw in enumerate(items):
            try:
                arrivals.append(_arrive(holder, raw, now))
                places.append(index)
            except Refused as refused:
                found = [Fault(**fault, index=index) for fault in refused.faults]
                faults += found
                rejections.append(_rejection(holder, raw, refused.faults))
            if index % YIELD_EVERY == YIELD_EVERY - 1:
                await asyncio.sleep(0)
        if strict and faults:
            raise _none_stored(len(items), faults, "Nothing was stored: all or nothing was asked for.")
        statuses = await self._acceptor.store(arrivals, rejections, all_or_nothing=strict)
        for place, status in zip(places, statuses, strict=True):
            if status in FAULT_OF_STATUS:
                code, message = FAULT_OF_STATUS[status]
                faults.append(Fault(pointer="/id", code=code, message=message, index=place))
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
            "rejected": len(rejections),
            "errors": faults,
        }

    async def _refuse_one(self, holder: KeyHolder, raw: bytes, refused: Refused) -> GapwatchError:
        if refused.is_malformed:
            return MalformedBody(refused.faults[0]["message"], errors=refused.faults)
        await self._acceptor.store([], [_rejection(holder, raw, refused.faults)])
        return Invalid("The episode was not stored; `errors` says why.", errors=refused.faults)


def _arrive(holder: KeyHolder, raw: bytes, now: datetime) -> Arrival:
    record = check_record(raw, now)
    return make_arrival(holder.project_id, record, content_hash(record))


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
