"""`Gapwatch`: created once by a robot or simulator, then asked for episodes."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import logging
import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any

from gapwatch_client.backlog import Backlog, SendingLock
from gapwatch_client.encoding import LARGEST_RECORD_BYTES, encode
from gapwatch_client.episode import Episode
from gapwatch_client.fields import KNOWN, record_of, versioned
from gapwatch_client.fix import tell_fix
from gapwatch_client.ids import new_id
from gapwatch_client.overflow import Overflow
from gapwatch_client.permit import WAIT_S, Permit, PermitWatch
from gapwatch_client.ranges import Ranges, parameters_of, ranges_path
from gapwatch_client.refused import RefusedRecords
from gapwatch_client.robot_status import StatusBoard
from gapwatch_client.sender import Sender, SpoolKeeper
from gapwatch_client.spool import SEGMENT_BYTES, Spool
from gapwatch_client.state import State
from gapwatch_client.transport import ANSWER_WITHIN_S, Transport

log = logging.getLogger("gapwatch_client")

MAX_SPOOL_BYTES = 1024**3
# How long an exiting process waits for the network. Unsent episodes stay in the spool.
CLOSE_WITHIN_S = 2.0
# A training script waits so long for an answer.
RANGES_WITHIN_S = 30.0


class Gapwatch:
    """Records episodes into a spool directory and sends them from there, in the background.

    Only this constructor and `permit` raise, and only for a wrong argument. The network, the server and the disk
    never do. Keyword arguments beyond the named ones are defaults for `episode`.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        spool: str | os.PathLike[str] | None = None,
        *,
        max_spool_bytes: int = MAX_SPOOL_BYTES,
        linger_s: float = 1.0,
        timeout_s: float = 30.0,
        **defaults: Any,
    ) -> None:
        url = url or os.environ.get("GAPWATCH_URL", "")
        key = key or os.environ.get("GAPWATCH_KEY", "")
        transport = Transport(url, key, timeout_s)
        unknown = sorted(set(defaults) - KNOWN)
        if unknown:
            raise TypeError(f"Unknown fields of an episode: {', '.join(unknown)}")
        self.spool_dir = Path(spool or os.environ.get("GAPWATCH_SPOOL") or default_spool(url, key))
        self._defaults = defaults
        self._complaints: Counter[str] = Counter()
        self._spool = Spool(self.spool_dir, max(64 * 1024, min(SEGMENT_BYTES, max_spool_bytes // 16)))
        self._backlog = Backlog(self.spool_dir)
        self._overflow = Overflow()
        self._lock = SendingLock(self.spool_dir)
        self._refused = RefusedRecords(self.spool_dir)
        self._state = State(self.spool_dir)
        self._statuses = StatusBoard(self.spool_dir, self._complain)
        self._keeper = SpoolKeeper(
            self._spool, self._backlog, self._overflow, self._lock, self._state, max_spool_bytes
        )
        self._transport = transport
        self._linger_s = linger_s
        self._starting = threading.Lock()
        self._running_in: int | None = None
        self._closed = False
        self._permits: dict[str, PermitWatch] = {}
        with contextlib.suppress(OSError):
            self.spool_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._backlog.tidy()
        self._start()
        atexit.register(self.close)
        os.register_at_fork(after_in_child=_forked(weakref.ref(self)))

    def episode(self, **fields: Any) -> Episode:
        """Begin an attempt: `domain=, task=, policy=, version=, deployment=, robot=, site=, simulator=,
        stage=, session=, pair=, contract=, conditions=…`. Fields given to the constructor are defaults.

        `policy` is a name (with `version`), `name@version` or a mapping; `simulator` likewise. A wrong field is
        logged and left out. Records that the server refuses go to the dead-letter file, with its reasons.
        """
        return Episode(record_of(self._defaults | fields, self._complain), self.send, self._complain)

    def send(self, record: dict[str, Any]) -> None:
        """Spool a whole record in the format of the API. It is in the spool when this returns."""
        try:
            if "id" not in record:
                record = {"id": new_id(), **record}
            payload = encode(record)
            if len(payload) > LARGEST_RECORD_BYTES:
                reason = {"pointer": "", "code": "record-too-large", "message": "A record may have at most 1 MiB."}
                self._refused.add([(payload, [reason])])
                self._complain("send", "a record is larger than 1 MiB")
                return
            domain = "sim" if record.get("domain") == "sim" else "real"
            try:
                self._spool.append(domain, payload)
            except OSError as error:
                self._complain("spool", f"cannot be written, episodes wait in memory: {error}")
                dropped = self._overflow.add(domain, payload)
                if dropped:
                    self._state.count(**{f"dropped_{dropped}": 1})
            if self._running_in != os.getpid():
                self._start()
            self._sender.announce()
        except Exception as error:
            self._complain("send", f"{type(error).__name__}: {error}")

    def parked(
        self,
        robot: str | None = None,
        *,
        until: datetime | timedelta | str | None = None,
        reason: str | None = None,
        deployment: str | None = None,
    ) -> None:
        """Say that the robot rests, so that nobody misses it: until a time, or until its next episode.

        Told when the network allows, the newest word of each robot only. Without a name it is the constructor's
        robot, or else every robot of the deployment that episodes do not name.
        """
        self._say("parked", robot, deployment, until, reason)

    def working(
        self, robot: str | None = None, *, reason: str | None = None, deployment: str | None = None
    ) -> None:
        """Say that the robot works, and is missed when nothing comes from it."""
        self._say("working", robot, deployment, None, reason)

    def ranges(
        self,
        ranges: Ranges | str | os.PathLike[str],
        simulator: str | tuple[str, str] | dict[str, str] | None = None,
        version: str | None = None,
    ) -> bool:
        """Declare what a training run randomised, for a simulator (the constructor's by default).

        `{"friction": (0.4, 0.8), "mass": {"low": -1, "high": 3, "operation": "add", "nominal": 6.9}}`, or the path
        of an `env.yaml` of Isaac Lab or mjlab, parameters of `mujoco.sysid` or bounds of PACE. Sent at once, in
        place of what was declared before; whether the service took it. What went wrong is logged.
        """
        try:
            named = simulator if simulator is not None else self._defaults.get("simulator")
            if not named:
                raise ValueError("whose ranges? say simulator=")
            given = version if version is not None else self._defaults.get("simulator_version")
            path = ranges_path(versioned(named, given))
            transport = self._transport.another(RANGES_WITHIN_S)
            try:
                answer = transport.put(path, {"parameters": parameters_of(ranges)})
            finally:
                transport.close()
            if answer.status == HTTPStatus.OK:
                return True
            faults = "; ".join(str(fault.get("message")) for fault in answer.body.get("errors", ())[:3])
            self._complain("ranges", f"{answer.explanation} {faults}".strip())
        except Exception as error:
            self._complain("ranges", f"{type(error).__name__}: {error}")
        return False

    def permit(
        self,
        deployment: str | None = None,
        *,
        when_unknown: str = "fallback",
        on_change: Callable[[Permit], None] | None = None,
        first_within_s: float = 0.0,
    ) -> Permit:
        """What may drive at a deployment (the constructor's by default): the last known answer, at once.

        The first call begins to follow it in the background: a decision arrives within a second or two, and is
        kept on file over restarts. `when_unknown` is the fail-safe for when the service has not confirmed it for
        90 s, `fallback` or `keep`; that of the first call stands. `on_change` is called from another thread with
        every other permit. `first_within_s` lets the very first call wait that long for the service. An
        operational switch, not a safety function.
        """
        name = str(deployment or self._defaults.get("deployment") or "")
        if not name:
            raise ValueError("whose permit? say deployment=")
        with self._starting:
            watch = self._permits.get(name)
            if watch is None:
                robot = self._defaults.get("robot")
                watch = self._permits[name] = PermitWatch(
                    self._transport.another(WAIT_S + 10.0),
                    self.spool_dir,
                    name,
                    when_unknown,
                    on_change,
                    None if robot is None else str(robot),
                )
            else:
                watch.on_change(on_change)
        if first_within_s > 0:
            watch.wait_known(first_within_s)
        return watch.current()

    def fix(
        self,
        title: str,
        *,
        kind: str,
        category: str,
        deployment: str | None = None,
        robots: list[str] | None = None,
        conditions: dict[str, Any] | None = None,
        from_version: str | None = None,
        robot_hours: float | None = None,
        demonstrations: int | None = None,
        expected_points: float | None = None,
        at: datetime | str | None = None,
    ) -> int:
        """Write a fix down before its outcome is known, and return the id of its event.

        For a training pipeline or a person, not for a control loop: it is sent at once, and raises `FixRefused`
        with the fields that are wrong, or `Unreachable`. The service then measures what it closed (`/fixes`).
        Without a deployment it is the constructor's, or else of the whole project.
        """
        fields = {
            "deployment": deployment or self._defaults.get("deployment"),
            "kind": kind,
            "category": category,
            "robots": robots,
            "conditions": conditions,
            "from_version": from_version,
            "robot_hours": robot_hours,
            "demonstrations": demonstrations,
            "expected_points": expected_points,
        }
        transport = self._transport.another(ANSWER_WITHIN_S)
        try:
            return tell_fix(transport, title, at, fields)
        finally:
            transport.close()

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until everything in the spool is answered, whoever wrote it. Return False on timeout."""
        deadline = time.monotonic() + timeout_s
        if self._running_in != os.getpid():
            self._start()
        self._sender.send_now()
        while True:
            if self._is_all_sent():
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
            self._sender.hurry.set()
            self._sender.wake.set()

    def close(self, timeout_s: float = CLOSE_WITHIN_S) -> bool:
        """Sync the spool and try to send it within the timeout. The rest goes out at the next start."""
        if self._closed or self._running_in != os.getpid():
            return True
        self._closed = True
        for watch in self._permits.values():
            watch.stop()
        atexit.unregister(self.close)
        deadline = time.monotonic() + timeout_s
        self._keeper.run_once()
        self._stopping.set()
        self._sender.send_now()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._keeper.run_once()
        self._spool.close()
        everything_sent = self._is_all_sent()
        if not any(thread.is_alive() for thread in self._threads):
            self._backlog.gather()  # removes segments that are sent completely
            self._lock.release()
        return everything_sent

    def status(self) -> dict[str, Any]:
        """What is pending, sent, refused and dropped, and the last error. Not for a control loop."""
        pending = self._backlog.pending()
        oldest_s = self._backlog.oldest_s()
        return {
            "spool": str(self.spool_dir),
            "pending": {"real": pending["real"], "sim": pending["sim"], "in_memory": len(self._overflow)},
            "pending_bytes": self._backlog.pending_bytes(),
            **({"pending_statuses": len(self._statuses)} if len(self._statuses) else {}),
            **({} if oldest_s is None else {"oldest_pending_s": round(oldest_s, 1)}),
            **self._state.read(),
            **({"complaints": dict(self._complaints)} if self._complaints else {}),
        }

    def __enter__(self) -> Gapwatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _say(self, status: str, robot: Any, deployment: Any, until: Any, reason: Any) -> None:
        try:
            if robot is None and deployment is None:
                robot, deployment = self._defaults.get("robot"), self._defaults.get("deployment")
            self._statuses.say(status, robot, deployment, until, reason)
            if self._running_in != os.getpid():
                self._start()
            self._sender.wake.set()
            self._sender.hurry.set()
        except Exception as error:
            self._complain("status", f"{type(error).__name__}: {error}")

    def _is_all_sent(self) -> bool:
        return not len(self._overflow) and not self._backlog.pending_bytes() and not len(self._statuses)

    def _start(self) -> None:
        with self._starting:
            if self._closed or self._running_in == os.getpid():
                return
            self._stopping = threading.Event()
            self._sender = Sender(
                self._backlog,
                self._overflow,
                self._lock,
                self._refused,
                self._state,
                self._statuses,
                self._transport,
                self._linger_s,
            )
            self._threads = [
                threading.Thread(target=target.run, args=(self._stopping,), name=name, daemon=True)
                for name, target in (("gapwatch-send", self._sender), ("gapwatch-keep", self._keeper))
            ]
            for thread in self._threads:
                thread.start()
            self._running_in = os.getpid()

    def _forget_after_fork(self) -> None:
        """A child has no threads, and the files are the parent's; it makes its own when it first sends."""
        self._starting = threading.Lock()
        # A child asks anew; the file tells it what the parent knew.
        self._permits = {}
        self._spool.forget_after_fork()
        self._overflow.forget_after_fork()
        self._lock.release()
        self._state.forget_after_fork()
        self._statuses.forget_after_fork()
        self._transport.close()

    def _complain(self, subject: str, text: str) -> None:
        """Count every time, log the first time: a loop at a kilohertz must not fill a log."""
        self._complaints[subject] += 1
        if self._complaints[subject] == 1:
            log.warning("%s: %s (further ones are only counted)", subject, text)


def default_spool(url: str, key: str) -> Path:
    """One directory per service and key: episodes of one project are never sent to another."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "gapwatch" / f"spool-{hashlib.sha256(f'{url} {key}'.encode()).hexdigest()[:12]}"


def _forked(client: weakref.ref[Gapwatch]) -> Any:
    def in_child() -> None:
        alive = client()
        if alive is not None:
            alive._forget_after_fork()

    return in_child
