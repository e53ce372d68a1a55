"""What may drive: the last known permit of a deployment, at once; refreshed in the background and kept on file.

An operational switch, not a safety function: it depends on a network, a server and a person. Emergency stops,
speed limits and light curtains belong into the robot's own safety controller.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gapwatch_client.ids import new_id
from gapwatch_client.transport import Answer, Transport, Unreachable

log = logging.getLogger("gapwatch_client")

WHEN_UNKNOWN = ("fallback", "keep")
WAIT_S = 25
# An answer that is older than this is not known any more: as long as three calls that wait.
KNOWN_FOR_S = 90.0
_PAUSES_S = (0.2, 0.5, 1.0, 2.0, 5.0)
SUFFIX = ".permit"


@dataclass(frozen=True)
class Permit:
    """`state` is go, fallback or stop; `policy` the version that may drive, None for nothing.

    `is_known`: the service confirmed it lately. Where it is not, `when_unknown` decided: `fallback` makes a go a
    fallback, `keep` leaves what was last known. A stop stays a stop.
    """

    state: str
    policy: str | None
    version: str | None
    stage: str | None
    decision: int | None
    decided_at: str | None
    is_known: bool
    age_s: float | None

    @property
    def may_drive(self) -> bool:
        return self.state != "stop"

    def allows(self, policy: str, version: str) -> bool:
        """Whether this policy version may drive."""
        return self.may_drive and (self.policy, self.version) == (policy, version)


class PermitWatch:
    """Follows the permit of one deployment. Reading it never waits; nothing here raises."""

    def __init__(
        self,
        transport: Transport,
        directory: Path,
        deployment: str,
        when_unknown: str,
        on_change: Callable[[Permit], None] | None,
        robot: str | None,
        known_for_s: float = KNOWN_FOR_S,
    ) -> None:
        if when_unknown not in WHEN_UNKNOWN:
            raise ValueError("when_unknown is 'fallback' or 'keep'")
        self._transport = transport
        self._deployment = deployment
        self._when_unknown = when_unknown
        self._callbacks: list[Callable[[Permit], None]] = []
        self._known_for_s = known_for_s
        name = hashlib.sha256(f"{transport.address} {deployment}".encode()).hexdigest()[:24]
        self._path = directory / f"{name}{SUFFIX}"
        kept = self._read()
        # Who it is to the service, over restarts: a robot that starts again is no second robot.
        self._client = str(kept.get("client") or new_id())
        self._name = f"{robot} {self._client[-8:]}" if robot else self._client
        self._tag = str(kept.get("tag") or "")
        self._body: dict[str, Any] = kept["body"] if isinstance(kept.get("body"), dict) else {}
        # By the clock of the machine, which a restart does not set back; by the steady one while it runs.
        self._confirmed_wall = float(kept["at"]) if isinstance(kept.get("at"), (int, float)) else None
        self._confirmed: float | None = None
        self._told: tuple[Any, ...] | None = None
        self._stopping = threading.Event()
        self._first = threading.Event()
        self._thread: threading.Thread | None = None
        self.on_change(on_change)
        self.start()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="gapwatch-permit", daemon=True)
        self._thread.start()

    def on_change(self, callback: Callable[[Permit], None] | None) -> None:
        if callback is not None and callback not in self._callbacks:
            self._callbacks.append(callback)

    def current(self) -> Permit:
        age_s = self._age_s()
        is_known = age_s is not None and age_s <= self._known_for_s
        body = self._body
        state = str(body.get("state") or "fallback")
        policy = body.get("policy") if isinstance(body.get("policy"), dict) else None
        if not is_known and state == "go" and (self._when_unknown == "fallback" or not body):
            # Which version that is, the robot's team knows: the service cannot be asked.
            state, policy = "fallback", None
        return Permit(
            state,
            None if policy is None else str(policy.get("name")),
            None if policy is None else str(policy.get("version")),
            body.get("stage"),
            body.get("decision"),
            body.get("decided_at"),
            is_known,
            age_s,
        )

    def wait_known(self, timeout_s: float) -> bool:
        """Wait for the first answer of the service since the start."""
        return self._first.wait(timeout_s)

    def stop(self) -> None:
        self._stopping.set()

    def _age_s(self) -> float | None:
        if self._confirmed is not None:
            return time.monotonic() - self._confirmed
        if self._confirmed_wall is None:
            return None
        # A clock that was set back says nothing.
        age = time.time() - self._confirmed_wall
        return age if age >= 0 else None

    def _run(self) -> None:
        failures = 0
        self._tell()
        while not self._stopping.is_set():
            try:
                pause_s = self._ask()
                failures = 0
            except Exception as error:
                if not isinstance(error, Unreachable) and not failures:
                    log.warning("permit: %s: %s", type(error).__name__, error)
                failures += 1
                pause_s = _PAUSES_S[min(failures, len(_PAUSES_S)) - 1] * random.uniform(0.7, 1.3)  # noqa: S311
            self._tell()
            self._stopping.wait(pause_s)
        self._transport.close()

    def _ask(self) -> float:
        """Ask once, waiting for news if something is known; return how long to pause."""
        path = f"/api/v1/deployments/{quote(self._deployment, safe='')}/permit"
        headers = {"Gapwatch-Client": self._name.encode("ascii", "replace").decode()}
        if self._tag:
            path += f"?wait={WAIT_S}"
            headers["If-None-Match"] = self._tag
        answer = self._transport.get(path, headers)
        if answer.status == 304 and self._tag:  # noqa: PLR2004
            self._confirm()
            return 0.0
        if answer.status == 200 and "state" in answer.body:  # noqa: PLR2004
            self._body = answer.body
            self._tag = answer.tag or ""
            self._confirm()
            return 0.0 if self._tag else 1.0
        raise _Refused(answer)

    def _confirm(self) -> None:
        self._confirmed, self._confirmed_wall = time.monotonic(), time.time()
        self._first.set()
        self._write()

    def _tell(self) -> None:
        """Call back when what a robot has to do is another thing: also when it is known no longer."""
        permit = self.current()
        said = (permit.state, permit.policy, permit.version, permit.stage, permit.decision, permit.is_known)
        if said == self._told:
            return
        is_first, self._told = self._told is None, said
        if is_first and not permit.is_known:
            return
        for callback in self._callbacks:
            try:
                callback(permit)
            except Exception:
                log.exception("on_change of the permit failed")

    def _read(self) -> dict[str, Any]:
        try:
            kept = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return kept if isinstance(kept, dict) else {}

    def _write(self) -> None:
        """Through another file, so that a power cut leaves the old one or the new one."""
        content = {"client": self._client, "tag": self._tag, "body": self._body, "at": self._confirmed_wall}
        fresh = self._path.with_suffix(f".{os.getpid()}.new-permit")
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh.write_text(json.dumps(content))
            fresh.replace(self._path)


class _Refused(Exception):
    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.explanation)
