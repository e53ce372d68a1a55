"""History: what a deployment's episodes, taken in the order of their own time, would have opened and closed.

Alerts and incidents of history are what the same episodes give in any order of arrival. Whatever people were told
of or touched stays; the rest is written anew each time more history comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from gapwatch.watching.alert_changes import REGRESSED_WITHIN, changed_at
from gapwatch.watching.categories import CategoryCost
from gapwatch.watching.detector_run import Finding, StoredDetector
from gapwatch.watching.engine import SimCounts, watch_episodes
from gapwatch.watching.kinds.category import CategoryParams
from gapwatch.watching.notify_policy import is_over, worst
from gapwatch.watching.replay import Firings, ask_ledger
from gapwatch.watching.rules import Rule
from gapwatch.watching.series import SeenEpisode
from gapwatch.watching.sim_mix import SimCells

# An episode that arrives so long after it began is history: of a robot that was off line, or of an import.
HISTORY_AFTER = timedelta(days=1)
# What a robot kept while it was off line is news. Older than this, or before anything was heard, it is an import.
SPOOL_LASTS = timedelta(days=7)
# An import goes on while history comes with shorter pauses than this.
IMPORT_PAUSES = timedelta(minutes=10)
# What was so at the newest episode is so now if that one is not older; a long weekend is no end.
NOW_WITHIN = timedelta(days=4)
# A change within so many episodes of the first is none: it was so from the start.
FIRST_EPISODES = 100
# Episodes of a deployment that are taken in order again, the newest ones.
MOST_EPISODES = 50_000
CHUNK = 10_000
MOST_LOOKS = 8
# The work that late episodes cause: a run costs at most a share of the time to the next one, and the time doubles
# while they go on coming. An import at rest for so many seconds, or runs, is put in order at once.
PAUSE_FACTOR = {True: 4.0, False: 20.0}
LONGEST_PAUSE_S = {True: 300.0, False: 3600.0}
SHORTEST_PAUSE_S = 2.0
REST_S, REST_FACTOR = 5.0, 2.0
CALM = timedelta(hours=1)

Costs = Callable[[int, datetime, datetime], Sequence[CategoryCost]]
"""What each category cost a policy version between two times."""


def is_history(episode: SeenEpisode) -> bool:
    """Whether an episode came so late that it tells of another time than the one that the detectors are at."""
    return episode.received_at - episode.started_at >= HISTORY_AFTER


def is_import(oldest: SeenEpisode, *, is_new: bool, last_import_at: datetime | None) -> bool:
    """Whether history is an import of the past rather than what a robot kept while it was off line.

    `is_new`: nothing of the deployment was judged before. `last_import_at` is when an import last brought any.
    """
    if is_new or oldest.received_at - oldest.started_at > SPOOL_LASTS:
        return True
    return last_import_at is not None and oldest.received_at - last_import_at < IMPORT_PAUSES


def pause_s(took_s: float, times: int, *, is_import: bool) -> float:
    """How long after a run the next may begin; `times` are the runs since it was last calm."""
    pause = max(SHORTEST_PAUSE_S, PAUSE_FACTOR[is_import] * took_s) * 2.0 ** min(max(times - 1, 0), 20)
    return min(LONGEST_PAUSE_S[is_import], pause)


@dataclass(frozen=True)
class AlertSpan:
    """One time of trouble of a series: opened and resolved at the times of the deciding episodes.

    `fired` is False where a suspicion did not last. `is_cut`: history ends before it was over.
    """

    rule: Rule
    series: str
    opened_at: datetime
    evidence: Mapping[str, Any]
    fired_at: datetime | None
    resolved_at: datetime | None = None
    regressed: bool = False
    is_cut: bool = False

    @property
    def fired(self) -> bool:
        return self.fired_at is not None

    @property
    def state(self) -> str:
        if self.resolved_at is not None:
            return "resolved"
        return "firing" if self.fired else "pending"

    @property
    def changed_at(self) -> datetime | None:
        return changed_at(self.evidence)


@dataclass(frozen=True)
class Restart:
    """A person resolved an alert: its detector began anew."""

    at: datetime
    rule: str
    series: str


@dataclass
class Replayed:
    """What a deployment's past gives: the alerts, and the detectors as they stand after the last episode."""

    spans: list[AlertSpan]
    states: dict[tuple[str, str], StoredDetector]
    first_at: datetime | None
    early_until: datetime | None


