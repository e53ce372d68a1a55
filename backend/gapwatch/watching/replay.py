"""A rule over the past: when it would have fired and cleared, by the code that watches live."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any, Protocol

from gapwatch.watching.categories import ASKED_EVERY, CategoryCost, judge_costs
from gapwatch.watching.engine import watch_episodes
from gapwatch.watching.kinds.category import CategoryParams
from gapwatch.watching.kinds.no_data import NoDataParams
from gapwatch.watching.rhythm import ExcusedSpan
from gapwatch.watching.rules import Rule
from gapwatch.watching.series import SeenEpisode
from gapwatch.watching.silence import RobotArrival, hearings_of
from gapwatch.watching.silence_replay import SilenceReplay
from gapwatch.watching.sim_mix import SimCell

MOST_EPISODES = 20_000
MOST_ARRIVALS = 200_000
# How often the ledger is asked for one deployment: seldomer than live where a drop lasted very long.
MOST_LOOKS = 20

Firing = dict[str, Any]


class Archive(Protocol):
    """Where the past comes from."""

    def deployments(self) -> list[tuple[int, dict[str, str | None]]]: ...

    def episodes(self, deployment_id: int, since: datetime, most: int) -> Sequence[SeenEpisode]: ...

    def arrivals(self, since: datetime, most: int) -> Sequence[RobotArrival]: ...

    def outages(self, now: datetime) -> Sequence[ExcusedSpan]: ...

    def sim_counts(self, deployment_id: int, policy_id: int) -> tuple[int, int]: ...

    def sim_cells(self, deployment_id: int, policy_id: int) -> Sequence[SimCell]: ...

    def drop_rules(self) -> Sequence[Rule]: ...

    def category_costs(
        self, deployment_id: int, policy_id: int, since: datetime, until: datetime
    ) -> Sequence[CategoryCost]: ...


def replay_all(archive: Archive, rule: Rule, days: int, now: datetime) -> dict[str, Any]:
    """Firings by deployment. A detector learns first, so the beginning of the time is its reference."""
    since = now - timedelta(days=days)
    places = {number: words for number, words in archive.deployments() if _fits(rule, words)}
    if isinstance(rule.params, NoDataParams):
        deployments = _silences(archive, rule.params, places, since, now)
    else:
        deployments = [_of_deployment(archive, rule, number, words, since) for number, words in places.items()]
    total = sum(len(deployment["firings"]) for deployment in deployments)
    times = "once" if total == 1 else f"{total} times"
    return {
        "since": since,
        "until": now,
        "fired": total,
        "sentence": f"This rule would have fired {times} in the last {days} days.",
        "deployments": deployments,
    }


def _fits(rule: Rule, words: Mapping[str, str | None]) -> bool:
    return rule.match.fits({**words, "rule": None})


class Firings:
    """What fired, in order, each with the time it cleared at."""

    def __init__(self) -> None:
        self.all: list[Firing] = []
        self.open: dict[str, Firing] = {}

    def fire(self, series: str, at: datetime, evidence: Mapping[str, Any]) -> None:
        firing = {"series": series, "fired_at": at, "cleared_at": None, "evidence": dict(evidence)}
        self.open[series] = firing
        self.all.append(firing)

    def clear(self, series: str, at: datetime) -> None:
        if series in self.open:
            self.open.pop(series)["cleared_at"] = at


def _of_deployment(
    archive: Archive, rule: Rule, deployment_id: int, words: Mapping[str, str | None], since: datetime
) -> dict[str, Any]:
    episodes = archive.episodes(deployment_id, since, MOST_EPISODES)
    known: dict[int, tuple[int, int]] = {}

    def sim_counts(policy_id: int) -> tuple[int, int]:
        if policy_id not in known:
            known[policy_id] = archive.sim_counts(deployment_id, policy_id)
        return known[policy_id]

    def watch(rules: Sequence[Rule]) -> Sequence[Any]:
        findings, _ = watch_episodes(
            rules,
            {},
            episodes,
            count=0,
            sim_counts=sim_counts,
            sim_cells=lambda policy_id: archive.sim_cells(deployment_id, policy_id),
            seed=deployment_id,
        )
        return findings

    firings = Firings()
    if isinstance(rule.params, CategoryParams):
        crossings = watch([drop_rule for drop_rule in archive.drop_rules() if _fits(drop_rule, words)])

        def costs(index: int, since: datetime, until: datetime) -> Sequence[CategoryCost]:
            return archive.category_costs(deployment_id, episodes[index].policy_id, since, until)

        ask_ledger(rule.params, crossings, episodes, costs, firings)
    else:
        for finding in watch([rule]):
            at = episodes[finding.index].started_at
            if finding.input == "breach":
                firings.fire(finding.series, at, finding.evidence)
            elif finding.input == "recovery":
                firings.clear(finding.series, at)
    return {"deployment": words["deployment"], "episodes": len(episodes), "firings": firings.all}


def ask_ledger(
    params: CategoryParams,
    crossings: Sequence[Any],
    episodes: Sequence[SeenEpisode],
    costs: Callable[[int, datetime, datetime], Sequence[CategoryCost]],
    firings: Firings,
    most_looks: int = MOST_LOOKS,
) -> None:
    """The ledger at every fiftieth episode while a drop was established, as it is asked live."""
    newest = list(accumulate((episode.started_at for episode in episodes), max))
    dropped = _dropped(crossings, len(episodes))
    grid = range(ASKED_EVERY - 1, len(episodes), ASKED_EVERY)
    looks = [index for index in grid if dropped[index] and index + 1 >= params.min_episodes]
    looks = looks[:: -(-len(looks) // most_looks) or 1]
    ends = [index for index in range(1, len(episodes)) if dropped[index - 1] and not dropped[index]]
    for index in sorted([*looks, *ends]):
        if not dropped[index]:
            # Without a drop there is nothing left to explain.
            for category in list(firings.open):
                firings.clear(category, episodes[index].started_at)
            continue
        since = newest[index] - timedelta(days=params.window_days)
        category_costs = costs(index, since, newest[index] + timedelta(seconds=1))
        verdict = judge_costs(params, category_costs, set(firings.open))
        for category, evidence in verdict.breaches.items():
            firings.fire(category, episodes[index].started_at, evidence)
        for category in verdict.recoveries:
            firings.clear(category, episodes[index].started_at)


def _dropped(crossings: Sequence[Any], n: int) -> list[bool]:
    """Whether real was established to be below sim after each episode."""
    at: dict[int, list[Any]] = {}
    for finding in crossings:
        at.setdefault(finding.index, []).append(finding)
    open_: set[str] = set()
    dropped = []
    for index in range(n):
        for finding in at.get(index, ()):
            if finding.input == "breach":
                open_.add(finding.rule.name)
            elif finding.input == "recovery":
                open_.discard(finding.rule.name)
        dropped.append(bool(open_))
    return dropped


def _silences(
    archive: Archive,
    params: NoDataParams,
    places: Mapping[int, Mapping[str, str | None]],
    since: datetime,
    now: datetime,
) -> list[dict[str, Any]]:
    """Robots move between deployments, so they are followed over all of them; where one was heard last it is
    missed.
    """
    arrivals = archive.arrivals(since, MOST_ARRIVALS)
    replay = SilenceReplay(params, archive.outages(now))
    for arrival in hearings_of(arrivals):
        replay.hear(arrival)
    replay.end(now)
    firings: dict[int, list[Firing]] = {number: [] for number in places}
    for silence in replay.silences:
        if silence.deployment_id in places:
            firings[silence.deployment_id].append(
                {
                    "series": silence.series,
                    "fired_at": silence.fired_at,
                    "cleared_at": silence.cleared_at,
                    "paged_at": silence.paged_at,
                    "evidence": silence.evidence,
                }
            )
    counts: dict[int, int] = {}
    for arrival in arrivals:
        counts[arrival.deployment_id] = counts.get(arrival.deployment_id, 0) + 1
    return [
        {
            "deployment": words["deployment"],
            "episodes": counts.get(number, 0),
            "firings": sorted(firings[number], key=lambda firing: firing["fired_at"]),
        }
        for number, words in places.items()
    ]
