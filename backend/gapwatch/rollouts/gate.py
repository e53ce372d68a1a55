"""The gate of a stage: each criterion of the frozen plan against the episodes that arrived since."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapwatch import notation
from gapwatch.rollouts.plan import TESTED, WATCH, alpha_of, next_stage, of_stage, union_words, wanted_words
from gapwatch.statistics.causes.contracts import compare_contracts
from gapwatch.statistics.estimates.rates import FEWEST_SESSIONS, SessionSums
from gapwatch.statistics.gates.criteria import (
    FAIL,
    OPEN,
    PASS,
    GateVerdict,
    Reference,
    Standing,
    clean_standing,
    count_standing,
    drop_bets,
    drop_boundary,
    drop_standing,
    gate_verdict,
    rate_standing,
)
from gapwatch.statistics.gates.evidence import Bets, bets_on_any, clean_bets, highest_since_any_start
from gapwatch.statistics.gates.limits import clean_upper
from gapwatch.store.core.database import Connection
from gapwatch.store.rollout.evidence import (
    MOST_EPISODES,
    Evidenced,
    EvidenceRow,
    StageContracts,
    Surrounding,
    condition_levels,
    stage_contracts,
    stage_episodes,
    surrounding,
)
from gapwatch.store.rollout.rollouts import Rollout

MOST_CHECKPOINTS = 40
Outcomes = NDArray[np.float64]


@dataclass(frozen=True)
class CriterionAnswer:
    """`missing` is what a pass still takes, in `unit`; None where nothing is missing or more would not help.

    `unknown`: episodes that do not say; they count as bad for a pass and not at all for a fail.
    """

    id: str
    kind: str
    claim: str
    wanted: str
    measured: float | None
    interval: tuple[float, float] | None
    n: int
    e_value: float | None
    alpha: float | None
    verdict: GateVerdict
    missing: int | None
    unit: str
    note: str
    unknown: int = 0
    passed_at: int | None = None
    design_effect: float = 1.0
    breached: bool = False


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


@dataclass(frozen=True)
class StageRecord:
    """Everything that a gate is judged by, as one read found it."""

    rollout: Rollout
    rows: Sequence[EvidenceRow]
    around: Surrounding
    contracts: StageContracts
    levels: dict[int, dict[str, Any]]
    most: int = MOST_EPISODES

    @property
    def plan(self) -> dict[str, Any]:
        assert self.rollout.plan is not None  # noqa: S101 - only rollouts with a plan are read
        return self.rollout.plan


METHOD = (
    "an e-process a criterion, over the episodes of the stage in the order of arrival since the plan was frozen; "
    "a drop against the upper limit of the frozen reference less the margin; intervals hold at every look"
)


def meant_by(rollout: Rollout, until: datetime | None = None, last_seq: int | None = None) -> Evidenced:
    assert rollout.frozen_at is not None  # noqa: S101 - only rollouts with a plan are asked
    policy = rollout.policy
    return Evidenced(
        rollout.deployment_id, rollout.stage, policy.name, policy.version, rollout.frozen_at, until, last_seq
    )


def read_record(
    connection: Connection, project_id: int, rollout: Rollout, most: int = MOST_EPISODES
) -> StageRecord:
    meant = replace(meant_by(rollout), most=most)
    rows = stage_episodes(connection, project_id, meant)
    sets = {row.condition_set_id for row in rows if row.condition_set_id is not None}
    return StageRecord(
        rollout,
        rows,
        surrounding(connection, project_id, meant),
        stage_contracts(connection, project_id, meant),
        condition_levels(connection, project_id, sets) if sets else {},
        most,
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


def judge_criterion(record: StageRecord, criterion: dict[str, Any]) -> CriterionAnswer:
    alpha = alpha_of(record.plan, record.rollout.stage) if criterion["kind"] in TESTED else None
    return _KINDS[criterion["kind"]](record, criterion, alpha or 0.0)


def _answer(
    criterion: dict[str, Any],
    standing: Standing,
    note: str,
    *,
    alpha: float | None = None,
    unit: str = "episodes",
    **more: Any,
) -> CriterionAnswer:
    return CriterionAnswer(
        id=criterion["id"],
        kind=criterion["kind"],
        claim=criterion["claim"],
        wanted=wanted_words(criterion),
        measured=standing.measured,
        interval=standing.interval,
        n=standing.n,
        e_value=standing.e_value,
        alpha=alpha,
        verdict=standing.verdict,
        missing=standing.missing,
        unit=unit,
        note=note,
        passed_at=standing.passed_at,
        **more,
    )


def _episodes(record: StageRecord, criterion: dict[str, Any], alpha: float) -> CriterionAnswer:
    is_offline = record.rollout.stage == "offline"
    found = count_standing(
        record.around.offline_episodes if is_offline else len(record.rows), int(criterion["limit"])
    )
    return _answer(criterion, found, _more(found.missing, "episode"))


def _days(record: StageRecord, criterion: dict[str, Any], alpha: float) -> CriterionAnswer:
    entered = record.rollout.frozen_at or record.rollout.entered_at
    found = count_standing((record.around.now - entered).days, int(criterion["limit"]))
    return _answer(criterion, found, _more(found.missing, "day"), unit="days")


def successes(rows: Sequence[EvidenceRow]) -> Outcomes:
    """An attempt that was aborted or abandoned has not succeeded: nothing may pass by not ending."""
    return np.array([float(row.outcome == "success") for row in rows])


def _drop(record: StageRecord, criterion: dict[str, Any], alpha: float) -> CriterionAnswer:
    reference = reference_of(record.plan)
    if reference is None:
        standing = Standing(OPEN, len(record.rows), None, None, None, None)
        return _answer(criterion, standing, "no simulated episode to compare with", alpha=alpha)
    good = successes(record.rows)
    effect = design_effect(record.rows, good)
    margin = float(criterion["limit"])
    found = drop_standing(reference, good, margin, alpha, effect)
    if drop_bets(reference, margin, alpha) is None:
        note = f"the reference of {reference.n} simulated episodes is too small for this margin"
        return _answer(criterion, found, note, alpha=alpha, design_effect=effect)
    boundary = drop_boundary(reference, margin, alpha)
    is_breached = record.rollout.stage == "full" and _is_breached(record, 1 - good, 1 - boundary, effect)
    if is_breached:
        found = replace(found, verdict=FAIL, missing=None)
    note = _tested_note(found, is_breached=is_breached, too_many="the drop is established to be larger")
    return _answer(criterion, found, note, alpha=alpha, design_effect=effect, breached=is_breached)


def reference_of(plan: dict[str, Any]) -> Reference | None:
    frozen = plan.get("reference")
    return None if not frozen else Reference(int(frozen["successes"]), int(frozen["n"]))


def _values(row: EvidenceRow, measure: str) -> float | None:
    """Whether an episode is one of those that are counted; None where it does not say."""
    if measure == "success":
        return float(row.outcome == "success")
    if measure == "acceptance":
        if row.interventions is None or row.overrides is None:
            return None
        return float(row.outcome == "success" and row.interventions == 0 and row.overrides == 0)
    found: int | None = getattr(row, measure)
    return None if found is None else float(found > 0)


def _rate(record: StageRecord, criterion: dict[str, Any], alpha: float) -> CriterionAnswer:
    values = [_values(row, criterion["measure"]) for row in record.rows]
    return _tested_rate(record, criterion, alpha, values, is_most=criterion["kind"] == "max_rate")


def _proposed(record: StageRecord, criterion: dict[str, Any], alpha: float) -> CriterionAnswer:
    return _tested_rate(record, criterion, alpha, _proposed_shares(record, criterion), is_most=True)


def _proposed_shares(record: StageRecord, criterion: dict[str, Any]) -> list[float | None]:
    """The share of each episode's steps, so that a long episode weighs no more than a short one."""
    of_what = "infeasible" if criterion["kind"] == "max_infeasible" else "agree"

    def share(row: EvidenceRow) -> float | None:
        counts = (row.shadow or {}).get("critical") if criterion.get("critical") else row.shadow
        if not counts or not counts.get("steps") or counts.get(of_what) is None:
            return None
        found = float(counts[of_what]) / float(counts["steps"])
        return found if of_what == "infeasible" else 1 - found

    return [share(row) for row in record.rows]


