"""A rule over the past: every kind of it, by the same rules as live."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest

from gapwatch.watching import replay
from gapwatch.watching.kinds import RULE_KINDS
from gapwatch.watching.kinds.category import CategoryParams
from gapwatch.watching.kinds.drop import DropParams
from gapwatch.watching.kinds.no_data import NoDataParams
from gapwatch.watching.matchers import Match
from gapwatch.watching.rules import Rule
from gapwatch.watching.series import SeenEpisode
from gapwatch.watching.silence import RobotArrival

NOW = datetime(2026, 11, 16, tzinfo=UTC)
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)


@dataclass
class Past:
    """An archive in memory; `costs` answers for the ledger, `asked` is when it was asked."""

    seen: list[SeenEpisode] = field(default_factory=list)
    heard: list[RobotArrival] = field(default_factory=list)
    costs: dict[str, float] = field(default_factory=dict)
    asked: list[tuple[datetime, datetime, int]] = field(default_factory=list)

    def deployments(self):
        return [(1, {"deployment": "berlin", "site": "berlin"}), (2, {"deployment": "oslo", "site": "oslo"})]

    def episodes(self, deployment_id, since, most):
        return self.seen if deployment_id == 1 else []

    def arrivals(self, since, most):
        return self.heard

    def sim_counts(self, deployment_id, policy_id):
        return 1800, 2000

    def drop_rules(self):
        return [rule(DropParams())]

    def category_costs(self, deployment_id, policy_id, since, until):
        self.asked.append((since, until, policy_id))
        return [SimpleNamespace(category=c, contribution=x, interval=(0.01, x)) for c, x in self.costs.items()]


def rule(params, **more):
    kind = next(name for name, kind in RULE_KINDS.items() if kind.params is type(params))
    return Rule("r", kind, params, "warning", **more)


def preview(past, params, **more):
    found = replay.replay_all(past, rule(params, **more), 90, NOW)
    return found, {one["deployment"]: one["firings"] for one in found["deployments"]}


def outcomes(*parts, policy_id=1):
    rng = np.random.default_rng(1)
    values = [bool(x) for rate, n in parts for x in rng.random(n) < rate]
    times = [NOW - 10 * DAY + i * MINUTE for i in range(len(values))]
    return [
        SeenEpisode(f"e{i:05}", at, at, "success" if success else "failure", policy_id)
        for i, (at, success) in enumerate(zip(times, values, strict=True))
    ]


def heard(robot, *times, deployment=1):
    return [RobotArrival(robot, deployment, at, at) for at in times]


def every(minutes, n, start):
    return [start + i * minutes * MINUTE for i in range(n)]


@pytest.mark.parametrize("kind", RULE_KINDS)
def test_every_kind_of_rule_can_be_tried(kind):
    found, _ = preview(Past(outcomes((0.9, 300))), RULE_KINDS[kind].params())
    assert found["sentence"] == "This rule would have fired 0 times in the last 90 days."
    assert [one["deployment"] for one in found["deployments"]] == ["berlin", "oslo"]


def test_a_robot_that_fell_silent_fired_when_it_was_missed_and_cleared_when_it_was_heard():
    start = NOW - 5 * DAY
    past = Past(heard=heard("r1", *every(5, 30, start), *every(5, 30, start + 9 * HOUR)))
    past.heard += heard("r2", *every(5, int(5 * DAY / (5 * MINUTE)), start))
    found, firings = preview(past, NoDataParams())
    first, last = firings["berlin"]
    assert first["series"] == "robot:r1"
    quiet_from = start + 145 * MINUTE
    assert (first["fired_at"], first["cleared_at"]) == (quiet_from + HOUR, start + 9 * HOUR)
    assert first["evidence"] == {
        "robot": "r1",
        "heard_at": quiet_from.isoformat().replace("+00:00", "Z"),
        "longest_gap_s": 300.0,
        "episodes": 30,
    }
    # The silence that was told is no example of a usual one: the next is missed as soon.
    assert last["fired_at"] == start + 9 * HOUR + 145 * MINUTE + HOUR
    assert last["cleared_at"] is None
    assert found["fired"] == 2
    assert found["deployments"][0]["episodes"] == len(past.heard)


def test_a_robot_that_rests_at_night_is_not_silent_and_one_of_few_episodes_is_not_missed():
    nights = [at for day in range(8) for at in every(10, 60, NOW - 8 * DAY + day * DAY)]
    _, firings = preview(Past(heard=heard("r1", *nights)), NoDataParams(min_episodes=61))
    assert firings["berlin"] == []
    _, firings = preview(Past(heard=heard("r1", *every(5, 19, NOW - 8 * DAY))), NoDataParams())
    assert firings["berlin"] == []


def test_a_robot_is_missed_where_it_was_last_and_only_where_the_rule_looks():
    start = NOW - 2 * DAY
    past = Past(heard=heard("r1", *every(5, 30, start)))
    past.heard += heard("r1", *every(5, 30, start + 145 * MINUTE), deployment=2)
    _, firings = preview(past, NoDataParams())
    assert [len(firings[name]) for name in ("berlin", "oslo")] == [0, 1]
    _, firings = preview(past, NoDataParams(), match=Match(site=["berlin"]))
    assert firings == {"berlin": []}


def test_history_is_heard_when_it_began_and_late_uploads_of_a_live_robot_are_not():
    start = NOW - 20 * DAY
    imported = [RobotArrival("old", 1, at, NOW) for at in [*every(5, 30, start), *every(5, 30, start + DAY)]]
    assert len(preview(Past(heard=imported), NoDataParams())[1]["berlin"]) == 2
    # It was off line for two days, was missed, and sent what it had done afterwards.
    live = heard("r1", *every(5, 30, start), *every(5, 10, start + 2 * DAY))
    late = [RobotArrival("r1", 1, at, start + 2 * DAY) for at in every(5, 200, start + 3 * HOUR)]
    _, firings = preview(Past(heard=live + late), NoDataParams())
    assert [firing["cleared_at"] for firing in firings["berlin"]] == [start + 2 * DAY, None]


def test_episodes_without_a_robot_are_missed_as_those_of_the_deployment():
    [firing] = preview(Past(heard=heard(None, *every(5, 30, NOW - DAY))), NoDataParams())[1]["berlin"]
    assert firing["evidence"]["robot"] == "no robot"


def test_a_category_is_asked_for_while_a_drop_is_established_and_over_with_it():
    past = Past(outcomes((0.9, 300), (0.3, 200), (0.95, 300), policy_id=7), costs={"visual": 0.3, "latency": 0.08})
    found, firings = preview(past, CategoryParams())
    [firing] = firings["berlin"]
    assert (firing["series"], found["fired"]) == ("visual", 1)
    assert firing["evidence"] == {"category": "visual", "contribution": 0.3, "interval": [0.01, 0.3]}
    [drop] = preview(past, DropParams())[1]["berlin"]
    # At the next fiftieth episode after the drop, and over with it.
    place = next(i for i, episode in enumerate(past.seen) if episode.started_at == firing["fired_at"])
    assert place % 50 == 49
    assert timedelta(0) <= firing["fired_at"] - drop["fired_at"] < 50 * MINUTE
    assert firing["cleared_at"] == drop["cleared_at"]
    for since, until, policy_id in past.asked:
        assert until - since == CategoryParams().window_days * DAY + timedelta(seconds=1)
        assert drop["fired_at"] < until <= drop["cleared_at"]
        assert policy_id == 7


def test_without_a_drop_the_ledger_is_not_asked():
    past = Past(outcomes((0.9, 800)), costs={"visual": 0.3})
    assert preview(past, CategoryParams())[0]["fired"] == 0
    assert past.asked == []


def test_a_drop_that_never_ends_does_not_ask_without_end():
    past = Past(outcomes((0.3, 6000)), costs={"visual": 0.3})
    [firing] = preview(past, CategoryParams(category=["visual"]))[1]["berlin"]
    assert firing["cleared_at"] is None
    assert len(past.asked) <= replay.MOST_LOOKS
    assert preview(past, CategoryParams(category=["latency"]))[1]["berlin"] == []
