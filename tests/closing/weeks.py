"""Episodes around a fix: days of a deployment with given success, the same however often they are made."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from answers.lab import real

# A Wednesday at noon, far enough back that four weeks after it are over.
FIXED_AT = datetime(2026, 9, 2, 12, tzinfo=UTC)


def day(number: int) -> datetime:
    """Days from the one the fix was told of."""
    return FIXED_AT + timedelta(days=number)


def attempts_on(
    days: Iterable[int], each: int, failures: int, version: str = "1.4.0", **fields: Any
) -> list[dict[str, Any]]:
    """`failures` of `each` episodes on every day, spread evenly; a failure is a slip unless said otherwise."""
    records = []
    failure = fields.pop("failure", {"phase": "lift", "labels": ["slip"]})
    for number in days:
        for attempt in range(each):
            failed = (attempt * failures) // each != ((attempt + 1) * failures) // each
            records.append(
                real(
                    "failure" if failed else "success",
                    at=day(number) + timedelta(minutes=attempt),
                    policy={"name": "bin-pick", "version": version},
                    failure=failure if failed else None,
                    **fields,
                )
            )
    return records


GRASPS = {
    "kind": "fine_tuning",
    "category": "contact_dynamics",
    "from_version": "1.4.1",
    "robot_hours": 12,
    "demonstrations": 200,
    "expected_points": 15,
}
