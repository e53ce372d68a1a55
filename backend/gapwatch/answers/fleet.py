"""The fleet: every deployment with its drop, a page at a time, in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

from gapwatch.answers.answer import NamedSpan
from gapwatch.answers.baselines import choose, on_sim
from gapwatch.answers.drop import DropValue, interval_of, smallest_success
from gapwatch.answers.now import NowValue, now_value
from gapwatch.answers.question import EVERYTHING, Question
from gapwatch.answers.tallies import ALL_TIME, Tally, matching, tallies
from gapwatch.errors import Fault, Invalid
from gapwatch.statistics.estimates import drops, verdicts
from gapwatch.statistics.estimates.rates import wilson
from gapwatch.store.core.database import Connection
from gapwatch.store.read import directory, fleet
from gapwatch.store.read.directory import Deployment, KeptPresent
from gapwatch.store.read.sides import (
    CellFilter,
    Scope,
    Window,
)
from gapwatch.tally.presents import StoredPresent

FleetOrder = Literal["now", "worst", "name", "newest"]
# Deployments that are put into an order other than that of their names: those with the most episodes.
MOST_ORDERED = 5000
# What a loss weighs: a robot on its own fails at once, one with a person beside it is caught, a shadow drives
# nothing.
STAGE_WEIGHTS = {"full": 1.0, "supervised": 0.75, "shadow": 0.25, "offline": 0.1}


@dataclass(frozen=True)
class FleetSide:
    n: int
    value: float | None
    interval: tuple[float, float] | None
    aborted: int
    abandoned: int


@dataclass(frozen=True)
class FleetRow:
    """One deployment: the values of its newest episode, both sides of success, and the verdict.

    `gate` is how the gate of its rollout stands, or that it is stopped or on its fallback; null without a rollout.
    """

    slug: str
    policy: str
    version: str
    task: str
    site: str | None
    stage: str | None
    last_episode_at: datetime
    simulator: str | None
    simulator_version: str | None
    pinned: bool
    sim: FleetSide
    real: FleetSide
    drop: DropValue
    verdict: str
    method: str
    reason: str | None
    now: NowValue
    gate: str | None = None


@dataclass(frozen=True)
class FleetAnswer:
    deployments: tuple[FleetRow, ...]
    window: NamedSpan
    next: str | None


def answer_fleet(
    connection: Connection,
    project_id: int,
    question: Question,
    after: str | None,
    limit: int,
    order: FleetOrder = "name",
) -> FleetAnswer:
    """By slug, or in another order, for which all deployments are looked at; of very many the busiest.

    Intervals speak for these robots, and know how alike episodes of a session are in the present of a deployment.
    """
    smallest = smallest_success(directory.project_options(connection, project_id))
    window = NamedSpan(question.window.since, question.window.until, fleet_window_words(question))
    if order == "name":
        known = directory.deployments(connection, project_id, after, limit + 1)
        rows = fleet_rows(connection, project_id, known[:limit], question, smallest)
        return FleetAnswer(tuple(rows), window, rows[-1].slug if len(known) > limit else None)
    known = directory.busiest_deployments(connection, project_id, MOST_ORDERED)
    rows = fleet_rows(connection, project_id, known, question, smallest, whole=len(known) < MOST_ORDERED)
    rows.sort(key=ORDERS[order])
    slugs = [row.slug for row in rows]
    if after is not None and after not in slugs:
        message = "Give `after` exactly as `next` said it."
        raise Invalid(message, errors=[Fault(pointer="/query/after", code="bad-mark", message=message)])
    start = 0 if after is None else slugs.index(after) + 1
    page = rows[start : start + limit]
    return FleetAnswer(tuple(page), window, page[-1].slug if start + limit < len(rows) and page else None)


def fleet_window_words(question: Question) -> str:
    """What a window by name means where each deployment has its own."""
    words = {"now": "now, of each deployment", "version": "the release that each deployment runs"}
    return words.get(question.asked_window or "", question.window_words)


def worst_first(row: FleetRow) -> tuple[int, float, str]:
    """By the lower end of the drop's interval, so that a few unlucky episodes cannot take first place.

    Deployments with too few episodes follow the rest; those without a comparison come last.
    """
    return _by_drop(row.drop, row.verdict, row.slug)


def worst_now_first(row: FleetRow) -> tuple[int, float, str]:
    """The same by the drop of the newest episodes, of which a stage without autonomy counts less."""
    rank, minus_low, slug = _by_drop(row.now.drop, row.now.verdict, row.slug)
    return rank, minus_low * STAGE_WEIGHTS.get(row.stage or "full", 1.0) if minus_low < 0 else minus_low, slug


def _by_drop(drop: DropValue, verdict: str, slug: str) -> tuple[int, float, str]:
    if drop.interval is None:
        return 2, 0.0, slug
    return int(verdict == "too few episodes"), -drop.interval[0], slug


ORDERS: dict[FleetOrder, Callable[[FleetRow], Any]] = {
    "now": worst_now_first,
    "worst": worst_first,
    "name": lambda row: row.slug,
    "newest": lambda row: (-row.last_episode_at.timestamp(), row.slug),
}


def fleet_rows(
    connection: Connection,
    project_id: int,
    page: list[Deployment],
    question: Question,
    smallest: float,
    *,
    whole: bool = False,
) -> list[FleetRow]:
    """`smallest` is the least drop that matters to the project. `whole`: the page holds all its deployments."""
    if not page:
        return []
    simulators = directory.simulators(connection, project_id)
    policy_ids, task_ids = tuple({d.policy_id for d in page}), tuple({d.task_id for d in page})
    real_scope = Scope("real", policy_ids, task_ids, None if whole else tuple(d.id for d in page))
    sim_scope = Scope("sim", policy_ids, task_ids)
    # What a window by name leaves of real is counted apart, and its baseline is whole.
    window, wanted = question.window, question.wanted
    stored = directory.presents(connection, project_id, None if whole else [d.id for d in page])
    # What has just been released is described at once and folded a moment later.
    presents = {d.id: stored[d.id] for d in page if d.id in stored and _is_of(stored[d.id].present, d)}
    sim = _read(connection, project_id, sim_scope, ALL_TIME, wanted)
    within = sim if window == ALL_TIME else _read(connection, project_id, sim_scope, window, wanted)
    baselines = _Baselines(question, simulators, sim, within)
    if question.asked_window == "now":
        real = _now_sums(connection, project_id, page, presents, wanted)
    else:
        counts = _read(connection, project_id, real_scope, window, wanted)
        real = {d.id: _side(counts.get((d.policy_id, d.task_id), {}).get(d.id, []), wanted) for d in page}
    return [_row(one, question, smallest, real[one.id], presents.get(one.id), baselines) for one in page]


Presents = Mapping[int, KeptPresent]


def _is_of(present: StoredPresent, deployment: Deployment) -> bool:
    facts = present.facts
    return (facts.policy_id, facts.task_id) == (deployment.policy_id, deployment.task_id)


def _now_sums(
    connection: Connection, project_id: int, page: list[Deployment], presents: Presents, wanted: CellFilter
) -> dict[int, _Sums]:
    """The regime of each deployment: from its present; with a filter from the regime's episodes."""
    if not wanted.is_open:
        counted = fleet.counts_of_presents(connection, project_id, [one.id for one in page], wanted)
        return {one.id: _Sums(*counted.get(one.id, (0, 0, 0, 0))) for one in page}
    sums = {one.id: _Sums() for one in page}
    for deployment_id, kept in presents.items():
        present, regime = kept.present, kept.present.regime
        sums[deployment_id] = _Sums(
            regime.successes, regime.n - regime.successes, present.aborted, present.abandoned
        )
    return sums


