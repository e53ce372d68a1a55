"""A rule over the past: when it would have fired and cleared, by the code that watches live."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from gapwatch.watching.engine import watch_episodes
from gapwatch.watching.rules import Rule
from gapwatch.watching.series import Seen

MOST_EPISODES = 20_000


class Archive(Protocol):
    """Where the episodes of the past come from."""

    def deployments(self) -> list[tuple[int, dict[str, str | None]]]: ...

    def episodes(self, deployment_id: int, since: datetime, most: int) -> Sequence[Seen]: ...

    def sim_counts(self, deployment_id: int, policy_id: int) -> tuple[int, int]: ...


def replay_all(archive: Archive, rule: Rule, days: int, now: datetime) -> dict[str, Any]:
    """Firings by deployment. A detector learns first, so the beginning of the time is its reference."""
    since = now - timedelta(days=days)
    found: list[dict[str, Any]] = []
    for deployment_id, words in archive.deployments():
        if not rule.match.fits({**words, "rule": None}):
            continue
        episodes = archive.episodes(deployment_id, since, MOST_EPISODES)
        known: dict[int, tuple[int, int]] = {}

        def counts(
            policy_id: int, deployment_id: int = deployment_id, known: dict[int, tuple[int, int]] = known
        ) -> tuple[int, int]:
            if policy_id not in known:
                known[policy_id] = archive.sim_counts(deployment_id, policy_id)
            return known[policy_id]

        crossings, _ = watch_episodes([rule], {}, episodes, count=0, sim_counts=counts, seed=deployment_id)
        firings = _firings(crossings, episodes)
        found.append({"deployment": words["deployment"], "episodes": len(episodes), "firings": firings})
    total = sum(len(one["firings"]) for one in found)
    times = "once" if total == 1 else f"{total} times"
    return {
        "since": since,
        "until": now,
        "fired": total,
        "sentence": f"This rule would have fired {times} in the last {days} days.",
        "deployments": found,
    }


def _firings(crossings: Sequence[Any], episodes: Sequence[Seen]) -> list[dict[str, Any]]:
    open_: dict[str, dict[str, Any]] = {}
    firings = []
    for one in crossings:
        at = episodes[one.index].started_at
        if one.input == "breach":
            firing = {"series": one.series, "fired_at": at, "cleared_at": None, "evidence": one.evidence}
            open_[one.series] = firing
            firings.append(firing)
        elif one.input == "recovery" and one.series in open_:
            open_.pop(one.series)["cleared_at"] = at
    return firings
