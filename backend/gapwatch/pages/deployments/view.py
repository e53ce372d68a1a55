"""What the page of one deployment shows; also its JSON twin."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gapwatch.answers.contract import ContractAnswer
from gapwatch.answers.drop import DropAnswer, SideValue
from gapwatch.answers.failures import FailuresAnswer
from gapwatch.answers.ledger import CategoryPart, LedgerAnswer
from gapwatch.answers.mitigations import Mitigation, Suggestion
from gapwatch.answers.onset import OnsetAnswer
from gapwatch.answers.signals import SignalsAnswer
from gapwatch.answers.slices import SlicesAnswer
from gapwatch.answers.trend import TrendAnswer
from gapwatch.pages.alerts import AlertEntry
from gapwatch.pages.filtering import Applied
from gapwatch.store.read.directory import DatedEvent


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
    trend: TrendAnswer
    contract: ContractAnswer
    onset: OnsetAnswer
    events: tuple[DatedEvent, ...]
    mitigations: list[Mitigation]
    suggestions: list[Suggestion]
    alerts: list[AlertEntry]
    choices: Choices
    given: dict[str, list[str]]
    applied: list[Applied]
    problems: list[str]

    @property
    def compared(self) -> bool:
        return self.ledger.drop is not None