# (policy, task) → deployment or simulator → its counts.
Tallies = dict[tuple[int, int], dict[int, list[Tally]]]


def _read(connection: Connection, project_id: int, scope: Scope, window: Window, wanted: CellFilter) -> Tallies:
    counts: Tallies = {}
    for count in tallies(connection, project_id, scope, window, wanted):
        sources = counts.setdefault((count.policy_id, count.task_id), {})
        sources.setdefault(count.source_id, []).append(count)
    return counts


class _Baselines:
    """The sim side of a policy and task: many deployments share one."""

    def __init__(
        self, question: Question, simulators: dict[int, tuple[str, str]], sim: Tallies, within: Tallies
    ) -> None:
        self._question, self._simulators, self._sim, self._within = question, simulators, sim, within
        self._known: dict[tuple[int, int, int | None], tuple[tuple[str, str] | None, _Sums]] = {}

    def of(self, deployment: Deployment) -> tuple[tuple[str, str] | None, _Sums]:
        key = (deployment.policy_id, deployment.task_id, deployment.pinned_simulator_id)
        if key not in self._known:
            self._known[key] = self._read(*key)
        return self._known[key]

    def _read(self, policy_id: int, task_id: int, pinned: int | None) -> tuple[tuple[str, str] | None, _Sums]:
        simulated = self._sim.get((policy_id, task_id), {})
        sizes = {source: _side(counts, EVERYTHING).n for source, counts in simulated.items()}
        choice = choose(sizes, self._simulators, self._question.simulators, pinned)
        if choice is None:
            return None, _Sums()
        counts = self._within.get((policy_id, task_id), {}).get(choice.simulator_id, [])
        if not _side(counts, EVERYTHING).n:
            counts = simulated.get(choice.simulator_id, [])
        cells = (count.cell for count in counts if count.cell is not None)
        sums = _side(counts, on_sim(self._question.wanted, cells))
        return self._simulators[choice.simulator_id], sums


