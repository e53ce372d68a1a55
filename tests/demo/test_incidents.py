"""What the stories of the demo leave in the inbox: each its own incident, at its own time, and no others."""

from datetime import UTC, date, datetime, timedelta

import pytest

from gapwatch.demo.history import story_records
from gapwatch.demo.stories import STORIES
from gapwatch.watching import history
from gapwatch.watching.history import Reason
from gapwatch.watching.kinds import DEFAULT_RULES
from gapwatch.watching.series import SeenEpisode

TODAY = date(2026, 11, 2)
NOW = datetime(2026, 11, 2, 21, tzinfo=UTC)
RULES = [rule for rule in DEFAULT_RULES if rule.kind not in {"category", "no_data"}]


def incidents(slug):
    """The story's incidents that are worth a page, as an import of its history builds them."""
    [story] = [story for story in STORIES if story.slug == slug]
    records = story_records(story, TODAY)
    versions = [name for _, name in story.versions]
    sims = {index: [0, 0] for index in range(len(versions))}
    episodes = []
    for record in records:
        policy = versions.index(record["policy"]["version"])
        if record["domain"] == "sim":
            sims[policy][0] += record["outcome"] == "success"
            sims[policy][1] += 1
            continue
        at = datetime.fromisoformat(record["started_at"])
        episodes.append(
            SeenEpisode(
                record["id"],
                at,
                NOW,
                record["outcome"],
                policy,
                record["stage"],
                record["robot"],
                record["session"],
                record["reward"],
                record["duration_s"],
                signals=record["signals"],
                **record.get("safety", {}),
            )
        )
    replayed = history.replay(
        RULES, episodes, count=0, sim_counts=lambda policy: tuple(sims[policy]), costs=lambda *_: [], seed=1
    )
    reasons = [
        Reason(number, span.rule.severity, span.fired_at, span.changed_at, span.resolved_at)
        for number, span in enumerate(history.cut_off(replayed.spans, episodes[-1].started_at, NOW))
    ]
    return [incident for incident in history.incidents_of(reasons) if incident.severity != "info"]


def days_before(at):
    return (NOW - at) / timedelta(days=1)


@pytest.mark.parametrize("slug", ["zurich-sort-2", "oslo-lab-1", "lisbon-pick-5"])
def test_healthy_stories_have_no_incident(slug):
    assert incidents(slug) == []


@pytest.mark.parametrize(
    ("slug", "began"),
    [
        ("berlin-line-3", (85, 91)),
        ("seoul-arm-4", (4, 7)),
        ("porto-peg-2", (40, 46)),
        # A little after the release, and in the course of the drift.
        ("austin-pack-2", (21, 26)),
        ("turin-cell-1", (5, 22)),
    ],
)
def test_a_story_is_one_open_incident_since_it_happened(slug, began):
    *_, last = found = incidents(slug)
    assert [incident.resolved_at is None for incident in found].count(True) == 1
    assert last.resolved_at is None
    assert began[0] <= days_before(last.changed_at) <= began[1]
    # Turin's signal moved, and opened it, before anything was lost.
    assert max(last.changed_at, last.opened_at) < NOW - timedelta(days=1)


def test_what_was_fixed_is_a_resolved_incident_of_its_time():
    first, *_ = incidents("madrid-bin-6")
    assert days_before(first.changed_at) > 85
    assert 14 < days_before(first.resolved_at) < 28
