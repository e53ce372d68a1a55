"""Rows of a fold, made without a database: a day of November 2026, two policies, what the numbers stand for."""

from __future__ import annotations

import random
from collections.abc import Sequence
from struct import pack
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from gapwatch.tally.rows import Names, Row
from gapwatch.tally.sums import DAY_S

DAY = 1_793_577_600  # 2026-11-02
HOUR_S = 3600
steady = settings(deadline=None, derandomize=True, database=None)

NAMES = Names(
    condition_sets={1: {"lighting": "dim", "gripper": True}, 2: {"lighting": "bright"}, 3: {}},
    name_sets={1: ("mass_kg", "clutter"), 2: ("force_n",), 3: ("force_n", "slip_mm"), 4: ("energy_j", "reward")},
    pooled={},
)


def packed(*values: float) -> bytes:
    """A float8[] as Postgres sends it: dimensions, nulls, type, length, first index; then each with its length."""
    return pack(">iiiii", 1, 0, 701, len(values), 1) + b"".join(pack(">id", 8, value) for value in values)


def row(**fields: Any) -> Row:
    """A successful real episode that measured nothing, at nine o'clock."""
    plain = dict.fromkeys(Row._fields) | {
        "sign": 1,
        "domain": "real",
        "policy_id": 1,
        "task_id": 2,
        "source_id": 3,
        "hour": DAY + 9 * HOUR_S,
        "outcome": "success",
    }
    return Row(**(plain | fields))


def varied(number: int) -> Row:
    """One of many different episodes: three days around the turn of a month, two policies of each side."""
    chance = random.Random(number)

    def numbers(sets: Sequence[int | None]) -> tuple[int | None, bytes | None]:
        chosen = chance.choice([None, *sets])
        if chosen is None:
            return None, None
        sizes = (0.0, -1.5, 0.1, 3.0, 7.25, 1e-310, -1e200, chance.gauss(0, 50), chance.random())
        return chosen, packed(*(chance.choice(sizes) for _ in NAMES.name_sets[chosen]))

    number_names_id, conditions = numbers([1])
    signal_names_id, signals = numbers([2, 3])
    metric_names_id, metrics = numbers([4])
    return row(
        domain=chance.choice(["real", "sim"]),
        policy_id=chance.choice([1, 5]),
        hour=DAY - 2 * DAY_S + chance.randrange(72) * HOUR_S,
        robot_id=chance.choice([None, 1, 2]),
        site_id=chance.choice([None, 1]),
        stage=chance.choice([None, "full"]),
        condition_set_id=chance.choice([None, 1, 2, 3]),
        number_names_id=number_names_id,
        numbers=conditions,
        outcome=chance.choice(["success", "failure", "aborted", "abandoned"]),
        phase=chance.choice([None, "lift"]),
        labels=chance.choice([None, [], ["slip"], ["slip", "dark"], ["dark", "slip"]]),
        category=chance.choice([None, "visual"]),
        session=chance.choice([None, "a", "b"]),
        contract_id=chance.choice([None, 8]),
        duration_s=chance.choice([None, chance.expovariate(0.1)]),
        reward=chance.choice([None, 0.0, chance.gauss(0, 1)]),
        signal_names_id=signal_names_id,
        signals=signals,
        metric_names_id=metric_names_id,
        metrics=metrics,
    )


rows = st.integers(0, 9999).map(varied)
