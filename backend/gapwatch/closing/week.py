"""The week on one page: what moved, incidents, fixes, gates, where robot-hours buy most, simulators' bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gapwatch.answers.fleet import FleetRow, answer_fleet
from gapwatch.answers.leading_categories import LeadingCategory, leading_categories
from gapwatch.answers.question import Question
from gapwatch.closing.closures import FixAnswer, answer_fixes
from gapwatch.closing.fix_table import FixTableRow, fix_table
from gapwatch.closing.periods import DAY, day_of
from gapwatch.rollouts.overview import next_decision, overdue_words
from gapwatch.statistics.closing.week_moves import WeekMove, week_moves
from gapwatch.statistics.estimates.rates import clustered_rate
from gapwatch.statistics.estimates.simulator_bias import bias_words, policy_bias
from gapwatch.store.core.database import Connection
from gapwatch.store.read import week_rows
from gapwatch.store.read.directory import deployments
from gapwatch.store.read.week_rows import WeekIncident, WeekPlace
from gapwatch.store.rollout.rollouts import DecisionRow, ListedDeployment, decisions_page, listed_deployments
from gapwatch.taxonomy import joint_words

Interval = tuple[float, float]
WEEK = timedelta(days=7)
MOST_DEPLOYMENTS = 5000
MOST_SHOWN = 8
MOST_FIXES = 40
# A fix is news while it is measured, and for the week after.
FIX_IS_NEWS = timedelta(days=28 + 7)


@dataclass(frozen=True)
class WeekRate:
    n: int
    value: float | None
    interval: Interval | None


@dataclass(frozen=True)
class MovedDeployment:
    """`points` is this week minus last week, in percentage points."""

    deployment: str
    last_week: WeekRate
    this_week: WeekRate
    points: float | None
    interval: Interval | None
    verdict: str


@dataclass(frozen=True)
class WeekIncidents:
    """Of the week, and what is open now; `unowned` are open and nobody's."""

    opened: int
    closed: int
    open: int
    unowned: int
    listed: tuple[WeekIncident, ...]


@dataclass(frozen=True)
class WeekDecision:
    deployment: str
    kind: str
    from_stage: str
    to_stage: str
    who: str
    reason: str
    at: datetime


@dataclass(frozen=True)
class WaitingGate:
    deployment: str
    stage: str
    verdict: str | None
    next_decision: str
    overdue: str | None


@dataclass(frozen=True)
class WorthHours:
    """A deployment where robot-hours would buy most: failures a week that simulation says need not be.

    `failures_a_week` by the lower end of the drop now; `points_per_robot_hour` by the team's own fixes of the
    leading category.
    """

    deployment: str
    drop: float
    interval: Interval
    episodes_a_week: int
    failures_a_week: float
    category: str | None
    category_name: str | None
    fix_kind: str | None
    points_per_robot_hour: float | None
    points_per_robot_hour_interval: Interval | None


@dataclass(frozen=True)
class WeekBias:
    """Sim minus real on a task, over the policies that ran there now."""

    simulator: str
    version: str
    task: str
    policies: int
    n_sim: int
    n_real: int
    bias: float
    interval: Interval
    verdict: str


@dataclass(frozen=True)
class WeekAnswer:
    since: datetime
    until: datetime
    deployments: int
    moved: tuple[MovedDeployment, ...]
    steady: int
    too_few: int
    incidents: WeekIncidents
    fixes: tuple[FixAnswer, ...]
    decided: tuple[WeekDecision, ...]
    waiting: tuple[WaitingGate, ...]
    worth_hours: tuple[WorthHours, ...]
    simulators: tuple[WeekBias, ...]
    method: str


METHOD = (
    "seven days against the seven before, intervals clustered by robot and day; moved where q ≤ 5 % over all "
    "deployments (Benjamini and Hochberg)"
)


