"""What one episode is held against: the project's words for failures, and the distributions of its deployment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gapwatch.statistics.attribution import Attribution, FailedEpisode, attribute
from gapwatch.store import options
from gapwatch.store.access import Transaction
from gapwatch.taxonomy import Taxonomy


@dataclass(frozen=True)
class SignalRank:
    """One signal, and the share of sim and of real episodes at or below it."""

    name: str
    value: float
    sim: float | None
    real: float | None
    categories: tuple[str, ...]


@dataclass(frozen=True)
class Held:
    # None for an attempt that did not fail.
    attribution: Attribution | None
    signals: list[SignalRank]
    compared_with: str | None


def held_against(transaction: Transaction, project_id: int, record: dict[str, Any]) -> Held:
    taxonomy = Taxonomy(options.project_options(transaction, project_id).get("taxonomy"))
    failure = record.get("failure", {})
    said = FailedEpisode(failure.get("category"), failure.get("labels") or (), failure.get("phase"))
    signals = [
        SignalRank(name, value, None, None, taxonomy.categories_of("signals", name))
        for name, value in record.get("signals", {}).items()
    ]
    failed = record["outcome"] == "failure"
    return Held(attribute(said, taxonomy) if failed else None, signals, None)
