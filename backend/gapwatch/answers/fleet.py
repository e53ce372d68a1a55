"""The fleet: every deployment with its drop, a page at a time, in a fixed number of queries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from gapwatch.answers.answer import Span
from gapwatch.answers.baselines import choose, on_sim
from gapwatch.answers.drop import DropValue, interval_of, smallest_success
from gapwatch.answers.question import EVERYTHING, Question
from gapwatch.answers.tallies import ALL_TIME, Tally, matching, tallies
from gapwatch.statistics.estimates import drops, verdicts
from gapwatch.statistics.estimates.rates import wilson
from gapwatch.store.core.database import Connection
from gapwatch.store.read import directory
from gapwatch.store.read.directory import Deployment
from gapwatch.store.read.sides import (
    CellFilter,
    Scope,
    Window,
)


@dataclass(frozen=True)
class FleetSide:
    n: int
    value: float | None
    interval: tuple[float, float] | None
    aborted: int
    abandoned: int


@dataclass(frozen=True)
class FleetRow:
    """One deployment: the values of its newest episode, both sides of success, and the verdict."""

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


@dataclass(frozen=True)
class FleetAnswer:
    deployments: tuple[FleetRow, ...]
    window: Span
    next: str | None


def answer_fleet(
    connection: Connection, project_id: int, question: Question, after: str | None, limit: int
) -> FleetAnswer:
    """By slug. Intervals here ignore sessions; the one on a deployment's own page accounts for them."""
    deployments = directory.deployments(connection, project_id, after, limit + 1)
    page = deployments[:limit]
    more = page[-1].slug if len(deployments) > limit else None
    smallest = smallest_success(directory.project_options(connection, project_id))
    return FleetAnswer(
        tuple(fleet_rows(connection, project_id, page, question, smallest)),
        Span(question.window.since, question.window.until),
        more,
    )


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
    window, wanted = question.window, question.wanted
    real = _read(connection, project_id, real_scope, window, wanted)
    sim = _read(connection, project_id, sim_scope, ALL_TIME, wanted)
    within = sim if window == ALL_TIME else _read(connection, project_id, sim_scope, window, wanted)
    baselines = _Baselines(question, simulators, sim, within)
    return [_row(deployment, question, smallest, real, baselines) for deployment in page]


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
    deployment: Deployment, question: Question, smallest: float, real: Tallies, baselines: _Baselines
) -> FleetRow:
    runs = (deployment.policy_id, deployment.task_id)
    real_side = _side(real.get(runs, {}).get(deployment.id, []), question.wanted)
    simulator, base = baselines.of(deployment)
    drop, method, reason, word = _drop(base.successes, base.n, real_side.successes, real_side.n, smallest)
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
        base.fleet_side(),
        real_side.fleet_side(),
        drop,
        word,
        method,
        reason,
    )


@lru_cache(maxsize=20_000)
def _drop(
    sim: int, n_sim: int, real: int, n_real: int, smallest: float
) -> tuple[DropValue, str, str | None, verdicts.Verdict]:
    """Cached: most deployments have not changed since the fleet was last viewed."""
    drop = drops.rate_drop(drops.Side(sim, n_sim), drops.Side(real, n_real))
    interval = (drop.low, drop.high) if drop.value is not None else None
    relative = interval_of(drop.relative_low, drop.relative_high)
    word = verdicts.verdict(drop.low, drop.high, drop.value, smallest)
    return DropValue(drop.value, interval, drop.relative, relative), drop.method, drop.reason, word


@lru_cache(maxsize=20_000)
def _fleet_side(successes: int, n: int, aborted: int, abandoned: int) -> FleetSide:
    value = successes / n if n else None
    return FleetSide(n, value, wilson(successes, n) if n else None, aborted, abandoned)


@dataclass
class _Sums:
    successes: int = 0
    failures: int = 0
    aborted: int = 0
    abandoned: int = 0

    @property
    def n(self) -> int:
        return self.successes + self.failures

    def fleet_side(self) -> FleetSide:
        return _fleet_side(self.successes, self.n, self.aborted, self.abandoned)


def _side(counts: list[Tally], wanted: CellFilter) -> _Sums:
    sums = _Sums()
    for count in matching(counts, wanted):
        sums.successes += count.successes
        sums.failures += count.failures
        sums.aborted += count.aborted
        sums.abandoned += count.abandoned
    return sums