def answer_week(connection: Connection, project_id: int, now: datetime) -> WeekAnswer:
    """Whole days, today included."""
    until = day_of(now) + DAY
    since = until - WEEK
    places = week_rows.week_places(connection, project_id, since - WEEK, until)
    incidents = week_rows.week_incidents(connection, project_id, since)
    fleet = answer_fleet(connection, project_id, Question(now, asked_window="now"), None, MOST_DEPLOYMENTS, "now")
    leads = leading_categories(connection, project_id)
    slugs = {one.id: one.slug for one in deployments(connection, project_id, None, MOST_DEPLOYMENTS)}
    fixes = answer_fixes(connection, project_id, now, limit=MOST_FIXES)
    listed = listed_deployments(connection, project_id, MOST_DEPLOYMENTS)
    decided = decisions_page(connection, project_id, deployment=None, before_id=None, limit=50)
    moved, steady, few = _moved(places, since)
    rows = fleet.deployments
    return WeekAnswer(
        since,
        until,
        len(rows),
        tuple(moved),
        steady,
        few,
        _incidents(incidents, since),
        tuple(fix for fix in fixes if _is_news(fix, now))[:MOST_SHOWN],
        tuple(_decision(row) for row in decided if row.at >= since)[:MOST_SHOWN],
        tuple(_waiting(listed, now))[:MOST_SHOWN],
        tuple(_worth_hours(rows, _a_week(places, since), _by_slug(leads, slugs), fix_table(fixes)))[:MOST_SHOWN],
        tuple(_biases(rows)),
        METHOD,
    )


