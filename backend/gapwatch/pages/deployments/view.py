"""What the page of one deployment shows; also its JSON twin."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gapwatch.answers.answer import Interval
from gapwatch.answers.contract import ContractAnswer
from gapwatch.answers.drop import DropAnswer, SideValue
from gapwatch.answers.failures import FailureGroup, FailuresAnswer
from gapwatch.answers.ledger import CategoryPart, LedgerAnswer
from gapwatch.answers.now import NowValue
from gapwatch.answers.onset import OnsetAnswer
from gapwatch.answers.ranges import RangesAnswer
from gapwatch.answers.robots_sites import RobotsAnswer
from gapwatch.answers.shadow import ShadowAnswer
from gapwatch.answers.signals import SignalAnswer, SignalsAnswer
from gapwatch.answers.slices import SliceAnswer, SlicesAnswer
from gapwatch.answers.trend import TrendAnswer
from gapwatch.closing.advice import AdviceItem, LogFirst
from gapwatch.closing.closures import FixAnswer
from gapwatch.pages.alert_entry import AlertEntry
from gapwatch.pages.exposures import Exposure, exposures
from gapwatch.pages.filtering import Applied, WindowChoice, WindowPicker
from gapwatch.pages.fixes import FixEntry, entry_of
from gapwatch.pages.rollout_part import RolloutPart
from gapwatch.pages.sentences import captions
from gapwatch.pages.sentences import deployment as sentences
from gapwatch.pages.sentences.present import how_it_moved
from gapwatch.pages.sentences.sentence import Sentence, together
from gapwatch.pages.sentences.stage import Check, Rung, checks, ladder
from gapwatch.store.read.directory import DatedEvent
from gapwatch.store.read.labelling_progress import LabellingProgress

MOST_FAILURES = 8
# Of signals with figures, that moved and that stand.
MOST_SHOWN = 6
# Of a table, which the CSV has whole.
MOST_LEVELS = 80


@dataclass(frozen=True)
class Choices:
    """What the filters offer."""

    metrics: list[str]
    simulators: list[str]
    robots: list[str]
    sites: list[str]
    conditions: list[str]


@dataclass(frozen=True)
class DeploymentPage:
    slug: str
    policy: str
    version: str
    task: str
    site: str | None
    stage: str | None
    newest: datetime
    drop: DropAnswer
    # Both sides of success, whatever the metric: the ledger's ends.
    sim: SideValue
    real: SideValue
    lead: CategoryPart | None
    ledger: LedgerAnswer
    slices: SlicesAnswer
    signals: SignalsAnswer
    failures: FailuresAnswer
    robots: RobotsAnswer
    shadow: ShadowAnswer
    ranges: RangesAnswer
    trend: TrendAnswer
    contract: ContractAnswer
    onset: OnsetAnswer
    events: tuple[DatedEvent, ...]
    # Its own, and those of the whole project.
    fixes: list[FixAnswer]
    advice: tuple[AdviceItem, ...]
    log_first: tuple[LogFirst, ...]
    alerts: list[AlertEntry]
    # Of the failures shown.
    labelling: LabellingProgress
    choices: Choices
    given: dict[str, list[str]]
    applied: list[Applied]
    now: NowValue
    # Whether the page speaks of the present of the whole deployment: no other window, no filter, no other metric.
    is_now: bool
    asked_at: datetime
    # What the ledger, conditions, signals and failures are held against; and why there is no before, if so.
    against: list[WindowChoice]
    # Whom the intervals of the drop and of the conditions speak for.
    populations: list[WindowChoice]
    no_before: str
    window: WindowPicker
    problems: list[str]
    # None where nobody began one; its stage is then what the newest episode says.
    rollout: RolloutPart | None = None

    @property
    def fix_entries(self) -> list[FixEntry]:
        return [entry_of(fix) for fix in self.fixes]

    def window_of(self, table: str) -> str:
        """What the window of a table is called; the trend is of all history."""
        if table == "trend":
            return "all history"
        is_held = self.is_against_before and table in ("ledger", "conditions", "signals", "failures")
        return f"{self.window.name} against before" if is_held else self.window.name

    @property
    def is_against_before(self) -> bool:
        return self.ledger.against.kind == "before"

    @property
    def sides(self) -> tuple[str, str]:
        """What the two sides of the ledger, conditions, signals and failures are called."""
        return ("before", "since") if self.is_against_before else ("sim", "real")

    @property
    def split_interval(self) -> Interval | None:
        """Of the drop that the ledger splits."""
        if self.is_against_before:
            moved = self.now.moved.interval if self.now.moved.verdict in ("fell", "rose") else None
            return None if moved is None else (-moved[1] / 100, -moved[0] / 100)
        return self.drop.drop.interval if self.drop.metric == "success" else None

    @property
    def compared(self) -> bool:
        return self.ledger.drop is not None

    @property
    def headline(self) -> Sentence:
        lead, is_unexplained = self.lead, bool(self._to_log)
        if self.is_against_before:
            lead, is_unexplained = None, False
        said = None
        if self.is_now:
            said = sentences.headline_now(self.now, self.drop, lead, self.asked_at, is_unexplained=is_unexplained)
        if said is None:
            said = sentences.headline(
                self.drop, self.sim, self.real, self.lead, self.onset, is_unexplained=is_unexplained
            )
            said = sentences.in_window(self.window.name, said)
        return together(said, captions.odd_one(self.robots))

    @property
    def _to_log(self) -> tuple[str, ...]:
        return () if self.ledger.headline is None else self.ledger.headline.log

    @property
    def how_much(self) -> sentences.ShortAnswer:
        return sentences.how_much_now(self.now) if self.is_now else sentences.how_much(self.drop)

    @property
    def spoken_for(self) -> str:
        return captions.spoken_for(self.drop)

    @property
    def verdict(self) -> str:
        return self.now.verdict if self.is_now else self.drop.verdict

    @property
    def why(self) -> sentences.ShortAnswer:
        return sentences.why(self.drop, self.lead, self.ledger.drop, len(self.failures.groups), self._to_log)

    @property
    def getting_worse(self) -> sentences.ShortAnswer:
        if self.is_now:
            return sentences.getting_worse_now(self.now, self.asked_at)
        return sentences.getting_worse(self.onset)

    @property
    def trend_finding(self) -> str:
        return how_it_moved(self.now, self.asked_at) if self.is_now else self.onset.sentence

    @property
    def who_knows(self) -> sentences.ShortAnswer:
        return sentences.who_knows(self.alerts)

    @property
    def ladder(self) -> list[Rung]:
        return ladder(self.stage if self.rollout is None else self.rollout.stage)

    @property
    def checks(self) -> list[Check]:
        return checks(self.real, self.drop, self.contract.verdict)

    @property
    def ledger_finding(self) -> str:
        return captions.ledger_finding(self.ledger, self.lead)

    @property
    def waterfall(self) -> str:
        return captions.waterfall(self.sim, self.real, self.ledger.against)

    @property
    def not_counted(self) -> Sentence:
        return captions.not_counted(self.real, self.drop, self.onset.verdict)

    @property
    def signals_note(self) -> str:
        return captions.signals_note(self.sim.n, self.real.n, self.sides, sampled=self.signals.sampled)

    @property
    def moved_signals(self) -> list[SignalAnswer]:
        """What moved at the change."""
        moved = [
            signal for signal in self.signals.signals if signal.moved is not None and signal.moved.is_established
        ]
        return moved[:MOST_SHOWN]

    @property
    def standing_signals(self) -> list[SignalAnswer]:
        """What differs from the other side and did not move, the most surely shifted first."""
        moved = {signal.signal for signal in self.moved_signals}
        standing = [one for one in self.signals.signals if one.seen == "both" and one.signal not in moved]
        return standing[:MOST_SHOWN]

    @property
    def first_failures(self) -> list[FailureGroup]:
        """What real fails by, in the order of the answer: the surest loss first."""
        return [group for group in self.failures.groups if group.seen != "sim only"][:MOST_FAILURES]

    @property
    def levels(self) -> list[SliceAnswer]:
        return [level for level in self.slices.slices if not level.few][:MOST_LEVELS]

    @property
    def few_levels(self) -> list[SliceAnswer]:
        """Levels with so few episodes that they are folded away."""
        return [level for level in self.slices.slices if level.few][:MOST_LEVELS]

    @property
    def exposures(self) -> list[Exposure]:
        return exposures(self.ledger, captions.off_support(self.slices.slices))
