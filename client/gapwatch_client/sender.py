"""The background threads: one keeps the spool synced and within its size, another sends it."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from http import HTTPStatus

from gapwatch_client.backlog import BATCH_RECORDS, Backlog, Batch, SendingLock
from gapwatch_client.delivery import Delivery, Postponed, deliver
from gapwatch_client.overflow import Overflow
from gapwatch_client.refused import RefusedRecords
from gapwatch_client.robot_status import StatusBoard
from gapwatch_client.spool import Spool
from gapwatch_client.state import State
from gapwatch_client.transport import Transport, Unreachable, pack

log = logging.getLogger("gapwatch_client")

SYNC_EVERY_S = 0.5
# How often to look for other processes' segments; ours are announced.
LOOK_EVERY_S = 1.0
SHORTEST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0
# The longest wait a server may ask for; a wrong date must not silence a robot for a year.
LONGEST_ASKED_S = 3600.0
_NO_KEY = HTTPStatus.UNAUTHORIZED
# A wrong key may be mended, and a limit passes.
MAY_PASS = {_NO_KEY, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
# A pause in which a control loop's thread gets the interpreter.
_BREATH_S = 0.0002


class SpoolKeeper:
    """Syncs the spool, moves overflow back to the disk, drops the oldest episodes beyond the size limit."""

    def __init__(
        self, spool: Spool, backlog: Backlog, overflow: Overflow, lock: SendingLock, state: State, most_bytes: int
    ) -> None:
        self._spool = spool
        self._backlog = backlog
        self._overflow = overflow
        self._lock = lock
        self._state = state
        self._most_bytes = most_bytes

    def run(self, stopping: threading.Event) -> None:
        while not stopping.wait(SYNC_EVERY_S):
            self.run_once()

    def run_once(self) -> None:
        try:
            self._overflow.move_to(self._spool)
            self._spool.sync()
            if self._lock.is_held:
                dropped = self._backlog.drop_oldest(self._most_bytes)
                if dropped:
                    self._state.count(dropped_sim=dropped["sim"], dropped_real=dropped["real"])
                    log.warning("the spool is full; dropped the oldest episodes: %s", dict(dropped))
                self._state.save()
        except Exception:
            log.exception("the spool could not be kept in order; trying again")


class Sender:
    def __init__(
        self,
        backlog: Backlog,
        overflow: Overflow,
        lock: SendingLock,
        refused: RefusedRecords,
        state: State,
        statuses: StatusBoard,
        transport: Transport,
        linger_s: float,
    ) -> None:
        self._statuses = statuses
        self._backlog = backlog
        self._overflow = overflow
        self._lock = lock
        self._refused = refused
        self._state = state
        self._transport = transport
        self._linger_s = linger_s
        self._fresh = 0
        self._failures = 0
        self._not_before = 0.0
        self._asked = False
        self._prepared: tuple[Batch, bytes] | None = None
        # When nothing was left to send: whatever waits is younger.
        self._empty_at = 0.0
        # A robot that said something is unknown to the service: its episodes have to go first.
        self._episodes_first = False
        self.wake = threading.Event()
        self.hurry = threading.Event()

    def announce(self) -> None:
        """Note that an episode was written. Called from the control loop: only sets flags."""
        self._fresh += 1
        self.wake.set()
        if self._fresh >= BATCH_RECORDS:
            self.hurry.set()

    def send_now(self) -> None:
        """Skip the linger and our own back-off; a wait that the server asked for is kept."""
        if not self._asked:
            self._not_before = 0.0
        self.hurry.set()
        self.wake.set()

    def run(self, stopping: threading.Event) -> None:
        while True:
            self.wake.wait(LOOK_EVERY_S)
            is_last = stopping.is_set()
            self.wake.clear()
            if not is_last:
                self.hurry.wait(self._linger_s)
            self.hurry.clear()
            self._fresh = 0
            try:
                # Also what other processes said: one of them holds the lock for all.
                self._statuses.is_fresh = True
                while time.monotonic() >= self._not_before and self.send_batch():
                    pass
            except Exception:
                log.exception("sending failed; trying again")
                self._back_off(None)
            if is_last:
                break
        self._transport.close()

    def send_batch(self) -> bool:
        """Send one batch. Return True if there may be more to send now."""
        has_lock = self._lock.try_acquire()
        if self._statuses.is_fresh and not self._episodes_first and not self._send_statuses():
            return False
        if not has_lock:
            return self._send_overflow()
        batch, packed = self._prepared or (self._gather(None), None)
        self._prepared = None
        if not batch.payloads and not batch.reached:
            self._backlog.release()
            self._empty_at = time.time()
            if self._episodes_first:
                self._episodes_first = False
                if not self._send_statuses():
                    return False
            return self._send_overflow()
        is_answered = not batch.payloads
        try:
            if batch.payloads:
                self._transport.spool_age_s = self._age_of(batch)
                delivery = self._deliver(batch.payloads, packed, lambda: self._prepare(batch))
                is_answered = delivery is not None
        finally:
            if not is_answered:
                # The prepared batch comes after this one and must not be sent and recorded before it.
                self._prepared = None
                self._backlog.release()
        if not is_answered:
            return False
        self._backlog.settle(batch)
        if batch.damaged:
            self._state.count(damaged=batch.damaged)
            log.warning("%d damaged lines of the spool were passed over", batch.damaged)
        return True

    def _age_of(self, batch: Batch) -> float | None:
        age_s = self._backlog.age_s(batch)
        return None if age_s is None else min(age_s, max(0.0, time.time() - self._empty_at))

    def _send_statuses(self) -> bool:
        """Tell what robots said of themselves. Return False if the service is away; it is told later then."""
        for statement in self._statuses.waiting(of_all_processes=self._lock.is_held):
            try:
                answer = self._transport.put_status(statement.body())
            except Unreachable as error:
                self._back_off(Postponed(f"no answer ({error})"))
                return False
            refused = HTTPStatus.BAD_REQUEST <= answer.status < HTTPStatus.INTERNAL_SERVER_ERROR
            if answer.status == HTTPStatus.OK and "applied" in answer.body:
                self._statuses.settle(statement)
            elif answer.status == HTTPStatus.NOT_FOUND and self._backlog.pending_bytes():
                self._episodes_first = True
            elif refused and answer.status not in MAY_PASS and answer.is_from_gapwatch:
                self._statuses.settle(statement)
                self._statuses.complain("status", f"the service refused it: {answer.explanation}")
            else:
                is_wrong_key = answer.status == _NO_KEY
                self._back_off(Postponed(answer.explanation, answer.retry_after_s, needs_attention=is_wrong_key))
                return False
        return True

    def _gather(self, after: Batch | None) -> Batch:
        return self._backlog.gather(breathe=lambda: time.sleep(_BREATH_S), after=after)

    def _prepare(self, on_its_way: Batch) -> None:
        """Read and pack the next batch while the server stores this one."""
        try:
            batch = self._gather(on_its_way)
            self._prepared = (batch, pack(batch.payloads)) if batch.payloads else None
        except OSError:
            self._prepared = None

    def _send_overflow(self) -> bool:
        """Send episodes from memory while the disk is full."""
        payloads = self._overflow.oldest(BATCH_RECORDS)
        self._transport.spool_age_s = None
        if not payloads or self._deliver(payloads) is None:
            return False
        self._overflow.forget(payloads)
        return True

    def _deliver(
        self, payloads: list[bytes], packed: bytes | None = None, meanwhile: Callable[[], None] | None = None
    ) -> Delivery | None:
        try:
            delivery = deliver(self._transport, payloads, packed, meanwhile)
        except Postponed as reason:
            self._back_off(reason)
            return None
        if delivery.refused:
            self._refused.add(delivery.refused)
            first = delivery.refused[0][1][0]
            log.warning(
                "%d records were refused and are in %s; the first for %s: %s",
                *(len(delivery.refused), self._refused.path, first.get("pointer"), first.get("message")),
            )
        self._failures = 0
        self._asked = False
        self._state.count(
            accepted=delivery.accepted, duplicates=delivery.duplicates, refused=len(delivery.refused)
        )
        if delivery.clock_skew_s is not None and delivery.clock_skew_s != self._state.read().get("clock_skew_s"):
            log.warning("this machine's clock is off by %+.0f s; the server corrects it", delivery.clock_skew_s)
        self._state.note(last_error=None, last_sent_at=_now(), clock_skew_s=delivery.clock_skew_s)
        return delivery

    def _back_off(self, reason: Postponed | None) -> None:
        """Wait as long as the server asks, otherwise longer each time; with jitter, so that clients spread out."""
        self._failures += 1
        asked_s = reason.wait_s if reason else None
        self._asked = asked_s is not None
        if asked_s is not None:
            wait_s = min(asked_s, LONGEST_ASKED_S) * random.uniform(1.0, 1.1)  # noqa: S311 - no secret
        else:
            longest = min(LONGEST_WAIT_S, SHORTEST_WAIT_S * 2 ** min(self._failures, 20))
            wait_s = longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
        self._not_before = time.monotonic() + wait_s
        if reason:
            level = logging.WARNING if reason.needs_attention or self._failures == 1 else logging.DEBUG
            log.log(level, "not sent, kept in the spool, trying again in %.1f s: %s", wait_s, reason)
            self._state.note(last_error=str(reason), last_error_at=_now())


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
