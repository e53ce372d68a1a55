"""The kinds of criteria: each against the record of a stage, in figures and words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np

from gapwatch import notation
from gapwatch.rollouts.mix import compared
from gapwatch.rollouts.plan import TESTED, WATCH, alpha_of, wanted_words
from gapwatch.rollouts.stage_record import (
    Outcomes,
    StageRecord,
    cells_of,
    design_effect,
    reference_of,
    successes,
)
from gapwatch.statistics.causes.contracts import compare_contracts
from gapwatch.statistics.gates.criteria import (
    FAIL,
    FEWEST_MEASURED,
    OPEN,
    PASS,
    GateVerdict,
    Reference,
    Standing,
    boundaries_in,
    clean_standing,
    count_standing,
    drop_bets,
    drop_standing,
    rate_standing,
)
from gapwatch.statistics.gates.evidence import Bets, bets_on_any, clean_bets, path_of, since_any_start
from gapwatch.statistics.gates.limits import clean_upper
from gapwatch.store.rollout.evidence import EvidenceRow

MOST_CHECKPOINTS = 40
# A mix that moves the reference by less is not mentioned.
WORTH_SAYING = 0.005


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


def _drop(record: StageRecord, criterion: dict[str, Any], alpha: float) -> CriterionAnswer:
    """Of the reference in the mix of conditions that the stage met.

    An episode under conditions that simulation has nothing for counts as bad for a pass and not at all for a fail.
    """
    against = compared(record)
    if against is None:
        standing = Standing(OPEN, len(record.rows), None, None, None, None)
        return _answer(criterion, standing, "no simulated episode to compare with", alpha=alpha)
    reference, rates = against.reference, against.rates
    margin, actual = float(criterion["limit"]), successes(record.rows)
    good = np.where(against.unknown, 0.0, actual)
    effect = design_effect(record.rows, actual)
    found = drop_standing(reference, good, margin, alpha, effect, rates)
    unknown = int(against.unknown.sum())
    if unknown:
        kept = ~against.unknown
        of_known = drop_standing(
            reference, actual[kept], margin, alpha, effect, None if rates is None else rates[kept]
        )
        verdict = found.verdict if found.verdict == PASS else (FAIL if of_known.verdict == FAIL else OPEN)
        found = replace(found, verdict=verdict, measured=of_known.measured, interval=of_known.interval)
    bets = drop_bets(reference, margin, alpha)
    if bets is None:
        note = f"the reference is worth {reference.n:.0f} simulated episodes, too few for this margin"
        return _answer(criterion, found, note, alpha=alpha, design_effect=effect, unknown=unknown)
    is_breached = record.rollout.stage == "full" and _is_breached(
        record, 1 - actual, 1 - bets.boundary, effect, _opposite(boundaries_in(bets.boundary, reference, rates))
    )
    if is_breached:
        found = replace(found, verdict=FAIL, missing=None)
    note = _tested_note(
        found, is_breached=is_breached, too_many=f"established to lose more than {100 * margin:g} points"
    )
    if unknown and found.verdict == OPEN:
        note = (
            f"{_plural(unknown, 'episode')} of {len(good)} under conditions that simulation hardly has "
            f"({against.unknown_level}): simulate them and send the plan anew; {note}"
        )
    mix = _mix_note(record, reference)
    return _answer(
        criterion,
        found,
        f"{note}; {mix}" if mix else note,
        alpha=alpha,
        design_effect=effect,
        breached=is_breached,
        unknown=unknown,
    )


def _mix_note(record: StageRecord, reference: Reference) -> str:
    """Said where the robots' mix of conditions changes what they are held against."""
    whole = reference_of(record.plan)
    if whole is None or abs(whole.value - reference.value) < WORTH_SAYING:
        return ""
    return (
        f"held against {100 * reference.value:.1f} %, which simulation has in the robots' mix of conditions, "
        f"not {100 * whole.value:.1f} %"
    )


