"""Sim beside real, loaded: everything that answers read, and what several of them derive from it alike.

`load_sides` makes it. Nothing here touches a database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from gapwatch.answers.answer import SIMULATION, Baseline, Caution, HeldAgainst, NamedSpan, Span
from gapwatch.answers.cell_table import CellTable
from gapwatch.answers.comparison_side import ComparisonSide, Outcomes, SideData
from gapwatch.answers.contract_pairs import ContractPair, pair_contracts
from gapwatch.answers.level_drops import level_drops
from gapwatch.answers.needs import Need, loaded
from gapwatch.answers.onset_search import DatedOnset, search_onset
from gapwatch.answers.question import Question, history_window
from gapwatch.answers.strata import level_counts
from gapwatch.answers.subjects import Subject
from gapwatch.answers.tallies import ALL_TIME
from gapwatch.answers.window_words import no_before_words
from gapwatch.statistics.causes.slices import Counts, Slice
from gapwatch.store.read.directory import DatedEvent
from gapwatch.store.read.range_measurements import RangesRead
from gapwatch.store.read.shadow_episodes import ShadowRead
from gapwatch.store.read.sides import BucketCount, CellFilter, PairRow, SampledRows
from gapwatch.taxonomy import Taxonomy

# What `answer_fields` reads: the contracts, because sides that differ in them carry a warning.
ANSWER_FIELDS = Need.CONTRACTS
MOST_REPEATED = 10_000
# What a side without episodes has loaded.
NO_EPISODES = SampledRows((), (), {}, {})
NOTHING = SideData([], [], [], [], [], NO_EPISODES, NO_EPISODES, {}, {}, [])


@dataclass(frozen=True)
class SharedData:
    """What was loaded of both sides together; None where no need called for it."""

    days: Sequence[BucketCount] | None = None
    trend: Sequence[BucketCount] | None = None
    pairs: Sequence[PairRow] | None = None
    tasks: Mapping[int, str] | None = None
    shadow: ShadowRead | None = None
    ranges: RangesRead | None = None


@dataclass(frozen=True)
class Sides:
    """`baseline` is None where no simulator has episodes, or the named one has none."""

    subject: Subject
    question: Question
    sim: ComparisonSide
    real: ComparisonSide
    baseline: Baseline | None
    data: SharedData
    # The real episodes before the present; None where nothing changed, or nobody asked.
    before: ComparisonSide | None = None

    @cached_property
    def as_asked(self) -> Sides:
        """The sides that are held against each other: real and sim, or the present and what was before."""
        if not self.question.is_against_before:
            return self
        nothing = ComparisonSide(
            self.real.scope, self.real.window, self.real.filter, Outcomes(), 0, NOTHING, is_before=True
        )
        return replace(self, sim=self.before or nothing, baseline=None)

    @property
    def is_unfiltered(self) -> bool:
        return self.question.wanted.is_open

    @property
    def options(self) -> Mapping[str, Any]:
        return self.subject.surroundings.options

    @property
    def versions(self) -> Mapping[int, str]:
        """Of the policy, oldest first."""
        return self.subject.surroundings.versions

    @property
    def pooled(self) -> Mapping[str, int]:
        """Conditions that are not counted apart, and how many levels they had."""
        return self.subject.surroundings.pooled

    @property
    def events(self) -> tuple[DatedEvent, ...]:
        """What happened in the window, oldest first: here, or to the whole project."""
        return self.events_since(history_window(self.question).since)

    def events_since(self, since: datetime | None) -> tuple[DatedEvent, ...]:
        until = history_window(self.question).until
        return tuple(
            event
            for event in self.subject.surroundings.events
            if (since is None or event.at >= since) and (until is None or event.at < until)
        )

    @cached_property
    def taxonomy(self) -> Taxonomy:
        return Taxonomy(self.options.get("taxonomy"))

    @property
    def days(self) -> Sequence[BucketCount]:
        """The real episodes by day, version, robot and site; with a filter by cell."""
        return loaded(self.data.days, Need.DAYS)

    @property
    def trend(self) -> Sequence[BucketCount]:
        """The real episodes in the steps of the trend."""
        return loaded(self.data.trend, Need.TREND)

    @property
    def pairs(self) -> Sequence[PairRow]:
        """The pairs both of whose episodes match; none where a side is empty."""
        return loaded(self.data.pairs, Need.PAIRS)

    @property
    def tasks(self) -> Mapping[int, str]:
        return loaded(self.data.tasks, Need.TASKS)

    @property
    def shadow(self) -> ShadowRead:
        """The newest episodes in shadow that match; of every window by name, all of this policy version."""
        return loaded(self.data.shadow, Need.SHADOW)

    @property
    def ranges(self) -> RangesRead:
        """What the baseline's simulator was randomised over, and what was measured of it."""
        return loaded(self.data.ranges, Need.RANGES)

    @cached_property
    def table(self) -> CellTable:
        return CellTable(self.sim.cells, self.real.cells)

    @cached_property
    def level_counts(self) -> dict[tuple[str, str], Counts]:
        return level_counts(self.table)

    @cached_property
    def level_drops(self) -> list[Slice]:
        return level_drops(self.level_counts, self.table, (self.sim.crowding, self.real.crowding))

    @cached_property
    def onset(self) -> DatedOnset:
        return search_onset(self.days, self.versions, self.sim.outcomes, self.events)

    @cached_property
    def contract(self) -> ContractPair:
        robots = self.real.data.robot_contracts or ()
        return pair_contracts(self.sim.contracts, self.real.contracts, self.words, robots)

    @property
    def words(self) -> tuple[str, str]:
        """What the two sides are called."""
        return ("before", "since") if self.sim.is_before else ("sim", "real")

    @property
    def against(self) -> HeldAgainst:
        if not self.sim.is_before:
            return SIMULATION
        before = self.subject.before_or_event(self.question.now)
        if before is None:
            return HeldAgainst("before", "before the change", None)
        return HeldAgainst("before", before.words, Span(before.since, before.until))

    @cached_property
    def warnings(self) -> tuple[Caution, ...]:
        """The contract first: sides that do not mean the same by an action need no statistics."""
        warnings = list(self.contract.cautions())
        has_window = self.question.window != ALL_TIME and self.question.sim_window is None
        if has_window and self.baseline is not None and self.sim.window == ALL_TIME:
            warnings.append(
                Caution("whole-baseline", "No sim episode lies in this window: the whole baseline is used.")
            )
        dropped = _dropped_filters(self.question.wanted, self.sim.filter)
        if dropped and self.sim.n:
            words = " or ".join(dropped)
            message = f"The sim episodes name no {words}: that filter acts on the real side only."
            warnings.append(Caution("filter-not-on-sim", message))
        warnings += clustering_caution(self.subject.surroundings.clusters)
        warnings += repeated_caution(self.subject.surroundings.repeated)
        return tuple(warnings)

    @cached_property
    def reason(self) -> str | None:
        """Why the sides cannot be compared, or None."""
        pooled = [name for name in self.question.wanted.conditions if name in self.pooled]
        if pooled:
            return (
                f"{pooled[0]} has more than {self.pooled[pooled[0]]} levels, so its levels are not counted apart; "
                "list the episodes instead, or send the condition in fewer levels."
            )
        if self.sim.is_before and self.before is None:
            return no_before_words(self.subject.surroundings.present, self.subject.version, self.question.now)
        if self.sim.is_before and not self.sim.n:
            return f"No real episodes {self.against.name}{' match' if self.sim.n_unfiltered else ''}."
        who = f"{self.subject.policy} {self.subject.version}"
        on = "" if self.subject.task is None else f" on {self.subject.task}"
        if not self.sim.n:
            if self.question.simulators and self.baseline is None:
                return f"No sim episodes of {who}{on} from the simulator that was named."
            if self.sim.n_unfiltered:
                return "The filter leaves no sim episodes."
            return f"No sim episodes of {who}{on}."
        if not self.real.n:
            if self.real.n_unfiltered:
                return "The filter leaves no real episodes."
            return f"No real episodes of {who}{on} in this window."
        return None


