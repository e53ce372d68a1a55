"""The fleet: every deployment with its drop, a page at a time, in a fixed number of queries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gapwatch.answers.answer import Span
from gapwatch.answers.baselines import choose, on_sim
from gapwatch.answers.drop import DropValue, interval_of, smallest_success
from gapwatch.answers.question import EVERYTHING, Question
from gapwatch.answers.tallies import ALL_TIME, Tally, matching, tallies
from gapwatch.statistics import drops, verdicts
from gapwatch.statistics.rates import wilson
from gapwatch.store import directory
from gapwatch.store.database import Connection
from gapwatch.store.directory import Deployment
from gapwatch.store.sides import CellFilter, Scope, Window


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
    """By slug. Sessions are not looked at here: a deployment's own page has the interval that knows of them."""
    found = directory.deployments(connection, project_id, after, limit + 1)
    page = found[:limit]
    more = page[-1].slug if len(found) > limit else None
    return FleetAnswer(
        tuple(fleet_rows(connection, project_id, page, question)),
        Span(question.window.since, question.window.until),
        more,
    )


def fleet_rows(
    connection: Connection, project_id: int, page: list[Deployment], question: Question
) -> list[FleetRow]:
    if not page:
        return []
    simulators = directory.simulators(connection, project_id)
    policy_ids, task_ids = tuple({d.policy_id for d in page}), tuple({d.task_id for d in page})
    real_scope = Scope("real", policy_ids, task_ids, tuple(d.id for d in page))
    sim_scope = Scope("sim", policy_ids, task_ids)
    window, wanted = question.window, question.wanted
    real = _read(connection, project_id, real_scope, window, wanted)
    sim = _read(connection, project_id, sim_scope, ALL_TIME, wanted)
    within = sim if window == ALL_TIME else _read(connection, project_id, sim_scope, window, wanted)
    smallest = smallest_success(directory.project_options(connection, project_id))
    return [_row(deployment, question, simulators, smallest, real, sim, within) for deployment in page]


# (policy, task) → deployment or simulator → its counts.
Tallies = dict[tuple[int, int], dict[int, list[Tally]]]


def _read(connection: Connection, project_id: int, scope: Scope, window: Window, wanted: CellFilter) -> Tallies:
    found: Tallies = {}
    for count in tallies(connection, project_id, scope, window, wanted):
        sources = found.setdefault((count.policy_id, count.task_id), {})
        sources.setdefault(count.source_id, []).append(count)
    return found


def _row(
    deployment: Deployment,
    question: Question,
    simulators: dict[int, tuple[str, str]],
    smallest: float,
    real: Tallies,
    sim: Tallies,
    within: Tallies,
) -> FleetRow:
    runs = (deployment.policy_id, deployment.task_id)
    mine = _side(real.get(runs, {}).get(deployment.id, []), question.wanted)
    simulated = sim.get(runs, {})
    sizes = {source: _side(counts, EVERYTHING).n for source, counts in simulated.items()}
    choice = choose(sizes, simulators, question.simulators, deployment.pinned_simulator_id)
    chosen = None if choice is None else choice.simulator_id
    base = _Sums()
    if chosen is not None:
        counts = within.get(runs, {}).get(chosen, [])
        if not _side(counts, EVERYTHING).n:
            counts = simulated.get(chosen, [])
        cells = (count.cell for count in counts if count.cell is not None)
        base = _side(counts, on_sim(question.wanted, cells))
    found = drops.rate_drop(drops.Side(base.successes, base.n), drops.Side(mine.successes, mine.n))
    value = found.value
    interval = (found.low, found.high) if value is not None else None
    word = verdicts.verdict(found.low, found.high, value, smallest)
    name, version = simulators[chosen] if chosen is not None else (None, None)
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
        base.told(),
        mine.told(),
        DropValue(value, interval, found.relative, interval_of(found.relative_low, found.relative_high)),
        word,
        found.method,
        found.reason,
    )


@dataclass
class _Sums:
    successes: int = 0
    failures: int = 0
    aborted: int = 0
    abandoned: int = 0

    @property
    def n(self) -> int:
        return self.successes + self.failures

    def told(self) -> FleetSide:
        value = self.successes / self.n if self.n else None
        interval = wilson(self.successes, self.n) if self.n else None
        return FleetSide(self.n, value, interval, self.aborted, self.abandoned)


def _side(counts: list[Tally], wanted: CellFilter) -> _Sums:
    sums = _Sums()
    for count in matching(counts, wanted):
        sums.successes += count.successes
        sums.failures += count.failures
        sums.aborted += count.aborted
        sums.abandoned += count.abandoned
    return sums
