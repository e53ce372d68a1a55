"""Can a simulator be believed: its ranking of policies beside reality's, and what believing it costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gapwatch.answers.answer import Caution, Interval, NamedSpan, SimulatorCount
from gapwatch.answers.answer_kind import TableRow
from gapwatch.answers.baselines import on_sim
from gapwatch.answers.metric_drop import direction_of
from gapwatch.answers.question import Question, settle_window
from gapwatch.answers.sides import repeated_caution
from gapwatch.answers.tallies import Tally, matching, tallies
from gapwatch.answers.window_words import fleet_began
from gapwatch.errors import Fault, Invalid, NotFound
from gapwatch.statistics.estimates.rates import wilson
from gapwatch.statistics.estimates.simulator_bias import bias_words, policy_bias
from gapwatch.statistics.estimates.sketches import Moments
from gapwatch.statistics.estimates.trust import PolicyPoint, simulator_trust
from gapwatch.store.core.database import Connection
from gapwatch.store.read import directory, sides
from gapwatch.store.read.sides import Scope

# For metrics other than success each policy is read by itself; so many, the most tried first.
MOST_POLICIES = 20
MOST_BIASES = 200


@dataclass(frozen=True)
class TrustedPolicy:
    """One policy version on both sides, over the tasks that both have tried, in the real mix of tasks.

    The intervals are Wilson's, of success; other metrics have none here.
    """

    policy: str
    version: str
    sim: float
    real: float
    sim_interval: Interval | None
    real_interval: Interval | None
    n_sim: int
    n_real: int
    tasks: int


@dataclass(frozen=True)
class LeftOut:
    """The measures without one policy."""

    policy: str
    pearson: float | None
    mmrv: float


@dataclass(frozen=True)
class TaskBias:
    """One task in one simulator: what it promises and what reality gives, over policies tried on both sides.

    `bias` is sim minus real, of sim in the real mix of policies: positive where it promises too much.
    """

    task: str
    simulator: str
    version: str
    policies: int
    n_sim: int
    n_real: int
    sim: float
    real: float
    bias: float
    interval: Interval
    verdict: str


@dataclass(frozen=True, kw_only=True)
class TrustAnswer:
    simulator: str
    version: str
    alternatives: tuple[SimulatorCount, ...]
    metric: str
    task: str | None
    window: NamedSpan
    filter: Mapping[str, Any]
    # Of every simulator, so that one can be chosen; of success only.
    tasks: tuple[TaskBias, ...]
    policies: tuple[TrustedPolicy, ...]
    n_policies: int
    pearson: float | None
    spearman: float | None
    mmrv: float | None
    interval: Interval | None
    mmrv_interval: Interval | None
    leave_one_out: tuple[LeftOut, ...]
    largest_change: float | None
    fragile: bool
    regret: float | None
    convention: str
    verdict: str
    warnings: tuple[Caution, ...]
    reason: str | None
    method: str


def answer_trust(
    connection: Connection, project_id: int, name: str, version: str | None, task: str | None, question: Question
) -> TrustAnswer:
    known = directory.simulators(connection, project_id)
    ids = {i: pair for i, pair in known.items() if pair[0] == name and version in (None, pair[1])}
    if not ids:
        raise NotFound("There is no simulator with this name and version.")
    if question.asked_window in ("now", "version"):
        began = fleet_began(directory.all_began(connection, project_id), question.now)
        question = settle_window(question, began)
    task_ids = _task_ids(connection, project_id, task)
    policies = directory.policy_versions(connection, project_id)
    in_any_sim = _read(connection, project_id, Scope("sim", tuple(policies), task_ids), question)
    in_sim = [count for count in in_any_sim if count.source_id in ids]
    sizes = {i: sum(b.successes + b.failures for b in in_sim if b.source_id == i) for i in ids}
    chosen = max(ids, key=lambda i: (sizes[i], i))
    sim = _table(bucket for bucket in in_sim if bucket.source_id == chosen)
    tried = tuple({policy_id for policy_id, _ in sim})
    simulated = tuple({count.policy_id for count in in_any_sim})
    in_real = _read(connection, project_id, Scope("real", simulated, task_ids), question) if simulated else []
    real = _table(in_real)
    points = [
        point
        for policy_id in sorted(tried)
        if (point := _point(policies[policy_id], policy_id, sim, real)) is not None
    ]
    better = "higher"
    if question.metric != "success":
        options = directory.project_options(connection, project_id)
        better = direction_of(options, question.metric)[0]
        of_names = {policies[policy_id]: policy_id for policy_id in tried}
        points = _by_metric(connection, project_id, question, points, of_names, task_ids, chosen)
    biases: tuple[TaskBias, ...] = ()
    if question.metric == "success":
        biases = _biases(in_any_sim, real, known, directory.tasks(connection, project_id))
    others = [(known[i], n) for i, n in sizes.items() if i != chosen]
    repeated = directory.repeated_in_simulators(connection, project_id, [chosen])
    answer = _trust_answer(known[chosen], others, task, question, points, better, biases)
    return replace(answer, warnings=(*answer.warnings, *repeated_caution(repeated)))


def _read(connection: Connection, project_id: int, scope: Scope, question: Question) -> Sequence[Tally]:
    """Robot, site and stage do not restrict sim where its episodes name none."""
    window = question.window
    if scope.domain == "sim" and question.sim_window is not None:
        window = question.sim_window
    counts = tallies(connection, project_id, scope, window, question.wanted)
    wanted = question.wanted
    if scope.domain == "sim":
        wanted = on_sim(wanted, (count.cell for count in counts if count.cell is not None))
    return matching(counts, wanted)


def _task_ids(connection: Connection, project_id: int, task: str | None) -> tuple[int, ...] | None:
    if task is None:
        return None
    matches = tuple(i for i, name in directory.tasks(connection, project_id).items() if name == task)
    if not matches:
        message = "There is no task with this name."
        raise Invalid(message, errors=[Fault(pointer="/query/task", code="unknown-task", message=message)])
    return matches


def _table(buckets: Iterable[Tally]) -> dict[tuple[int, int], tuple[int, int]]:
    """(policy, task) → (successes, episodes)."""
    table: dict[tuple[int, int], tuple[int, int]] = {}
    for bucket in buckets:
        key = (bucket.policy_id, bucket.task_id)
        k, n = table.get(key, (0, 0))
        table[key] = (k + bucket.successes, n + bucket.successes + bucket.failures)
    return {key: counts for key, counts in table.items() if counts[1]}


def _point(
    policy: tuple[str, str],
    policy_id: int,
    sim: Mapping[tuple[int, int], tuple[int, int]],
    real: Mapping[tuple[int, int], tuple[int, int]],
) -> TrustedPolicy | None:
    """Only tasks tried on both sides bear on the ranking; sim's rates are weighted by the real mix of tasks."""
    tasks = [(policy, task) for policy, task in sim if policy == policy_id and (policy, task) in real]
    if not tasks:
        return None
    n_real, n_sim = sum(real[key][1] for key in tasks), sum(sim[key][1] for key in tasks)
    rate = sum(real[key][0] for key in tasks) / n_real
    in_sim = sum(real[key][1] * sim[key][0] / sim[key][1] for key in tasks) / n_real
    intervals = (wilson(round(in_sim * n_sim), n_sim), wilson(round(rate * n_real), n_real))
    return TrustedPolicy(*policy, in_sim, rate, *intervals, n_sim, n_real, len(tasks))