def _moved(places: Sequence[WeekPlace], since: datetime) -> tuple[list[MovedDeployment], int, int]:
    """Those that moved, the largest first; how many are steady, and how many have too few episodes to say."""
    weeks: dict[str, tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {}
    for place in places:
        pair = weeks.setdefault(place.deployment, ([], []))
        pair[place.day >= since].append((place.successes, place.successes + place.failures))
    moves = week_moves(list(weeks.values()))
    found = [_move(slug, pair, move) for (slug, pair), move in zip(weeks.items(), moves, strict=True)]
    moved = [one for one in found if one.verdict in ("rose", "fell")]
    moved.sort(key=lambda one: (one.verdict != "fell", -abs(one.points or 0.0)))
    verdicts = [one.verdict for one in found]
    return moved[: 2 * MOST_SHOWN], verdicts.count("steady"), verdicts.count("too few episodes")


def _move(slug: str, pair: tuple[list[tuple[int, int]], list[tuple[int, int]]], move: WeekMove) -> MovedDeployment:
    before, after = (_week_rate(week) for week in pair)
    interval = None if move.interval is None else (100 * move.interval[0], 100 * move.interval[1])
    points = None if move.value is None else 100 * move.value
    return MovedDeployment(slug, before, after, points, interval, move.verdict)


def _week_rate(week: Sequence[tuple[int, int]]) -> WeekRate:
    if not week:
        return WeekRate(0, None, None)
    found = clustered_rate([k for k, _ in week], [n for _, n in week], "robot and day")
    return WeekRate(found.n, found.value, (found.low, found.high))


def _incidents(rows: Sequence[WeekIncident], since: datetime) -> WeekIncidents:
    is_open = [row for row in rows if row.state != "resolved"]
    unowned = [row for row in is_open if row.owner is None]
    return WeekIncidents(
        sum(row.opened_at >= since for row in rows),
        sum(row.resolved_at is not None and row.resolved_at >= since for row in rows),
        len(is_open),
        len(unowned),
        tuple(sorted(is_open, key=lambda row: (row.owner is not None, row.severity != "critical", -row.id)))[
            :MOST_SHOWN
        ],
    )


def _is_news(fix: FixAnswer, now: datetime) -> bool:
    began = fix.shipped_at or fix.at
    return now - began < FIX_IS_NEWS


def _decision(row: DecisionRow) -> WeekDecision:
    return WeekDecision(row.deployment, row.kind, row.from_stage, row.to_stage, row.who, row.reason, row.at)


def _waiting(listed: Sequence[ListedDeployment], now: datetime) -> list[WaitingGate]:
    """Rollouts on which a person should decide something; the overdue first."""
    waiting = []
    for one in listed:
        rollout = one.rollout
        if rollout is None:
            continue
        verdict = None if rollout.gate is None else str(rollout.gate["verdict"])
        following, overdue = next_decision(rollout, verdict), overdue_words(rollout, now)
        if overdue is None and (following.startswith(("wait", "nothing", "give it a plan"))):
            continue
        waiting.append(WaitingGate(one.slug, rollout.stage, verdict, following, overdue))
    waiting.sort(key=lambda gate: (gate.overdue is None, gate.deployment))
    return waiting


def _a_week(places: Sequence[WeekPlace], since: datetime) -> dict[str, int]:
    episodes: dict[str, int] = {}
    for place in places:
        if place.day >= since:
            episodes[place.deployment] = episodes.get(place.deployment, 0) + place.successes + place.failures
    return episodes


def _by_slug(leads: Mapping[int, LeadingCategory], slugs: Mapping[int, str]) -> dict[str, LeadingCategory]:
    return {slugs[number]: lead for number, lead in leads.items() if number in slugs}


def _worth_hours(
    rows: Sequence[FleetRow],
    episodes: Mapping[str, int],
    leads: Mapping[str, LeadingCategory],
    table: Sequence[FixTableRow],
) -> list[WorthHours]:
    """By the failures a week that are surely more than simulation's, the most first."""
    found = []
    for row in rows:
        drop, weekly = row.now.drop, episodes.get(row.slug, 0)
        if drop.value is None or drop.interval is None or drop.interval[0] <= 0 or not weekly:
            continue
        lead = leads.get(row.slug)
        best = next(
            (
                one
                for one in sorted(table, key=lambda one: -(one.points_per_robot_hour or 0.0))
                if lead is not None and one.category == lead.category and (one.points_per_robot_hour or 0) > 0
            ),
            None,
        )
        found.append(
            WorthHours(
                row.slug,
                drop.value,
                drop.interval,
                weekly,
                drop.interval[0] * weekly,
                None if lead is None else lead.category,
                None if lead is None else joint_words(lead.category),
                None if best is None else best.kind_name,
                None if best is None else best.points_per_robot_hour,
                None if best is None else best.points_per_robot_hour_interval,
            )
        )
    found.sort(key=lambda one: (-one.failures_a_week, one.deployment))
    return found


def _biases(rows: Sequence[FleetRow]) -> list[WeekBias]:
    """Each simulator's bias on each task, the largest for certain first."""
    groups: dict[tuple[str, str, str], dict[tuple[str, str], list[FleetRow]]] = {}
    for row in rows:
        if row.simulator is not None and row.simulator_version is not None and row.sim.n and row.real.n:
            policies = groups.setdefault((row.simulator, row.simulator_version, row.task), {})
            policies.setdefault((row.policy, row.version), []).append(row)
    found = []
    for (simulator, version, task), policies in groups.items():
        counts = [_bias_counts(of_policy) for of_policy in policies.values()]
        bias = policy_bias(counts)
        found.append(
            WeekBias(
                simulator,
                version,
                task,
                len(policies),
                sum(c[1] for c in counts),
                sum(c[3] for c in counts),
                bias.value,
                (bias.low, bias.high),
                bias_words(bias),
            )
        )
    found.sort(key=lambda one: (-max(one.interval[0], -one.interval[1]), one.simulator, one.task))
    return found


def _bias_counts(rows: Sequence[FleetRow]) -> tuple[int, int, int, int]:
    """One policy: its deployments share the sim episodes."""
    sim = rows[0].sim
    real = [row.real for row in rows]
    return (
        round((sim.value or 0.0) * sim.n),
        sim.n,
        sum(round((side.value or 0.0) * side.n) for side in real),
        sum(side.n for side in real),
    )
