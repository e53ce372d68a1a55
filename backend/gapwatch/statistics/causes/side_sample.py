"""What is known of the episodes of one side: its failures with their evidence, and some of its successes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gapwatch.statistics.causes.failed_episodes import Array, FailedBatch, Level, LevelCodes


@dataclass(frozen=True)
class SuccessBatch:
    """Successes as columns, `size` of them, written as in `FailedBatch`."""

    size: int
    conditions: Mapping[str, Sequence[Level]] = field(default_factory=dict)
    signals: Mapping[str, Array] = field(default_factory=dict)
    sessions: Sequence[str | None] = ()
    codes: LevelCodes = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return self.size


@dataclass(frozen=True)
class SideSample:
    """`n` judged episodes of which `failures` failed, and what was read of both kinds.

    `failed.counts` add up to `failures`; `succeeded` are all successes or a sample of them.
    """

    n: int
    failures: int
    failed: FailedBatch
    succeeded: SuccessBatch
