"""One attempt while it runs: what the control loop calls. Nothing here raises or blocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from types import TracebackType
from typing import Any

from gapwatch_client.encoding import finite
from gapwatch_client.shadow import ShadowTally, executor
from gapwatch_client.summaries import Summary

OUTCOMES = ("success", "failure", "aborted", "abandoned")
_LONGEST_NOTE = 1000


class Episode:
    """Created by `Gapwatch.episode`. Ends with the `with` block, or with `end()`.

    It is a success unless `fail`, `abort` or `abandon` is called; an exception that leaves the block makes it
    aborted.
    """

    def __init__(
        self,
        fields: dict[str, Any],
        hand_over: Callable[[dict[str, Any]], None],
        complain: Callable[[str, str], None],
    ) -> None:
        self._record = fields
        self._hand_over = hand_over
        self._complain = complain
        self._summaries: dict[str, Summary] = {}
        self._outcome = fields.pop("outcome", None)
        self._ended = False
        self._tally_of_shadow: ShadowTally | None = None
        self._began = time.monotonic()
        fields.setdefault("started_at", datetime.now(timezone.utc).isoformat())

    @property
    def id(self) -> str:
        return str(self._record["id"])

    def condition(self, name: str, value: str | float | bool) -> None:
        """What the world was like, as a word, a number or a boolean: lighting, object, clutter."""
        kept: str | float | bool | None = value if isinstance(value, (str, bool)) else finite(value)
        self._keep("conditions", name, kept)

    def signal(self, name: str, value: float) -> None:
        """A number that summarises a measurement."""
        self._keep("signals", name, finite(value))

    def metric(self, name: str, value: float) -> None:
        """A number that the attempt is judged by."""
        self._keep("metrics", name, finite(value))

    def observe(self, name: str, value: float) -> None:
        """One sample of a stream, as often as you like; its peak, p95, rms and mean become signals at the end."""
        try:
            self._summaries[name].add(float(value))
        except KeyError:
            try:
                self._summaries[name] = Summary()
                self._summaries[name].add(float(value))
            except Exception as error:
                self._complain("observe", f"{type(error).__name__}: {error}")
        except Exception as error:
            self._complain("observe", f"{type(error).__name__}: {error}")

    def reward(self, value: float) -> None:
        self._record["reward"] = finite(value)

    def duration(self, seconds: float) -> None:
        """How long it took, where that is not wall-clock time: in a simulator."""
        self._record["duration_s"] = finite(seconds)

    def violation(self, count: int = 1) -> None:
        """A safety limit was broken."""
        self._tally("violations", count)

    def intervention(self, count: int = 1) -> None:
        """A person stepped in."""
        self._tally("interventions", count)

    def override(self, count: int = 1) -> None:
        """A safety controller took over."""
        self._tally("overrides", count)

    def link(self, name: str, url: str) -> None:
        """Where the video or the recording is; https only."""
        self._keep("links", name, url)

    def provenance(self, name: str, value: str | float | bool) -> None:
        """Where the episode comes from: seed, git_sha, calibration_id."""
        self._keep("provenance", name, value)

    def embedding(self, values: Iterable[float]) -> None:
        """What the policy saw, as a vector; used for the distance between sim and real."""
        try:
            self._record["embedding"] = [float(value) for value in values]
        except Exception as error:
            self._complain("embedding", f"{type(error).__name__}: {error}")

    def shadow(
        self,
        executed_by: Any,
        *,
        tolerance: Any = None,
        critical_s: float | None = None,
        **counts: Any,
    ) -> None:
        """Something else drives, and the policy of the episode only proposes: its outcome is not the policy's.

        `executed_by` is `human`, `other` or a policy as `name@version`. Then either `proposed` in every step, with
        a `tolerance` in the units of the action and limits from the contract, or counts of your own: `steps=,
        agree=, infeasible=, near_limit=, out_of_distribution=, critical={…}`. `critical_s`: steps within so many
        seconds of `contact()` are counted apart too.
        """
        try:
            self._record["stage"] = "shadow"
            self._record["shadow"] = {"executed_by": executor(executed_by), **counts}
            self._tally_of_shadow = ShadowTally(self._record.get("contract"), tolerance, critical_s)
            if tolerance is None and not counts:
                self._complain("shadow", "without tolerance= nothing says whether the candidate agreed")
        except Exception as error:
            self._complain("shadow", f"{type(error).__name__}: {error}")

    def proposed(
        self,
        action: Any,
        executed: Any,
        *,
        out_of_distribution: bool | None = None,
        critical: bool | None = None,
    ) -> None:
        """One step in shadow: what the candidate would have done, and what was done instead.

        Numbers, or a mapping by the names of the contract's actions. `critical` marks a step of the critical
        interval where you know it better than by `contact()`.
        """
        try:
            if self._tally_of_shadow is None:
                self._complain("proposed", "call shadow(executed_by=…) first")
                return
            self._tally_of_shadow.add(action, executed, out_of_distribution=out_of_distribution, critical=critical)
        except Exception as error:
            self._complain("proposed", f"{type(error).__name__}: {error}")

    def contact(self) -> None:
        """The first contact is now; only the first call counts."""
        if self._tally_of_shadow is not None:
            self._tally_of_shadow.contact()

    def succeed(self) -> None:
        self._outcome = "success"

    def fail(
        self,
        phase: str | None = None,
        labels: Iterable[str] = (),
        category: str | None = None,
        note: str | None = None,
    ) -> None:
        """The attempt failed; optionally in which phase and how."""
        self._outcome = "failure"
        self._explain(phase, labels, category, note)

    def abort(self, reason: str | None = None, phase: str | None = None) -> None:
        """Stopped before it could be judged: counted separately, in no success rate."""
        self._outcome = "aborted"
        self._explain(phase, (), None, reason)

    def abandon(self, reason: str | None = None) -> None:
        """Given up by whoever ran it; also counted separately."""
        self._outcome = "abandoned"
        self._explain(None, (), None, reason)

    def end(self, outcome: str | None = None) -> None:
        """Write the episode to the spool. A second call does nothing."""
        if self._ended:
            return
        self._ended = True
        try:
            self._record["outcome"] = outcome or self._outcome or "success"
            self._record.setdefault("duration_s", time.monotonic() - self._began)
            self._write_summaries()
            if self._tally_of_shadow is not None:
                self._record["shadow"] = {**self._tally_of_shadow.as_field(), **self._record["shadow"]}
            self._hand_over(self._record)
        except Exception as error:
            self._complain("end", f"{type(error).__name__}: {error}")

    def __enter__(self) -> Episode:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort(f"{kind.__name__}: {error}"[:_LONGEST_NOTE])
        self.end()

    def _keep(self, section: str, name: str, value: Any) -> None:
        try:
            if value is None:
                self._complain(section, f"{name} has a value that cannot be kept and was left out")
            else:
                self._record.setdefault(section, {})[str(name)] = value
        except Exception as error:
            self._complain(section, f"{type(error).__name__}: {error}")

    def _tally(self, name: str, count: int) -> None:
        try:
            safety = self._record.setdefault("safety", {})
            safety[name] = safety.get(name, 0) + int(count)
        except Exception as error:
            self._complain(name, f"{type(error).__name__}: {error}")

    def _explain(self, phase: str | None, labels: Iterable[str], category: str | None, note: str | None) -> None:
        try:
            failure: dict[str, Any] = self._record.setdefault("failure", {})
            details: Mapping[str, Any] = {"phase": phase, "category": category, "note": note}
            failure.update({name: str(value) for name, value in details.items() if value is not None})
            added = [labels] if isinstance(labels, str) else list(labels)
            if added:
                failure["labels"] = [*failure.get("labels", ()), *map(str, added)]
            if not failure:
                del self._record["failure"]
        except Exception as error:
            self._complain("failure", f"{type(error).__name__}: {error}")

    def _write_summaries(self) -> None:
        if not self._summaries:
            return
        signals: dict[str, float] = self._record.setdefault("signals", {})
        for name, summary in self._summaries.items():
            if summary.refused:
                self._complain("observe", f"{summary.refused} values of {name} were no finite numbers")
            for signal, value in summary.signals(name).items():
                number = finite(value)
                if number is not None:
                    # A signal set by the caller wins.
                    signals.setdefault(signal, number)