def replay(
    rules: Sequence[Rule],
    episodes: Sequence[SeenEpisode],
    *,
    count: int,
    sim_counts: SimCounts,
    costs: Costs,
    seed: int,
    restarts: Sequence[Restart] = (),
    sim_cells: SimCells | None = None,
) -> Replayed:
    """Take episodes, which are in order, through the rules from the beginning.

    `count` is how many episodes of the deployment came before the first of these.
    """
    states: dict[tuple[str, str], StoredDetector] = {}
    found: list[tuple[int, Finding]] = []
    ended: dict[tuple[str, str], list[datetime]] = {}
    at = 0
    for end, restart in _pieces(episodes, restarts):
        if end > at:
            piece = episodes[at:end]
            findings, changed = watch_episodes(
                rules,
                states,
                piece,
                count=count + at,
                sim_counts=sim_counts,
                sim_cells=sim_cells,
                seed=seed,
            )
            found += [(at + finding.index, finding) for finding in findings]
            states |= changed
            at = end
        if restart is not None and (restart.rule, restart.series) in states:
            key = (restart.rule, restart.series)
            states[key] = replace(states[key], restart=True)
            ended.setdefault(key, []).append(restart.at)
    spans = _spans(found, episodes, ended)
    spans += _category_spans(rules, found, episodes, costs)
    spans.sort(key=lambda span: (span.opened_at, span.rule.name, span.series))
    spans = _regressed(spans)
    first_at = episodes[0].started_at if episodes else None
    early = episodes[min(FIRST_EPISODES, len(episodes)) - 1].started_at if episodes else None
    return Replayed(spans, states, first_at, early)


def _pieces(episodes: Sequence[SeenEpisode], restarts: Sequence[Restart]) -> list[tuple[int, Restart | None]]:
    """Where to stop: for a restart, and after every chunk."""
    cuts: list[tuple[int, Restart | None]] = [(end, None) for end in range(CHUNK, len(episodes), CHUNK)]
    for restart in restarts:
        before = sum(episode.started_at <= restart.at for episode in episodes)
        cuts.append((before, restart))
    return [*sorted(cuts, key=lambda cut: cut[0]), (len(episodes), None)]


def _spans(
    found: Sequence[tuple[int, Finding]],
    episodes: Sequence[SeenEpisode],
    ended: Mapping[tuple[str, str], Sequence[datetime]],
) -> list[AlertSpan]:
    spans: list[AlertSpan] = []
    open_at: dict[tuple[str, str], int] = {}
    for index, finding in found:
        key, at = (finding.rule.name, finding.series), episodes[index].started_at
        known = open_at.get(key)
        if known is not None:
            # Ended by a person in the meantime.
            over = next((t for t in ended.get(key, ()) if spans[known].opened_at <= t <= at), None)
            if over is not None:
                spans[known] = replace(spans[known], resolved_at=over)
                del open_at[key]
                known = None
        if finding.input == "recovery":
            if known is not None:
                spans[known] = replace(spans[known], resolved_at=at)
                del open_at[key]
        elif known is None:
            open_at[key] = len(spans)
            fired_at = at if finding.input == "breach" else None
            spans.append(AlertSpan(finding.rule, finding.series, at, finding.evidence, fired_at))
        elif finding.input == "breach" and not spans[known].fired:
            spans[known] = replace(spans[known], fired_at=at, evidence=finding.evidence)
    for key, known in open_at.items():
        over = next((t for t in ended.get(key, ()) if spans[known].opened_at <= t), None)
        if over is not None:
            spans[known] = replace(spans[known], resolved_at=over)
    return spans


def _regressed(spans: Sequence[AlertSpan]) -> list[AlertSpan]:
    last: dict[tuple[str, str], datetime] = {}
    marked = []
    for span in spans:
        key = (span.rule.name, span.series)
        before = last.get(key)
        marked.append(replace(span, regressed=before is not None and span.opened_at - before < REGRESSED_WITHIN))
        if span.resolved_at is not None:
            last[key] = span.resolved_at
    return marked


def _category_spans(
    rules: Sequence[Rule],
    found: Sequence[tuple[int, Finding]],
    episodes: Sequence[SeenEpisode],
    costs: Costs,
) -> list[AlertSpan]:
    drops = [replace(finding, index=index) for index, finding in found if finding.rule.kind == "drop"]
    spans: list[AlertSpan] = []
    for rule in rules:
        if not drops or not isinstance(rule.params, CategoryParams):
            continue
        firings = Firings()
        ask_ledger(
            rule.params,
            drops,
            episodes,
            lambda index, since, until: costs(episodes[index].policy_id, since, until),
            firings,
            MOST_LOOKS,
        )
        spans += [
            AlertSpan(rule, f["series"], f["fired_at"], f["evidence"], f["fired_at"], f["cleared_at"])
            for f in firings.all
        ]
    return spans


def cut_off(spans: Sequence[AlertSpan], newest: datetime, now: datetime) -> list[AlertSpan]:
    """Nobody can say of history that ended long ago what is so today: it is over with its last episode."""
    if now - newest <= NOW_WITHIN:
        return list(spans)
    return [
        span
        if span.resolved_at is not None
        else replace(span, resolved_at=max(newest, span.opened_at), is_cut=True)
        for span in spans
    ]