def _biases(
    in_sim: Sequence[Tally],
    real: Mapping[tuple[int, int], tuple[int, int]],
    simulators: Mapping[int, tuple[str, str]],
    tasks: Mapping[int, str],
) -> tuple[TaskBias, ...]:
    """Every task in every simulator, by task; of very many, those that were tried most in reality."""
    by_simulator: dict[int, list[Tally]] = {}
    for count in in_sim:
        by_simulator.setdefault(count.source_id, []).append(count)
    found = []
    for simulator_id, counts in by_simulator.items():
        sim = _table(counts)
        for task_id in {task_id for _, task_id in sim}:
            rates = [(*sim[key], *real[key]) for key in sim if key[1] == task_id and key in real]
            if rates:
                bias = policy_bias(rates)
                found.append(
                    TaskBias(
                        tasks[task_id],
                        *simulators[simulator_id],
                        len(rates),
                        sum(c[1] for c in rates),
                        sum(c[3] for c in rates),
                        bias.sim,
                        bias.real,
                        bias.value,
                        (bias.low, bias.high),
                        bias_words(bias),
                    )
                )
    most = sorted(found, key=lambda one: (-one.n_real, -one.n_sim))[:MOST_BIASES]
    return tuple(sorted(most, key=lambda one: (one.task, one.simulator, one.version)))


