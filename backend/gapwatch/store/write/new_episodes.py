"""What the store needs of an episode it has not stored yet: what it refers to, and its row in COPY format.

A row of `episodes` has two parts. The store packs the first, which the registry and the revision decide. The
caller packs the second, what the record says, in the order of RECORD_COLUMNS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from struct import Struct, pack
from typing import Protocol, cast

from gapwatch.record import LATER_FIELDS
from gapwatch.store.write.registry import (
    DeploymentKey,
    Description,
    Entry,
    KnownDeployment,
    Numbers,
    References,
    Table,
)

REFERENCE_COLUMNS: tuple[tuple[str, Table], ...] = (
    ("policy_id", "policies"),
    ("task_id", "tasks"),
    ("simulator_id", "simulators"),
    ("robot_id", "robots"),
    ("site_id", "sites"),
    ("condition_set_id", "condition_sets"),
    ("number_names_id", "name_sets"),
    ("signal_names_id", "name_sets"),
    ("metric_names_id", "name_sets"),
    ("contract_id", "contracts"),
)
STORE_COLUMNS = ("project_id", "revision", "deployment_id", *(column for column, _ in REFERENCE_COLUMNS))
RECORD_COLUMNS = (
    *("domain", "stage"),
    *("outcome", "session", "failure_phase", "failure_labels", "failure_category"),
    *("violations", "interventions", "overrides"),
    *("id", "started_at", "duration_s", "reward", "numbers", "signals", "metrics"),
    *("pair", "failure_note", "embedding", "links", "provenance"),
    *("content_hash", "clock_skew_s"),
    *(field.column for field in LATER_FIELDS),
)
COPY = f"COPY episodes ({', '.join((*STORE_COLUMNS, *RECORD_COLUMNS))}) FROM STDIN (FORMAT binary)"

_COLUMN_COUNT = pack(">h", len(STORE_COLUMNS) + len(RECORD_COLUMNS))
_int4 = Struct(">ii").pack
_NULL = pack(">i", -1)


@dataclass(slots=True, eq=False)
class EpisodeReferences:
    """Everything an episode refers to by number. Episodes that refer to the same share one object."""

    project_id: int
    references: References
    """Keys of the registry in the order of REFERENCE_COLUMNS; None where the record says nothing."""
    deployment: DeploymentKey | None
    stage: str | None
    row_start: bytes | None = field(init=False, default=None)
    """The store's part of a first revision's row, once everything is registered and committed."""
    description: Description | None = field(init=False, default=None)
    """What its episodes say of their deployment; known together with `row_start`."""

    deployment_id: int | None = field(init=False, default=None)
    """Of real episodes; known together with `row_start`."""

    def entries(self) -> Iterator[Entry]:
        """Yield what has to be in the registry."""
        for (_, table), key in zip(REFERENCE_COLUMNS, self.references, strict=True):
            if key is not None:
                yield self.project_id, table, key

    def settle(self, numbers: Numbers, deployment: KnownDeployment | None) -> None:
        """Keep the packed numbers. Only committed ones: others may vanish with their transaction."""
        self.deployment_id = deployment.id if deployment else None
        self.row_start = self.pack_row_start(numbers, deployment.id if deployment else None)
        self.description = self.describe(numbers)
        if deployment and deployment.description == self.description:
            self.description = deployment.description

    def pack_row_start(self, numbers: Numbers, deployment_id: int | None, revision: int = 1) -> bytes:
        values = (self.project_id, revision, deployment_id, *numbers)
        return _COLUMN_COUNT + b"".join(_NULL if value is None else _int4(4, value) for value in values)

    def describe(self, numbers: Numbers) -> Description:
        return Description(cast(int, numbers[0]), cast(int, numbers[1]), numbers[4], self.stage)


class NewEpisode(Protocol):
    """An episode as its caller packed it."""

    @property
    def id(self) -> str: ...

    @property
    def started_at(self) -> datetime: ...

    @property
    def content_hash(self) -> bytes:
        """Equal for equal content, however it was sent."""
        ...

    @property
    def context(self) -> EpisodeReferences: ...

    @property
    def is_measured(self) -> bool:
        """Whether it says a number: two attempts without any may well be told in the same words."""
        ...

    @property
    def content_without_id(self) -> bytes: ...

    def hash_as(self, episode_id: str) -> bytes:
        """The content hash of the same content under another id; empty where that cannot be told."""
        ...

    @property
    def key_id(self) -> int:
        """The key it was sent with; its new names are taken from that key's budget."""
        ...

    @property
    def row(self) -> tuple[bytes, ...]:
        """The values of RECORD_COLUMNS in binary COPY format."""
        ...