@dataclass(frozen=True)
class KnownAlert:
    """A stored alert. `is_kept`: people were told of it or touched it, so that it is not rewritten."""

    id: int
    rule: str
    series: str
    state: str
    began_at: datetime
    resolved_at: datetime | None
    is_kept: bool

    @property
    def is_open(self) -> bool:
        return self.state != "resolved"


@dataclass
class AlertPlan:
    """What becomes of stored alerts: `rewritten` take a span's columns, `confirmed` stay as they are but for the
    time of the change, `over` end at a time, `gone` never were.
    """

    new: list[AlertSpan] = field(default_factory=list)
    rewritten: list[tuple[int, AlertSpan]] = field(default_factory=list)
    confirmed: list[tuple[int, AlertSpan]] = field(default_factory=list)
    over: list[tuple[int, datetime | None]] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)


def plan_alerts(spans: Sequence[AlertSpan], known: Sequence[KnownAlert]) -> AlertPlan:
    """Match the alerts that there would have been with those that there are, by series and overlap in time."""
    plan = AlertPlan()
    left = sorted(known, key=lambda alert: (not alert.is_kept, alert.began_at, alert.id))
    for span in spans:
        same = [a for a in left if (a.rule, a.series) == (span.rule.name, span.series) and _overlap(span, a)]
        # What is open is rather continued by what is open.
        match = max(same, key=lambda a: (a.is_open and span.resolved_at is None, a.is_kept), default=None)
        if match is None:
            plan.new.append(span)
            continue
        left.remove(match)
        if not match.is_kept:
            plan.rewritten.append((match.id, span))
        elif match.is_open == (span.resolved_at is None):
            plan.confirmed.append((match.id, span))
        elif match.is_open and not span.is_cut:
            plan.over.append((match.id, span.resolved_at))
        elif match.is_open:
            # That data stopped ends nothing that people know of.
            plan.confirmed.append((match.id, span))
        else:
            plan.new.append(span)
    for alert in left:
        if not alert.is_kept:
            plan.gone.append(alert.id)
        elif alert.is_open:
            plan.over.append((alert.id, None))
    return plan


def _overlap(span: AlertSpan, alert: KnownAlert) -> bool:
    starts_before = alert.resolved_at is None or span.opened_at <= alert.resolved_at
    return starts_before and (span.resolved_at is None or alert.began_at <= span.resolved_at)


@dataclass(frozen=True)
class Reason:
    """An alert as part of an incident; `at` is when it fired."""

    id: int
    severity: str
    at: datetime
    changed_at: datetime | None
    resolved_at: datetime | None


@dataclass
class IncidentSpan:
    """One incident of history; `severity` is the worst of its alerts."""

    opened_at: datetime
    severity: str
    alerts: list[int] = field(default_factory=list)
    changed_at: datetime | None = None
    resolved_at: datetime | None = None


def incidents_of(reasons: Sequence[Reason]) -> list[IncidentSpan]:
    """Group alerts into incidents as they would have been: one at a time, from its first alert to its end."""
    moves: list[tuple[datetime, int, int, Reason]] = []
    for reason in reasons:
        moves.append((reason.at, 0, reason.id, reason))
        if reason.resolved_at is not None:
            moves.append((max(reason.resolved_at, reason.at), 1, reason.id, reason))
    moves.sort(key=lambda move: move[:3])
    incidents: list[IncidentSpan] = []
    current: IncidentSpan | None = None
    open_reasons: dict[int, Reason] = {}
    for at, is_end, _, reason in moves:
        if not is_end:
            open_reasons[reason.id] = reason
            if current is None:
                current = IncidentSpan(at, reason.severity)
                incidents.append(current)
            _join(current, reason)
            continue
        open_reasons.pop(reason.id, None)
        remaining = list(open_reasons.values())
        if current is not None and is_over([other.severity for other in remaining], current.severity):
            current.resolved_at, current = at, None
            if remaining:
                # What is merely worth knowing goes on by itself.
                current = IncidentSpan(at, worst([other.severity for other in remaining]))
                incidents.append(current)
                for other in remaining:
                    _join(current, other)
    return incidents


def _join(incident: IncidentSpan, reason: Reason) -> None:
    began = reason.changed_at or reason.at
    known = incident.changed_at
    if incident.severity == "info" and reason.severity != "info":
        # What is merely worth knowing may have moved long before anything was lost.
        known = None
    if known is None or (began < known and (reason.severity != "info" or incident.severity == "info")):
        incident.changed_at = began
    incident.severity = worst([incident.severity, reason.severity])
    incident.alerts.append(reason.id)