def _tested_rate(
    record: StageRecord, criterion: dict[str, Any], alpha: float, values: list[float | None], *, is_most: bool
) -> CriterionAnswer:
    """An episode that does not say counts as bad for a pass, and not at all for a fail."""
    worst = 1.0 if is_most else 0.0
    events = np.array([worst if value is None else value for value in values])
    effect = design_effect(record.rows, events)
    limit = float(criterion["limit"])
    found = rate_standing(events, limit, alpha, is_most=is_most, design_effect=effect)
    unknown = sum(value is None for value in values)
    if unknown:
        known = np.array([value for value in values if value is not None])
        of_known = rate_standing(known, limit, alpha, is_most=is_most, design_effect=effect)
        verdict = found.verdict if found.verdict == PASS else (FAIL if of_known.verdict == FAIL else OPEN)
        found = replace(found, verdict=verdict, measured=of_known.measured, interval=of_known.interval)
    bad, boundary = (events, limit) if is_most else (1 - events, 1 - limit)
    is_breached = record.rollout.stage == "full" and not unknown and _is_breached(record, bad, boundary, effect)
    if is_breached:
        found = replace(found, verdict=FAIL, missing=None)
    too_many = f"the rate is established to be {'above' if is_most else 'below'} its limit"
    note = _tested_note(found, is_breached=is_breached, too_many=too_many)
    if unknown and found.verdict == OPEN:
        note = f"{_plural(unknown, 'episode')} of {len(values)} do not say; {note}"
    return _answer(
        criterion, found, note, alpha=alpha, unknown=unknown, design_effect=effect, breached=is_breached
    )


