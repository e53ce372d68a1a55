"""Every question that a deployment can be asked. A new one is a line here."""

from __future__ import annotations

from gapwatch.answers import (
    contract,
    drop,
    failures,
    ledger,
    onset,
    prediction,
    ranges,
    robots_sites,
    shadow,
    signals,
    slices,
    trend,
)
from gapwatch.answers.answer_kind import AnswerKind

DEPLOYMENT_ANSWERS: tuple[AnswerKind, ...] = (
    drop.KIND,
    ledger.KIND,
    slices.KIND,
    signals.KIND,
    trend.KIND,
    failures.KIND,
    robots_sites.KIND,
    contract.KIND,
    onset.KIND,
    prediction.KIND,
    shadow.KIND,
    ranges.KIND,
)
TABLES = {kind.table.name: kind for kind in DEPLOYMENT_ANSWERS if kind.table is not None}
