"""What the gate of a deployment's rollout will have after a plan: its own criteria, run ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapwatch.rollouts.kinds import CriterionAnswer, bet_on, judge_criterion
from gapwatch.rollouts.plan import TESTED, alpha_of, of_stage
from gapwatch.rollouts.stage_record import StageRecord, cells_of, read_record
from gapwatch.statistics.gates.criteria import PASS
from gapwatch.statistics.gates.limits import REFERENCE_SHARE
from gapwatch.statistics.plans.gate_forecast import RUNS, EvidenceSoFar, forecast_evidence
from gapwatch.store.core.database import Connection
from gapwatch.store.rollout.rollouts import find_rollout

# With fewer in the stage, the deployment's episodes before it tell what to expect.
FEWEST_IN_STAGE = 20


@dataclass(frozen=True)
class GateAhead:
    """The record of the stage as it stands, to be run on. `planned_cells`: the conditions that the gate plans."""

    record: StageRecord

    @property
    def _cells_criterion(self) -> dict[str, Any] | None:
        criteria = of_stage(self.record.plan, self.record.rollout.stage)
        return next((criterion for criterion in criteria if criterion["kind"] == "cells_covered"), None)

    @property
    def planned_cells(self) -> Mapping[str, Sequence[str]] | None:
        criterion = self._cells_criterion
        return None if criterion is None else criterion["conditions"]

    @property
    def needed(self) -> int:
        return int((self._cells_criterion or {}).get("episodes") or 1)

    @property
    def seen(self) -> dict[tuple[str, ...], int]:
        criterion = self._cells_criterion
        if criterion is None:
            return {}
        return {tuple(levels.values()): n for levels, n in cells_of(self.record, criterion)}

    def forecast(
        self, further: int, cells: Sequence[Mapping[str, Any]], lately: tuple[int, int]
    ) -> tuple[list[dict[str, Any]], float]:
        """Each criterion after so many further episodes, and the chance that all of them are passed then.

        `lately`: successes and episodes of the deployment, which tell what to expect of a stage that just began.
        """
        passes = np.ones(RUNS, dtype=bool)
        evidence = []
        for at, criterion in enumerate(of_stage(self.record.plan, self.record.rollout.stage)):
            now = judge_criterion(self.record, criterion)
            found: dict[str, Any] = {"id": now.id, "kind": now.kind, "wanted": now.wanted, "now": now.verdict}
            found["e_value"] = now.e_value
            if now.kind in TESTED:
                ahead = self._tested(criterion, further, at, lately, is_passed=now.verdict == PASS)
                passes &= ahead.pop("passes")
                found |= ahead
            else:
                will = now.verdict == PASS or self._is_counted_up(now, further, cells)
                passes &= will
                found |= {"reaches": float(will), "e_range": None, "note": None if will else now.note}
            evidence.append(found)
        return evidence, float(np.mean(passes))

    def _tested(
        self, criterion: dict[str, Any], further: int, at: int, lately: tuple[int, int], *, is_passed: bool
    ) -> dict[str, Any]:
        # A drop's boundaries follow each episode's conditions; what is to come meets them in the mix so far.
        good, bets, effect, _ = bet_on(self.record, criterion)
        if bets is None:
            note = "the reference is too small for this margin"
            return {"passes": np.zeros(RUNS, dtype=bool), "reaches": 0.0, "e_range": None, "note": note}
        alpha = alpha_of(self.record.plan, self.record.rollout.stage)
        if criterion["kind"] == "max_drop":
            alpha *= 1 - REFERENCE_SHARE
        total, n = float(good.sum()), len(good)
        is_success = criterion["kind"] == "max_drop" or criterion.get("measure") == "success"
        expected = lately if is_success and n < FEWEST_IN_STAGE and lately[1] > n else (total, n)
        so_far = EvidenceSoFar(total, n, expected[0], expected[1], effect)
        # Another seed for each, so that criteria are not lucky together.
        ahead = forecast_evidence(bets, so_far, further, alpha, has_passed=is_passed, seed=at + 1)
        return {
            "passes": ahead.passes,
            "reaches": round(ahead.chance, 3),
            "e_range": [float(f"{end:.4g}") for end in ahead.e_range],
            "needs": round(1 / alpha, 1),
            "note": None,
        }

    def _is_counted_up(self, now: CriterionAnswer, further: int, cells: Sequence[Mapping[str, Any]]) -> bool:
        """What is only counted: episodes come with the plan, cells with its cells, days and people do not."""
        if now.kind in ("min_episodes", "drift_free"):
            return now.missing is not None and further >= now.missing
        if now.kind == "cells_covered" and now.missing is not None:
            seen = self.seen
            covered: int = sum(
                seen.get(tuple(cell["conditions"].values()), 0)
                < self.needed
                <= seen.get(tuple(cell["conditions"].values()), 0) + cell["episodes"]
                for cell in cells
            )
            return covered >= now.missing
        return False


def read_gate_ahead(connection: Connection, project_id: int, slug: str) -> GateAhead | None:
    """None where nobody began a rollout with a plan."""
    rollout = find_rollout(connection, project_id, slug)
    if rollout is None or rollout.plan is None:
        return None
    return GateAhead(read_record(connection, project_id, rollout))