def _row(
    deployment: Deployment,
    question: Question,
    smallest: float,
    real_side: _Sums,
    kept: KeptPresent | None,
    baselines: _Baselines,
) -> FleetRow:
    simulator, base = baselines.of(deployment)
    of_sim, of_real = (1.0, 1.0) if kept is None else (kept.sim_effect, kept.real_effect)
    sim, real = base.drop_side(of_sim), real_side.drop_side(of_real)
    drop, method, reason, word = _drop(sim, real, smallest)
    name, version = simulator or (None, None)
    return FleetRow(
        deployment.slug,
        deployment.policy,
        deployment.version,
        deployment.task,
        deployment.site,
        deployment.stage,
        deployment.last_episode_at,
        name,
        version,
        deployment.pinned_simulator_id is not None,
        base.fleet_side(of_sim),
        real_side.fleet_side(of_real),
        drop,
        word,
        method,
        reason,
        now_value(
            None if kept is None else kept.present,
            sim,
            smallest,
            deployment.version,
            question.now,
            question.now if kept is None else kept.computed_at,
        ),
        deployment.gate,
    )


@lru_cache(maxsize=20_000)
def _drop(
    sim: drops.Side, real: drops.Side, smallest: float
) -> tuple[DropValue, str, str | None, verdicts.Verdict]:
    """Cached: most deployments have not changed since the fleet was last viewed."""
    drop = drops.rate_drop(sim, real)
    interval = (drop.low, drop.high) if drop.value is not None else None
    relative = interval_of(drop.relative_low, drop.relative_high)
    word = verdicts.verdict(drop.low, drop.high, drop.value, smallest)
    return DropValue(drop.value, interval, drop.relative, relative), drop.method, drop.reason, word


@lru_cache(maxsize=20_000)
def _fleet_side(successes: int, n: int, aborted: int, abandoned: int, worth_one: float) -> FleetSide:
    value = successes / n if n else None
    interval = wilson(successes / worth_one, n / worth_one) if n else None
    return FleetSide(n, value, interval, aborted, abandoned)


@dataclass
class _Sums:
    successes: int = 0
    failures: int = 0
    aborted: int = 0
    abandoned: int = 0

    @property
    def n(self) -> int:
        return self.successes + self.failures

    def drop_side(self, worth_one: float) -> drops.Side:
        return drops.Side(self.successes, self.n, worth_one=worth_one)

    def fleet_side(self, worth_one: float) -> FleetSide:
        return _fleet_side(self.successes, self.n, self.aborted, self.abandoned, worth_one)


def _side(counts: list[Tally], wanted: CellFilter) -> _Sums:
    sums = _Sums()
    for count in matching(counts, wanted):
        sums.successes += count.successes
        sums.failures += count.failures
        sums.aborted += count.aborted
        sums.abandoned += count.abandoned
    return sums
