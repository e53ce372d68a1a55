"""Sim beside real: the baseline chosen, both sides loaded once, for one answer or for all answers of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from gapwatch.answers.answer import Baseline, Caution, SimulatorCount, Span
from gapwatch.answers.baselines import Choice, choose, on_sim
from gapwatch.answers.contracts import ContractPair, pair_contracts
from gapwatch.answers.half import Half
from gapwatch.answers.question import Question
from gapwatch.answers.tallies import ALL_TIME
from gapwatch.errors import NotFound
from gapwatch.store import directory, sides
from gapwatch.store.database import Connection
from gapwatch.store.directory import Deployment
from gapwatch.store.sides import CellCount, CellFilter, PairRow, Scope
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
    """Everything is read lazily and once. Half a dozen answers from one object cost no more than their parts."""

    def __init__(self, connection: Connection, project_id: int, subject: Subject, question: Question) -> None:
        self.connection = connection
        self.project_id = project_id
        self.subject = subject
        self.question = question
        self._made: dict[str, Any] = {}

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What several answers work out alike, worked out once."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made

    @cached_property
    def options(self) -> Mapping[str, Any]:
        return directory.project_options(self.connection, self.project_id)

    @cached_property
    def taxonomy(self) -> Taxonomy:
        return Taxonomy(self.options.get("taxonomy"))

    @cached_property
    def simulators(self) -> Mapping[int, tuple[str, str]]:
        return directory.simulators(self.connection, self.project_id)

    @cached_property
    def real(self) -> Half:
        source = self.subject.deployment_id
        scope = self.subject.scope("real", None if source is None else (source,))
        window = self.question.window
        counted = sides.cell_counts(self.connection, self.project_id, scope, window)
        return Half(self.connection, self.project_id, scope, window, self.question.wanted, counted)

    @cached_property
    def _all_sim(self) -> list[CellCount]:
        """All time, because the choice of a baseline must not depend on the window that is looked at."""
        return sides.cell_counts(self.connection, self.project_id, self.subject.scope("sim"), ALL_TIME)

    @cached_property
    def _sizes(self) -> dict[int, int]:
        sizes: dict[int, int] = {}
        for cell in self._all_sim:
            sizes[cell.source_id] = sizes.get(cell.source_id, 0) + cell.successes + cell.failures
        return sizes

    @cached_property
    def _choice(self) -> Choice | None:
        """None where no simulator has episodes, or the named one has none."""
        named, pinned = self.question.simulators, self.subject.pinned_simulator_id
        return choose(self._sizes, self.simulators, named, pinned)

    @cached_property
    def sim(self) -> Half:
        if self._choice is None:
            scope = self.subject.scope("sim", ())
            return Half(self.connection, self.project_id, scope, ALL_TIME, self.question.wanted, ())
        scope = self.subject.scope("sim", (self._choice.simulator_id,))
        counted = [cell for cell in self._all_sim if cell.source_id == self._choice.simulator_id]
        window = ALL_TIME
        if self.question.window != ALL_TIME:
            within = sides.cell_counts(self.connection, self.project_id, scope, self.question.window)
            if any(cell.successes + cell.failures for cell in within):
                counted, window = within, self.question.window
        wanted = on_sim(self.question.wanted, (cell.cell for cell in counted))
        return Half(self.connection, self.project_id, scope, window, wanted, counted)

    @cached_property
    def baseline(self) -> Baseline | None:
        if self._choice is None:
            return None
        name, version = self.simulators[self._choice.simulator_id]
        others = sorted(((n, i) for i, n in self._sizes.items() if n), key=lambda pair: (-pair[0], pair[1]))
        span = None if self.sim.window == ALL_TIME else Span(self.sim.window.since, self.sim.window.until)
        return Baseline(
            name,
            version,
            self._choice.why,
            self.sim.n,
            span,
            tuple(SimulatorCount(*self.simulators[i], n) for n, i in others if i != self._choice.simulator_id),
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
    def pooled(self) -> dict[str, int]:
        return dict(sides.pooled_conditions(self.connection, self.project_id))

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


def compare_deployment(connection: Connection, project_id: int, slug: str, question: Question) -> Comparison:
    """A deployment's episodes of its current policy version and task, beside their baseline."""
    found = directory.find_deployment(connection, project_id, slug)
    if found is None:
        raise NotFound("There is no deployment with this name.")
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
    return Comparison(connection, project_id, subject, question)


def compare_policy(
    connection: Connection, project_id: int, name: str, version: str | None, question: Question
) -> Comparison:
    """All real episodes of a policy version beside all its sim episodes, over every task.

    Without a version: the newest that has run on a robot, else the newest. Versions are never mixed: zero-shot and
    fine-tuned stay apart.
    """
    known = directory.policies(connection, project_id, name)
    if version is not None:
        known = {policy_id: word for policy_id, word in known.items() if word == version}
    if not known:
        raise NotFound("There is no policy with this name and version.")
    chosen = max(known)
    if len(known) > 1:
        scope = Scope("real", tuple(known))
        counts = sides.bucket_counts(connection, project_id, scope, ALL_TIME, "month")
        chosen = max((count.policy_id for count in counts), default=chosen)
    return Comparison(connection, project_id, Subject(chosen, name, known[chosen]), question)


def _people(given: CellFilter, kept: CellFilter) -> list[tuple[str, frozenset[str], frozenset[str]]]:
    return [
        ("robot", given.robots, kept.robots),
        ("site", given.sites, kept.sites),
        ("stage", given.stages, kept.stages),
    ]