def bias_rows(answer: TrustAnswer) -> list[TableRow]:
    """The table of tasks and simulators, its head first, for CSV."""
    head = ["task", "simulator", "version", "policies", "n_sim", "sim", "n_real", "real", "bias", "low", "high"]
    return [
        [*head, "verdict"],
        *(
            [
                one.task,
                one.simulator,
                one.version,
                one.policies,
                one.n_sim,
                one.sim,
                one.n_real,
                one.real,
                one.bias,
                *one.interval,
                one.verdict,
            ]
            for one in answer.tasks
        ),
    ]


def _by_metric(
    connection: Connection,
    project_id: int,
    question: Question,
    policies: list[TrustedPolicy],
    ids: Mapping[tuple[str, str], int],
    task_ids: tuple[int, ...] | None,
    simulator_id: int,
) -> list[TrustedPolicy]:
    """The same policies by the mean of another metric, over all tasks together."""
    points = []
    for point in sorted(policies, key=lambda p: -min(p.n_sim, p.n_real))[:MOST_POLICIES]:
        policy_id = ids[point.policy, point.version]
        means = []
        for scope in (
            Scope("sim", (policy_id,), task_ids, (simulator_id,)),
            Scope("real", (policy_id,), task_ids),
        ):
            window = question.window
            if scope.domain == "sim" and question.sim_window is not None:
                window = question.sim_window
            rollups = sides.value_rollups(connection, project_id, scope, window, "metric")
            together = Moments()
            for rollup in rollups.get(question.metric, {}).values():
                together = together + rollup.moments
            means.append(together)
        in_sim, in_real = means
        if in_sim.mean is not None and in_real.mean is not None:
            points.append(
                TrustedPolicy(
                    point.policy,
                    point.version,
                    in_sim.mean,
                    in_real.mean,
                    None,
                    None,
                    in_sim.n,
                    in_real.n,
                    point.tasks,
                )
            )
    return sorted(points, key=lambda point: (point.policy, point.version))


def _trust_answer(
    simulator: tuple[str, str],
    others: list[tuple[tuple[str, str], int]],
    task: str | None,
    question: Question,
    policies: list[TrustedPolicy],
    better: str,
    biases: tuple[TaskBias, ...],
) -> TrustAnswer:
    # Less is better: with both signs turned the ranking, and so the regret, is right again.
    sign = 1.0 if better == "higher" else -1.0
    made = simulator_trust(
        [PolicyPoint(f"{p.policy}@{p.version}", sign * p.sim, sign * p.real, p.n_sim, p.n_real) for p in policies]
    )
    names = len({p.policy for p in policies})
    warnings: tuple[Caution, ...] = ()
    if names < len(policies):
        message = (
            f"{len(policies)} versions of {names} policies: versions of one policy resemble each other, "
            "so the interval is narrower than it should be."
        )
        warnings = (Caution("versions-resemble", message),)
    return TrustAnswer(
        simulator=simulator[0],
        version=simulator[1],
        alternatives=tuple(SimulatorCount(*pair, n) for pair, n in sorted(others, key=lambda o: (-o[1], o[0]))),
        metric=question.metric,
        task=task,
        window=NamedSpan(question.window.since, question.window.until, question.window_words),
        filter=question.filter,
        tasks=biases,
        policies=tuple(policies),
        n_policies=len(policies),
        pearson=made.pearson,
        spearman=made.spearman,
        mmrv=made.mmrv,
        interval=made.pearson_interval,
        mmrv_interval=made.mmrv_interval,
        leave_one_out=tuple(
            LeftOut(left_out.policy, left_out.pearson, left_out.mmrv) for left_out in made.leave_one_out
        ),
        largest_change=made.largest_change,
        fragile=made.fragile,
        regret=made.regret,
        convention=made.convention,
        verdict=made.verdict,
        warnings=warnings,
        reason=made.reason,
        method="intervals from draws of an empirical-Bayes line of real on sim; bias: newcombe, these policies",
    )
