"""What became of a batch: stored, refused record by record, or to be sent again later."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol

from gapwatch_client.transport import Answer, Unreachable, pack

_OK, _INVALID = HTTPStatus.OK, HTTPStatus.UNPROCESSABLE_ENTITY
# The request was too large or unreadable, perhaps because of one record in it.
_SPLIT = {400, 413, _INVALID}
# Statuses that mean "later". Any other below 500 is a wrong key or address, which somebody may fix meanwhile.
_LATER = {408, 429}


class Poster(Protocol):
    def post(self, body: bytes, meanwhile: Callable[[], None] | None = None) -> Answer: ...


class Postponed(Exception):
    """Try again later: nothing is wrong with the records. `wait_s` is the wait the server asked for, if any."""

    def __init__(self, reason: str, wait_s: float | None = None, *, needs_attention: bool = False) -> None:
        super().__init__(reason)
        self.wait_s = wait_s
        self.needs_attention = needs_attention


@dataclass
class Delivery:
    """How the records of a batch were answered; each is in exactly one of the counts."""

    accepted: int = 0
    duplicates: int = 0
    refused: list[tuple[bytes, list[dict[str, Any]]]] = field(default_factory=list)
    clock_skew_s: float | None = None


def deliver(
    transport: Poster,
    payloads: list[bytes],
    packed: bytes | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> Delivery:
    """Send a batch until each record is stored or refused, or raise Postponed."""
    delivery = Delivery()
    rest = [payloads]
    while rest:
        batch = rest.pop()
        try:
            answer = transport.post(packed or pack(batch), meanwhile)
            packed = meanwhile = None
        except Unreachable as error:
            raise Postponed(f"no answer ({error})") from error
        if answer.status == _OK and _accounts_for(answer, len(batch)):
            delivery.accepted += answer.body["accepted"]
            delivery.duplicates += answer.body["duplicates"]
            _collect_refused(delivery, batch, answer)
        elif answer.status == _INVALID and _names_all(answer, len(batch)):
            _collect_refused(delivery, batch, answer)
        elif answer.status in _SPLIT and answer.is_from_gapwatch:
            if len(batch) == 1:
                delivery.refused.append((batch[0], [_reason(answer)]))
            else:
                middle = len(batch) // 2
                rest += [batch[middle:], batch[:middle]]
        else:
            wrong = answer.status < HTTPStatus.INTERNAL_SERVER_ERROR and answer.status not in _LATER
            raise Postponed(answer.explanation, answer.retry_after_s, needs_attention=wrong)
    return delivery


def _accounts_for(answer: Answer, sent: int) -> bool:
    try:
        counts = [answer.body[name] for name in ("accepted", "duplicates", "conflicts", "rejected")]
        return bool(answer.body["sent"] == sent == sum(counts))
    except (KeyError, TypeError):
        return False


def _names_all(answer: Answer, sent: int) -> bool:
    return {fault.get("index") for fault in answer.body.get("errors") or []} == set(range(sent))


def _collect_refused(delivery: Delivery, batch: list[bytes], answer: Answer) -> None:
    faults = defaultdict(list)
    for fault in answer.body.get("errors") or []:
        faults[fault.get("index")].append({name: fault[name] for name in fault if name != "index"})
    delivery.refused += [(batch[index], reasons) for index, reasons in sorted(faults.items())]
    skew_s = answer.body.get("clock_skew_s")
    if skew_s is not None:
        delivery.clock_skew_s = skew_s


def _reason(answer: Answer) -> dict[str, Any]:
    for fault in answer.body.get("errors") or []:
        return {name: fault[name] for name in fault if name != "index"}
    return {"pointer": "", "code": str(answer.body["type"]).rsplit("/", 1)[-1], "message": answer.explanation}