def _clean(record: StageRecord, criterion: dict[str, Any], alpha: float) -> CriterionAnswer:
    values = [_values(row, "violations") for row in record.rows]
    known = [value for value in values if value is not None]
    unknown = len(values) - len(known)
    found = clean_standing(known, float(criterion["limit"]), alpha)
    if unknown and found.verdict == PASS:
        found = replace(found, verdict=OPEN, passed_at=None)
    if found.verdict == FAIL:
        note = f"{_plural(sum(value > 0 for value in known), 'episode')} of {len(known)} with a violation"
    elif unknown:
        note = f"{_plural(unknown, 'episode')} of {len(values)} do not say whether there was a violation"
    else:
        proof = (
            f"zero in {_plural(len(known), 'episode')} proves a rate below {100 * clean_upper(len(known)):.3g} %"
        )
        note = f"{proof} at 95 %" + (f"; {_more(found.missing, 'episode')}" if found.missing else "")
    return _answer(criterion, found, note, alpha=alpha, unknown=unknown)


def _drift(record: StageRecord, criterion: dict[str, Any], alpha: float) -> CriterionAnswer:
    changed = record.around.changed_at
    since = sum(changed is None or row.started_at > changed for row in record.rows)
    found = count_standing(since, int(criterion["limit"]))
    note = _more(found.missing, "episode") + (" since the last change" if changed else "")
    return _answer(criterion, found, note)


def _contract(record: StageRecord, criterion: dict[str, Any], alpha: float) -> CriterionAnswer:
    compared = compare_contracts(record.contracts.sim, record.contracts.real)
    verdict: GateVerdict = {"comparable": PASS, "differs": FAIL, "unknown": OPEN}[compared.verdict]
    note = compared.reason or ""
    if compared.differences:
        fields = ", ".join(difference.field for difference in compared.differences[:3])
        note = f"they differ in {_plural(len(compared.differences), 'field')}: {fields}"
    standing = Standing(verdict, len(record.rows), float(len(compared.differences)), None, None, None)
    return _answer(criterion, standing, note or "equal", unit="fields")


def cells_of(record: StageRecord, criterion: dict[str, Any]) -> list[tuple[dict[str, str], int]]:
    """Every planned cell, and how many episodes of the stage were in it."""
    conditions: dict[str, list[str]] = criterion["conditions"]
    seen: dict[tuple[str, ...], int] = {}
    for row in record.rows:
        levels = record.levels.get(row.condition_set_id or 0, {})
        key = tuple(_level_words(levels.get(name)) for name in conditions)
        seen[key] = seen.get(key, 0) + 1
    return [
        (dict(zip(conditions, cell, strict=True)), seen.get(cell, 0)) for cell in product(*conditions.values())
    ]


