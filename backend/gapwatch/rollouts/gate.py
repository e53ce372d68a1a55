"""The gate of a stage: each criterion of the frozen plan against the episodes that arrived since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gapwatch.rollouts.kinds import CriterionAnswer, judge_criterion
from gapwatch.rollouts.plan import next_stage, of_stage, union_words
from gapwatch.rollouts.stage_record import StageRecord
from gapwatch.statistics.gates.criteria import PASS, GateVerdict, gate_verdict


@dataclass(frozen=True)
class GateAnswer:
    """`looks`: the episodes after each of which it may be looked at; `union`: how the error is split."""

    from_stage: str
    to_stage: str | None
    verdict: GateVerdict
    criteria: tuple[CriterionAnswer, ...]
    looks: int
    since: datetime
    until: datetime
    alpha: float
    union: str
    method: str

    def as_json(self) -> dict[str, Any]:
        written = {name: value for name, value in vars(self).items() if name not in ("from_stage", "to_stage")}
        return {
            "from": self.from_stage,
            "to": self.to_stage,
            **written,
            "criteria": [_criterion_json(criterion) for criterion in self.criteria],
            "since": _utc(self.since),
            "until": _utc(self.until),
        }

    @property
    def missing(self) -> str:
        """What a pass still takes, in words."""
        return "; ".join(criterion.note for criterion in self.criteria if criterion.verdict != PASS)


METHOD = (
    "an e-process a criterion, over the episodes of the stage in the order of arrival since the plan was frozen; "
    "a drop against the upper limit of the frozen reference less the margin; intervals hold at every look"
)


def judge(record: StageRecord) -> GateAnswer:
    """The gate as it stands."""
    rollout, plan = record.rollout, record.plan
    assert rollout.frozen_at is not None  # noqa: S101
    criteria = tuple(judge_criterion(record, criterion) for criterion in of_stage(plan, rollout.stage))
    return GateAnswer(
        rollout.stage,
        next_stage(rollout.stage),
        gate_verdict([criterion.verdict for criterion in criteria]),
        criteria,
        len(record.rows),
        rollout.frozen_at,
        record.around.now,
        float(plan["alpha"]),
        union_words(plan, rollout.stage),
        METHOD,
    )


def _criterion_json(criterion: CriterionAnswer) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(criterion).items()}


def _utc(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