def repeated_caution(repeated: int) -> list[Caution]:
    """Where stored episodes say what others say under other ids."""
    if not repeated:
        return []
    number = f"More than {MOST_REPEATED:,}" if repeated > MOST_REPEATED else f"{repeated:,}"
    are = "episode is" if repeated == 1 else "episodes are"
    message = (
        f"{number} stored {are} the same as another one in everything but the id, and counted: if they were sent "
        "twice, intervals are narrower than they should be. Delete those."
    )
    return [Caution("same-content", message)]


def clustering_caution(clusters: tuple[str, float] | None) -> list[Caution]:
    """Where no session is named and successes come in runs: what that costs, and how to mend it."""
    if clusters is None:
        return []
    between, effect = clusters
    message = (
        f"Successes come in runs (design effect {effect:.1f} between {between}): alerts need {effect:.1f} times "
        "the episodes. Name a `session` on each episode, one for each sitting or batch, so that what resembles "
        "itself is counted once."
    )
    return [Caution("successes-in-runs", message)]


def answer_fields(sides: Sides, reason: str | None = None) -> dict[str, Any]:
    """Return the fields that every answer carries."""
    question, subject = sides.question, sides.subject
    return {
        "deployment": subject.deployment,
        "policy": subject.policy,
        "version": subject.version,
        "task": subject.task,
        "window": NamedSpan(question.window.since, question.window.until, question.window_words),
        "filter": question.filter,
        "baseline": sides.baseline,
        "n_sim": sides.sim.n,
        "n_real": sides.real.n,
        "warnings": sides.warnings,
        "reason": sides.reason or reason,
        "against": sides.against,
    }


def _dropped_filters(asked: CellFilter, kept: CellFilter) -> list[str]:
    """Return the words of a filter that do not act on sim."""
    return [
        word
        for word, before, after in (
            ("robot", asked.robots, kept.robots),
            ("site", asked.sites, kept.sites),
            ("stage", asked.stages, kept.stages),
        )
        if before != after
    ]
