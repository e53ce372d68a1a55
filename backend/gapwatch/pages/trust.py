"""`/compare/simulators`: whether a simulator ranks policies as reality does, version by version."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.responses import Response

from gapwatch.answers.question import question_of
from gapwatch.answers.trust import LeftOut, TrustAnswer, answer_trust, bias_rows
from gapwatch.errors import Invalid, NotFound
from gapwatch.filters import DropFilter, Name, TrustFilter
from gapwatch.pages.deployments.tables import csv_answer
from gapwatch.pages.figures.trust import trust_figure
from gapwatch.pages.filtering import Applied, applied, read_filter
from gapwatch.pages.frame import View, Visit
from gapwatch.pages.sentences import trust as sentences
from gapwatch.pages.sentences.sentence import Sentence
from gapwatch.store.read import directory

MOST_VERSIONS = 6
QUESTIONED = ("condition", "robot", "site", "stage", "since", "until", "metric")


class SimulatorFilter(TrustFilter):
    simulator: Name | None = None


@dataclass(frozen=True)
class VersionEntry:
    name: str
    version: str
    answer: TrustAnswer
    href: str


@dataclass(frozen=True)
class TrustPage:
    answer: TrustAnswer | None
    # The measures without the policy that they hang on most.
    carries: LeftOut | None
    versions: list[VersionEntry]
    simulators: list[str]
    tasks: list[str]
    given: dict[str, list[str]]
    applied: list[Applied]
    problems: list[str]

    @property
    def headline(self) -> Sentence:
        assert self.answer is not None  # noqa: S101 - asked for where there is an answer
        return sentences.headline(self.answer, self.carries)


def show_trust(visit: Visit) -> View | Response:
    asked = read_filter(visit.request, SimulatorFilter)
    wanted, links = asked.filter, visit.frame.links
    known = sorted(set(directory.simulators(visit.transaction, visit.project_id).values()))
    problems = list(asked.problems)
    name = wanted.simulator or (known[0][0] if known else None)
    about = DropFilter.model_validate({field: getattr(wanted, field) for field in QUESTIONED})
    question = question_of(about, datetime.now(UTC))

    def ask(version: str | None) -> TrustAnswer:
        return answer_trust(visit.transaction, visit.project_id, name or "", version, wanted.task, question)

    answer = None
    entries: list[VersionEntry] = []
    if name is not None:
        try:
            answer = ask(wanted.version)
            versions = [version for simulator, version in known if simulator == name][-MOST_VERSIONS:]
            entries = [
                VersionEntry(
                    name,
                    version,
                    answer if version == answer.version else ask(version),
                    links.to("compare", "simulators", **{**asked.given, "simulator": name, "version": version}),
                )
                for version in versions
            ]
        except (NotFound, Invalid) as error:
            problems.append(str(error))
    page = TrustPage(
        answer=answer,
        carries=None if answer is None else _carries(answer),
        versions=entries,
        simulators=sorted({simulator for simulator, _ in known}),
        tasks=sorted(directory.tasks(visit.transaction, visit.project_id).values()),
        given=asked.given,
        applied=applied(links, ("compare", "simulators"), asked.given),
        problems=problems,
    )
    if answer is not None and visit.request.query_params.get("format") == "csv":
        return csv_answer("simulators-by-task", bias_rows(answer))
    drawn = {}
    if answer is not None and answer.policies and answer.metric == "success":
        drawn["trust"] = trust_figure(answer)
    return View("trust.html", page, 422 if problems else 200, drawn)


def _carries(answer: TrustAnswer) -> LeftOut | None:
    r = answer.pearson
    known = [left_out for left_out in answer.leave_one_out if left_out.pearson is not None]
    return None if r is None else max(known, key=lambda left_out: abs((left_out.pearson or 0.0) - r), default=None)
