"""Sim beside real: the baseline chosen, both sides loaded once, for one answer or for all answers of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar
from weakref import proxy

from gapwatch.answers.answer import Baseline, Caution, SimulatorCount, Span
from gapwatch.answers.baselines import Choice, choose, on_sim
from gapwatch.answers.comparison_side import (
    Half,
    Reading,
    by_source,
)
from gapwatch.answers.contract_pairs import ContractPair, pair_contracts
from gapwatch.answers.question import Question
from gapwatch.answers.tallies import ALL_TIME
from gapwatch.errors import NotFound
from gapwatch.store.core.database import Connection
from gapwatch.store.read import directory, sides
from gapwatch.store.read.directory import (
    DatedEvent,
    Deployment,
    Surroundings,
)
from gapwatch.store.read.sides import (
    BucketCount,
    CellCount,
    CellFilter,
    PairRow,
    Scope,
    Window,
)
from gapwatch.taxonomy import Taxonomy

T = TypeVar("T")

MOST_PAIRS = 5000


@dataclass(frozen=True)
class Subject:
    """What is asked about: a deployment (one task), or a policy version over all its tasks and deployments."""

    policy_id: int
    policy: str
    version: str
    task_ids: tuple[int, ...] | None = None
    task: str | None = None
    deployment_id: int | None = None
    deployment: str | None = None
    pinned_simulator_id: int | None = None
    described: Deployment | None = None

    def scope(self, domain: str, source_ids: tuple[int, ...] | None = None) -> Scope:
        return Scope("sim" if domain == "sim" else "real", (self.policy_id,), self.task_ids, source_ids)


class Comparison:
    """Everything is read lazily and once. Half a dozen answers from one object cost no more than their parts.

    `whole`: all answers will be asked for, so what one of them needs may serve the others.
    `brief`: without pairs of levels and shares of single conditions, which a page does not show.
    """

    def __init__(
        self,
        connection: Connection,
        project_id: int,
        subject: Subject,
        question: Question,
        around: Surroundings | None = None,
        *,
        whole: bool = False,
        brief: bool = False,
    ) -> None:
        self.connection = connection
        self.project_id = project_id
        self.subject = subject
        self.question = question
        self._around = around
        self._whole = whole
        self.brief = brief
        self._made: dict[str, Any] = {}

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What several answers work out alike, worked out once."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made

    @cached_property
    def around(self) -> Surroundings:
        if self._around is not None:
            return self._around
        return directory.surroundings(self.connection, self.project_id, self.subject.policy)

    @property
    def options(self) -> Mapping[str, Any]:
        return self.around.options

    @property
    def versions(self) -> Mapping[int, str]:
        """Of the policy, oldest first."""
        return self.around.versions

    @property
    def events(self) -> tuple[DatedEvent, ...]:
        """What happened in the window, oldest first: here, or to the whole project."""
        return self.events_since(self.question.window.since)

    def events_since(self, since: datetime | None) -> tuple[DatedEvent, ...]:
        until = self.question.window.until
        return tuple(
            event
            for event in self.around.events
            if (since is None or event.at >= since) and (until is None or event.at < until)
        )

    @property
    def pooled(self) -> Mapping[str, int]:
        """Conditions that are not counted apart, and how many levels they had."""
        return self.around.pooled

    @cached_property
    def taxonomy(self) -> Taxonomy:
        return Taxonomy(self.options.get("taxonomy"))

    @cached_property
    def _asked(self) -> list[tuple[Scope, Window]]:
        """Real in the window, sim over all time, and sim in the window.

        All time, because the choice of a baseline must not depend on the window that is looked at.
        """
        window = self.question.window
        sim = self.subject.scope("sim")
        return [(self._real_scope, window), (sim, ALL_TIME)] + ([(sim, window)] if window != ALL_TIME else [])

    @property
    def _counts_first(self) -> bool:
        """Whether a baseline is chosen without cells; with a filter, or for a whole page, all are read anyway."""
        return self.question.wanted.is_open and not self._whole

    @cached_property
    def _cells(self) -> list[list[CellCount]]:
        """Of all that was asked, or where the baseline is chosen before: of the two sides."""
        asked = [(half.scope, half.window) for half in self._halves] if self._counts_first else self._asked
        return sides.each_cell_counts(self.connection, self.project_id, asked)

    @cached_property
    def _totals(self) -> list[dict[int, Sequence[int]]]:
        """Outcomes by source."""
        if self._counts_first:
            return [by_source(found) for found in sides.each_totals(self.connection, self.project_id, self._asked)]
        return [by_source(cells) for cells in self._cells]

    @property
    def _real_scope(self) -> Scope:
        source = self.subject.deployment_id
        return self.subject.scope("real", None if source is None else (source,))

    @cached_property
    def _sizes(self) -> dict[int, int]:
        return {source: totals[0] + totals[1] for source, totals in self._totals[1].items()}

    @cached_property
    def _choice(self) -> Choice | None:
        """None where no simulator has episodes, or the named one has none."""
        named, pinned = self.question.simulators, self.subject.pinned_simulator_id
        return choose(self._sizes, self.around.simulators, named, pinned)

    @property
    def _halves(self) -> tuple[Half, Half]:
        return self._reading.halves

    @cached_property
    def _reading(self) -> Reading:
        # The sides know the comparison weakly (`Half.read_by`).
        me = proxy(self)
        wanted = self.question.wanted
        totals = [sum(counts) for counts in zip(*self._totals[0].values(), strict=True)] or [0, 0, 0, 0]
        real = Half(
            self._real_scope,
            self.question.window,
            wanted,
            lambda: me._cells[1 if me._counts_first else 0],
            totals if wanted.is_open else None,
        )
        sim = self._sim_half()
        at_once = self._whole and wanted.is_open
        by_day = (lambda half: me._failures_by_day(half)) if at_once else None  # noqa: PLW0108 - a method holds `self`
        return Reading(self.connection, self.project_id, (sim, real), by_day)

    @cached_property
    def _days(self) -> list[list[BucketCount]]:
        """Real over all versions, because a release explains much; for a whole page the baseline too."""
        real = self.real
        scope = Scope("real", tuple(self.versions), real.scope.task_ids, real.scope.source_ids)
        if not real.wanted.is_open:
            found = sides.bucket_counts(self.connection, self.project_id, scope, real.window, "day", by_cell=True)
            return [[day for day in found if day.cell is not None and real.wanted.matches(day.cell)]]
        asked = [(scope, real.window)]
        if self._whole and self.sim.n:
            asked.append((self.sim.scope, self.sim.window))
        return sides.each_day_counts(self.connection, self.project_id, asked)

    @property
    def days(self) -> list[BucketCount]:
        """The real episodes by day, version, robot and site; with a filter by cell."""
        return self._days[0]

    def _failures_by_day(self, half: Half) -> dict[datetime, int]:
        days = self._days[1] if half is self.sim else self.days
        return sides.failures_by_day(day for day in days if day.policy_id in half.scope.policy_ids)

    @property
    def sim(self) -> Half:
        return self._halves[0]

    @property
    def real(self) -> Half:
        return self._halves[1]

    def _sim_half(self) -> Half:
        wanted = self.question.wanted
        if self._choice is None:
            return Half(self.subject.scope("sim", ()), ALL_TIME, wanted, lambda: (), (0, 0, 0, 0))
        chosen = self._choice.simulator_id
        place, window = 1, ALL_TIME
        within = self._totals[2].get(chosen, (0, 0)) if len(self._totals) > 2 else (0, 0)  # noqa: PLR2004
        if within[0] + within[1]:
            place, window = 2, self.question.window

        me = proxy(self)

        def count() -> list[CellCount]:
            if me._counts_first:
                return list(me._cells[0])
            return [cell for cell in me._cells[place] if cell.source_id == chosen]

        scope = self.subject.scope("sim", (chosen,))
        if wanted.is_open:
            return Half(scope, window, wanted, count, self._totals[place].get(chosen, (0, 0, 0, 0)))
        return Half(scope, window, on_sim(wanted, (cell.cell for cell in count())), count, None)

    @cached_property
    def baseline(self) -> Baseline | None:
        if self._choice is None:
            return None
        name, version = self.around.simulators[self._choice.simulator_id]
        others = sorted(((n, i) for i, n in self._sizes.items() if n), key=lambda pair: (-pair[0], pair[1]))
        span = None if self.sim.window == ALL_TIME else Span(self.sim.window.since, self.sim.window.until)
        return Baseline(
            name,
            version,
            self._choice.why,
            self.sim.n,
            span,
            tuple(
                SimulatorCount(*self.around.simulators[i], n) for n, i in others if i != self._choice.simulator_id
            ),
        )

    @cached_property
    def contract(self) -> ContractPair:
        return pair_contracts(self.sim.contracts, self.real.contracts)

    @cached_property
    def pairs(self) -> list[PairRow]:
        """The pairs both of whose episodes match; none where a side is empty."""
        if not self.sim.n or not self.real.n:
            return []
        return sides.paired_episodes(
            self.connection,
            self.project_id,
            self.real.scope,
            self.sim.scope,
            self.question.window,
            self.question.wanted,
            MOST_PAIRS,
        )

    @cached_property
    def warnings(self) -> tuple[Caution, ...]:
        """The contract first: sides that do not mean the same by an action need no statistics."""
        found = list(self.contract.cautions())
        asked = self.question.window != ALL_TIME
        if asked and self.baseline is not None and self.sim.window == ALL_TIME:
            found.append(
                Caution("whole-baseline", "No sim episode lies in this window: the whole baseline is used.")
            )
        dropped = [word for word, given, kept in _people(self.question.wanted, self.sim.wanted) if given != kept]
        if dropped and self.sim.n:
            words = " or ".join(dropped)
            message = f"The sim episodes name no {words}: that filter acts on the real side only."
            found.append(Caution("filter-not-on-sim", message))
        return tuple(found)

    @cached_property
    def reason(self) -> str | None:
        """Why the sides cannot be compared, or None."""
        asked = self.question.wanted.conditions
        pooled = [name for name in asked if name in self.pooled] if asked else []
        if pooled:
            return (
                f"{pooled[0]} has more than {self.pooled[pooled[0]]} levels, so its levels are not counted apart; "
                "list the episodes instead, or send the condition in fewer levels."
            )
        who = f"{self.subject.policy} {self.subject.version}"
        on = "" if self.subject.task is None else f" on {self.subject.task}"
        if not self.sim.n:
            if self.question.simulators and self._choice is None:
                return f"No sim episodes of {who}{on} from the simulator that was named."
            if self.sim.n_unfiltered:
                return "The filter leaves no sim episodes."
            return f"No sim episodes of {who}{on}."
        if not self.real.n:
            if self.real.n_unfiltered:
                return "The filter leaves no real episodes."
            return f"No real episodes of {who}{on} in this window."
        return None

    def told(self, reason: str | None = None) -> dict[str, Any]:
        """The fields that every answer carries."""
        return {
            "deployment": self.subject.deployment,
            "policy": self.subject.policy,
            "version": self.subject.version,
            "task": self.subject.task,
            "window": Span(self.question.window.since, self.question.window.until),
            "filter": self.question.given,
            "baseline": self.baseline,
            "n_sim": self.sim.n,
            "n_real": self.real.n,
            "warnings": self.warnings,
            "reason": self.reason or reason,
        }


def compare_deployment(
    connection: Connection,
    project_id: int,
    slug: str,
    question: Question,
    *,
    whole: bool = False,
    brief: bool = False,
) -> Comparison:
    """A deployment's episodes of its current policy version and task, beside their baseline."""
    known = directory.find_subject(connection, project_id, slug)
    if known is None:
        raise NotFound("There is no deployment with this name.")
    found, around = known
    subject = Subject(
        found.policy_id,
        found.policy,
        found.version,
        (found.task_id,),
        found.task,
        found.id,
        found.slug,
        found.pinned_simulator_id,
        found,
    )
    return Comparison(connection, project_id, subject, question, around, whole=whole, brief=brief)


def compare_policy(
    connection: Connection, project_id: int, name: str, version: str | None, question: Question
) -> Comparison:
    """All real episodes of a policy version beside all its sim episodes, over every task.

    Without a version: the newest that has run on a robot, else the newest. Versions are never mixed: zero-shot and
    fine-tuned stay apart.
    """
    around = directory.surroundings(connection, project_id, name)
    known = {i: word for i, word in around.versions.items() if version in (None, word)}
    if not known:
        raise NotFound("There is no policy with this name and version.")
    chosen = max(known)
    if len(known) > 1:
        scope = Scope("real", tuple(known))
        counts = sides.bucket_counts(connection, project_id, scope, ALL_TIME, "month")
        chosen = max((count.policy_id for count in counts), default=chosen)
    return Comparison(connection, project_id, Subject(chosen, name, known[chosen]), question, around)


def _people(given: CellFilter, kept: CellFilter) -> list[tuple[str, frozenset[str], frozenset[str]]]:
    return [
        ("robot", given.robots, kept.robots),
        ("site", given.sites, kept.sites),
        ("stage", given.stages, kept.stages),
    ]