def _level_words(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cells(record: StageRecord, criterion: dict[str, Any], alpha: float) -> CriterionAnswer:
    cells = cells_of(record, criterion)
    needed = int(criterion.get("episodes", 1))
    covered = sum(count >= needed for _, count in cells)
    wanted = float(criterion["limit"]) * len(cells)
    missing = max(0, int(np.ceil(wanted - 1e-9)) - covered)
    standing = Standing(
        OPEN if missing else PASS, len(record.rows), covered / len(cells), None, None, missing or None
    )
    note = f"{covered} of {_plural(len(cells), 'planned cell')} seen" + (
        f", {missing} more wanted" if missing else ""
    )
    return _answer(criterion, standing, note, unit="cells")


def _incident(record: StageRecord, criterion: dict[str, Any], alpha: float) -> CriterionAnswer:
    count = record.around.open_alerts
    standing = Standing(FAIL if count else PASS, len(record.rows), float(count), None, None, None)
    note = f"{_plural(count, 'alert')} of an open incident" if count else "none is open"
    return _answer(criterion, standing, note, unit="alerts")


def _is_breached(record: StageRecord, bad: Outcomes, boundary: float, effect: float) -> bool:
    """Whether a full deployment has come to miss what it had passed, by a watch that relaxes over its 90 days."""
    entered = record.rollout.frozen_at or record.rollout.entered_at
    age = (record.around.now - entered).days
    alpha = next((chance for days, chance in WATCH if age < days), None)
    if alpha is None or not len(bad):
        return False
    expected = max(1000.0, record.around.episodes_a_day * WATCH[-1][0])
    # Episodes that resemble each other tell less; as so much weaker outcomes they move the bets as much less.
    softened = boundary + (bad - boundary) / effect
    return highest_since_any_start(bets_on_any(boundary), softened) >= expected / alpha


def design_effect(rows: Sequence[EvidenceRow], values: Outcomes) -> float:
    """How many episodes are worth one, where they come in five or more sessions of several."""
    sums: dict[str, tuple[float, int]] = {}
    alone, total_alone = 0, 0.0
    for row, value in zip(rows, values.tolist(), strict=True):
        if row.session is None:
            alone, total_alone = alone + 1, total_alone + value
        else:
            total, n = sums.get(row.session, (0.0, 0))
            sums[row.session] = (total + value, n + 1)
    if len(sums) < FEWEST_SESSIONS or all(n == 1 for _, n in sums.values()):
        return 1.0
    together = SessionSums()
    for total, n in sums.values():
        together.add(total, n)
    if alone:
        together.add_alone(total_alone, alone)
    return max(1.0, together.likeness().design_effect)


def e_path(record: StageRecord, criterion: dict[str, Any]) -> list[dict[str, float]]:
    """The evidence of a tested criterion at up to forty of its looks, in the order of arrival."""
    good, bets, effect = _bet_on(record, criterion)
    if bets is None or not len(good):
        return []
    looks = np.unique(np.linspace(1, len(good), min(MOST_CHECKPOINTS, len(good))).astype(int))
    sums = np.cumsum(good)[looks - 1]
    path = bets.log_path(sums / effect, looks / effect)
    return [
        {"n": int(n), "good": round(float(total), 6), "log10_e": round(float(value) / log(10), 6)}
        for n, total, value in zip(looks, sums, path, strict=True)
    ]


def _bet_on(record: StageRecord, criterion: dict[str, Any]) -> tuple[Outcomes, Bets | None, float]:
    """What is bet on, as good outcomes, the bets, and how many episodes are worth one."""
    kind, limit = criterion["kind"], float(criterion["limit"])
    if kind == "max_drop":
        reference, alpha = reference_of(record.plan), alpha_of(record.plan, record.rollout.stage)
        good = successes(record.rows)
        return (
            good,
            None if reference is None else drop_bets(reference, limit, alpha),
            design_effect(record.rows, good),
        )
    if kind == "zero_violations":
        values = [_values(row, "violations") for row in record.rows]
        return np.array([float(value == 0) for value in values if value is not None]), clean_bets(limit), 1.0
    is_most = kind != "min_rate"
    in_shadow = kind in ("max_infeasible", "max_disagreement")
    values = (
        _proposed_shares(record, criterion)
        if in_shadow
        else [_values(row, criterion["measure"]) for row in record.rows]
    )
    events = np.array([(1.0 if is_most else 0.0) if value is None else value for value in values])
    bets = bets_on_any(1 - limit if is_most else limit)
    return 1 - events if is_most else events, bets, design_effect(record.rows, events)


def _tested_note(found: Standing, *, is_breached: bool, too_many: str) -> str:
    if is_breached:
        return "it was passed and is breached: the gate is open again"
    if found.verdict == FAIL:
        return too_many
    if found.verdict == PASS:
        return f"passed at episode {found.passed_at}"
    if found.missing is None:
        return "at this rate more episodes will not decide it"
    return f"about {_more(found.missing, 'episode')} at this rate"


def _more(count: int | None, noun: str) -> str:
    return "reached" if not count else f"{notation.count(count)} more {noun}{'' if count == 1 else 's'}"


def _plural(count: int, noun: str) -> str:
    return f"{notation.count(count)} {noun}{'' if count == 1 else 's'}"


def _criterion_json(criterion: CriterionAnswer) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(criterion).items()}


def _utc(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


_KINDS: dict[str, Callable[[StageRecord, dict[str, Any], float], CriterionAnswer]] = {
    "min_episodes": _episodes,
    "min_days": _days,
    "max_drop": _drop,
    "max_rate": _rate,
    "min_rate": _rate,
    "zero_violations": _clean,
    "drift_free": _drift,
    "contract_equal": _contract,
    "cells_covered": _cells,
    "no_open_incident": _incident,
    "max_infeasible": _proposed,
    "max_disagreement": _proposed,
}
