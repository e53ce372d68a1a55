"""`/compare`: deployments or policy versions side by side, with a verdict that holds however often one looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import Field

from gapwatch.answers import drop, trend
from gapwatch.answers.drop import answer_drop
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.question import Question, question_of
from gapwatch.answers.real_difference import real_difference
from gapwatch.answers.sides import Sides
from gapwatch.answers.subjects import Subject, deployment_subject, policy_subject
from gapwatch.errors import NotFound
from gapwatch.filters import Name, StatisticsFilter
from gapwatch.pages.compared_subject import ComparedSubject
from gapwatch.pages.figures.sides import height, sides_figure
from gapwatch.pages.filtering import (
    Applied,
    WindowPicker,
    applied,
    read_filter,
    window_or_now,
    window_picker,
)
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.sentences import compare as sentences
from gapwatch.pages.sentences.sentence import Sentence
from gapwatch.store.read import directory, fleet

NEEDS = drop.NEEDS | trend.NEEDS
MOST_SUBJECTS = 6


class CompareFilter(StatisticsFilter):
    deployment: list[Name] = Field(default_factory=list, max_length=MOST_SUBJECTS)
    policy: list[Name] = Field(default_factory=list, max_length=MOST_SUBJECTS, description="name@version")


@dataclass(frozen=True)
class ComparePage:
    subjects: list[ComparedSubject]
    deployments: list[str]
    policies: list[str]
    given: dict[str, list[str]]
    applied: list[Applied]
    window: WindowPicker
    problems: list[str]
    most: int

    @property
    def headline(self) -> Sentence:
        return sentences.headline(self.subjects)


def show_compare(visit: Visit) -> View:
    asked = read_filter(visit.request, CompareFilter)
    names = [(name, "deployment") for name in asked.filter.deployment]
    names += [(name, "policy") for name in asked.filter.policy]
    question = question_of(asked.filter.model_copy(update=window_or_now(asked.given)), datetime.now(UTC))
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
    subjects: list[ComparedSubject] = []
    for name, kind, sides in compared:
        against = None if not subjects else real_difference(compared[0][2], sides)
        about = " · ".join(
            part for part in (f"{sides.subject.policy} {sides.subject.version}", sides.subject.task) if part
        )
        href = links.to("deployments", name) if kind == "deployment" else None
        subjects.append(ComparedSubject(name, kind, about, answer_drop(sides), against, href))
    versions = directory.policy_versions(visit.transaction, visit.project_id)
    page = ComparePage(
        subjects=subjects,
        deployments=fleet.deployment_slugs(visit.transaction, visit.project_id),
        policies=sorted(f"{name}@{version}" for name, version in versions.values()),
        given=asked.given,
        applied=applied(links, ("compare",), asked.given),
        window=window_picker(links, ("compare",), asked.given, _window_words(question, compared)),
        problems=problems,
        most=MOST_SUBJECTS,
    )
    figures = {}
    if subjects:
        figures["sides"] = sides_figure([(subject.name, subject.drop) for subject in subjects])
    return View("compare.html", page, 422 if problems else 200, figures, about=height(len(subjects)))


def _window_words(question: Question, compared: Sequence[tuple[str, str, Sides]]) -> str:
    """What the window is called; several names where it means something else for each."""
    return (
        " · ".join(dict.fromkeys(sides.question.window_words for _, _, sides in compared)) or question.window_words
    )


def _subject(visit: Visit, name: str, kind: str) -> Subject:
    if kind == "deployment":
        return deployment_subject(visit.transaction, visit.project_id, name)
    policy, _, version = name.rpartition("@")
    return policy_subject(visit.transaction, visit.project_id, policy, version)
