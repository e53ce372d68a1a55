"""`/compare`: deployments or policy versions side by side, with a verdict that holds however often one looks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import exp

from pydantic import Field

from gapwatch.answers import drop, trend
from gapwatch.answers.drop import DropAnswer, answer_drop
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.question import question_of
from gapwatch.answers.sides import Sides
from gapwatch.answers.subjects import Subject, deployment_subject, policy_subject
from gapwatch.answers.trend import Step, answer_trend
from gapwatch.errors import NotFound
from gapwatch.filters import Name, StatisticsFilter
from gapwatch.pages.figures.sides import height, sides_figure
from gapwatch.pages.filtering import Applied, applied, read_filter
from gapwatch.pages.frame import View, Visit
from gapwatch.statistics.estimates.drops import Side, rate_drop
from gapwatch.statistics.estimates.sequential import EProcess, add_block
from gapwatch.store.read import directory, fleet

NEEDS = drop.NEEDS | trend.NEEDS
MOST_SUBJECTS = 6
# An e-value of 20 is reached by chance at most once in 20 comparisons, however often one looks.
ENOUGH = 20.0
LARGEST_LOG = 50.0


class CompareFilter(StatisticsFilter):
    deployment: list[Name] = Field(default_factory=list, max_length=MOST_SUBJECTS)
    policy: list[Name] = Field(default_factory=list, max_length=MOST_SUBJECTS, description="name@version")


@dataclass(frozen=True)
class Against:
    """Real success of a subject minus that of the first, and the evidence that they differ."""

    difference: float | None
    interval: tuple[float, float] | None
    e_value: float
    verdict: str


@dataclass(frozen=True)
class Compared:
    name: str
    kind: str
    about: str
    drop: DropAnswer
    against: Against | None
    href: str | None


@dataclass(frozen=True)
class ComparePage:
    subjects: list[Compared]
    deployments: list[str]
    policies: list[str]
    given: dict[str, list[str]]
    applied: list[Applied]
    problems: list[str]
    most: int


def show_compare(visit: Visit) -> View:
    asked = read_filter(visit.request, CompareFilter)
    names = [(name, "deployment") for name in asked.filter.deployment]
    names += [(name, "policy") for name in asked.filter.policy]
    question = question_of(asked.filter, datetime.now(UTC))
    problems = list(asked.problems)
    compared: list[tuple[str, str, Sides]] = []
    for name, kind in dict.fromkeys(names[:MOST_SUBJECTS]):
        try:
            subject = _subject(visit, name, kind)
        except NotFound:
            problems.append(f"There is no {kind} {name}.")
            continue
        sides = load_sides(visit.transaction, visit.project_id, subject, question, NEEDS)
        compared.append((name, kind, sides))
    links = visit.frame.links
    subjects: list[Compared] = []
    for name, kind, sides in compared:
        against = None if not subjects else _against(compared[0][2], sides)
        about = " · ".join(
            part for part in (f"{sides.subject.policy} {sides.subject.version}", sides.subject.task) if part
        )
        href = links.to("deployments", name) if kind == "deployment" else None
        subjects.append(Compared(name, kind, about, answer_drop(sides), against, href))
    versions = directory.policy_versions(visit.transaction, visit.project_id)
    page = ComparePage(
        subjects=subjects,
        deployments=fleet.deployment_slugs(visit.transaction, visit.project_id),
        policies=sorted(f"{name}@{version}" for name, version in versions.values()),
        given=asked.given,
        applied=applied(links, ("compare",), asked.given),
        problems=problems,
        most=MOST_SUBJECTS,
    )
    figures = {}
    if subjects:
        figures["sides"] = sides_figure([(one.name, one.drop) for one in subjects])
    return View("compare.html", page, 422 if problems else 200, figures, about=height(len(subjects)))


def _subject(visit: Visit, name: str, kind: str) -> Subject:
    if kind == "deployment":
        return deployment_subject(visit.transaction, visit.project_id, name)
    policy, _, version = name.rpartition("@")
    return policy_subject(visit.transaction, visit.project_id, policy, version)


def _against(first: Sides, other: Sides) -> Against:
    mine, theirs = first.real, other.real
    # The drop from the other to the first, turned: positive when the other is better.
    found = rate_drop(Side(mine.successes, mine.n), Side(theirs.successes, theirs.n))
    if found.value is None:
        return Against(None, None, 1.0, "too few episodes")
    e_value = _evidence(_by_day(first), _by_day(other))
    word = "not settled"
    if e_value >= ENOUGH:
        word = "worse" if found.value > 0 else "better"
    return Against(-found.value, (-found.high, -found.low), e_value, word)


def _by_day(sides: Sides) -> dict[date, tuple[int, int]]:
    """Successes and attempts of each day of the version that is compared."""
    days: dict[date, tuple[int, int]] = {}
    steps: tuple[Step, ...] = answer_trend(sides).steps
    for step in steps:
        if step.current and step.n:
            k, n = days.get(step.at.date(), (0, 0))
            days[step.at.date()] = (k + step.successes, n + step.n)
    return days


def _evidence(first: dict[date, tuple[int, int]], other: dict[date, tuple[int, int]]) -> float:
    """The e-value that the two rates differ, a day a block, oldest first.

    A release follows the one before it, so the two may share no day: then first day stands beside first day.
    """
    shared = sorted(first.keys() & other.keys())
    pairs = [(day, day) for day in shared] or list(zip(sorted(first), sorted(other), strict=False))
    state = EProcess("different")
    for mine, theirs in pairs:
        (k_first, n_first), (k_other, n_other) = first[mine], other[theirs]
        state = add_block(state, sim_successes=k_first, sim_n=n_first, real_successes=k_other, real_n=n_other)
    return exp(min(LARGEST_LOG, state.highest_log_e))