def _opposite(boundaries: Outcomes | None) -> Outcomes | None:
    return None if boundaries is None else 1 - boundaries


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
    too_many = f"established to be {'above' if is_most else 'below'} {100 * limit:g} %"
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
        upper = f"{100 * clean_upper(len(known)):.3g} %"
        proof = f"zero in {_plural(len(known), 'episode')} proves a rate below {upper} at 95 %" if known else ""
        wanting = _more(found.missing, "episode") if found.missing else ""
        note = "; ".join(words for words in (proof, wanting) if words)
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


def _is_breached(
    record: StageRecord, bad: Outcomes, boundary: float, effect: float, boundaries: Outcomes | None = None
) -> bool:
    """Whether a full deployment has come to miss what it had passed, by a watch that relaxes over its 90 days.

    Each episode is held against the chance of a false alarm of its own day: what was found stays found.
    """
    if not len(bad):
        return False
    entered = record.rollout.frozen_at or record.rollout.entered_at
    newest = entered
    limits = []
    expected = max(1000.0, record.around.episodes_a_day * WATCH[-1][0])
    for row in record.rows:
        newest = max(newest, row.started_at)
        alpha = next((chance for days, chance in WATCH if (newest - entered).days < days), None)
        limits.append(np.inf if alpha is None else expected / alpha)
    evidence = since_any_start(bets_on_any(boundary), bad, effect, boundaries)
    return bool((evidence >= np.array(limits)).any())


def e_path(record: StageRecord, criterion: dict[str, Any]) -> list[dict[str, float]]:
    """The evidence of a tested criterion at up to forty of its looks, in the order of arrival."""
    good, bets, effect, boundaries = bet_on(record, criterion)
    if bets is None or not len(good):
        return []
    looks = np.unique(np.linspace(1, len(good), min(MOST_CHECKPOINTS, len(good))).astype(int))
    sums = np.cumsum(good)[looks - 1]
    path = path_of(bets, good, effect, boundaries)[looks - 1]
    return [
        {"n": int(n), "good": round(float(total), 6), "log10_e": round(float(value) / log(10), 6)}
        for n, total, value in zip(looks, sums, path, strict=True)
    ]


def bet_on(record: StageRecord, criterion: dict[str, Any]) -> tuple[Outcomes, Bets | None, float, Outcomes | None]:
    """What is bet on, as good outcomes; the bets; how many episodes are worth one; boundaries if they differ."""
    kind, limit = criterion["kind"], float(criterion["limit"])
    if kind == "max_drop":
        against, actual = compared(record), successes(record.rows)
        if against is None:
            return actual, None, 1.0, None
        bets = drop_bets(against.reference, limit, alpha_of(record.plan, record.rollout.stage))
        boundaries = None if bets is None else boundaries_in(bets.boundary, against.reference, against.rates)
        return np.where(against.unknown, 0.0, actual), bets, design_effect(record.rows, actual), boundaries
    if kind == "zero_violations":
        values = [_values(row, "violations") for row in record.rows]
        known = np.array([float(value == 0) for value in values if value is not None])
        return known, clean_bets(limit), 1.0, None
    is_most = kind != "min_rate"
    in_shadow = kind in ("max_infeasible", "max_disagreement")
    values = (
        _proposed_shares(record, criterion)
        if in_shadow
        else [_values(row, criterion["measure"]) for row in record.rows]
    )
    events = np.array([(1.0 if is_most else 0.0) if value is None else value for value in values])
    bets = bets_on_any(1 - limit if is_most else limit)
    return 1 - events if is_most else events, bets, design_effect(record.rows, events), None


def _tested_note(found: Standing, *, is_breached: bool, too_many: str) -> str:
    if is_breached:
        return "it was passed and is breached: the gate is open again"
    if found.verdict == FAIL:
        return too_many
    if found.verdict == PASS:
        return f"passed at episode {found.passed_at}"
    if found.missing is None:
        return "at this rate more episodes will not decide it"
    rate = "at this rate" if found.n >= FEWEST_MEASURED else "if it is as good as planned"
    return f"about {_more(found.missing, 'episode')} {rate}"


def _more(count: int | None, noun: str) -> str:
    return "reached" if not count else f"{notation.count(count)} more {noun}{'' if count == 1 else 's'}"


def _plural(count: int, noun: str) -> str:
    return f"{notation.count(count)} {noun}{'' if count == 1 else 's'}"


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
