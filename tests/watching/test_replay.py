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

    def outages(self, now):
        return []

    def sim_counts(self, deployment_id, policy_id):
        return 1800, 2000

    def sim_cells(self, deployment_id, policy_id):
        return []

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


def shift(days, *, minutes=5, hours=8, start=NOW - 20 * DAY):
    """Times of a robot that works so many hours of every day."""
    return [at for day in range(days) for at in every(minutes, 60 * hours // minutes, start + day * DAY)]


def test_a_robot_that_fell_silent_at_work_fired_when_it_was_missed_and_cleared_when_it_was_heard():
    start = NOW - 20 * DAY
    died, back = start + 14 * DAY + 2 * HOUR, start + 14 * DAY + 5 * HOUR
    times = [at for at in shift(19) if not died < at < back]
    past = Past(heard=heard("r1", *times) + heard("r2", *shift(19)))
    _, firings = preview(past, NoDataParams())
    [missed] = [one for one in firings["berlin"] if one["series"] == "robot:r1"]
    assert timedelta(0) <= missed["fired_at"] - (died + 30 * MINUTE) < MINUTE
    assert (missed["cleared_at"], missed["paged_at"]) == (back, None)
    evidence = missed["evidence"]
    assert (evidence["robot"], evidence["silence"], evidence["allowed_s"]) == ("r1", "died", 1800)
    # Alone it is all robots of its deployment, and a page.
    found, firings = preview(Past(heard=heard("r1", *times)), NoDataParams())
    [page] = [one for one in firings["berlin"] if one["paged_at"]]
    assert page["series"] == "deployment"
    assert timedelta(0) <= page["paged_at"] - (died + 30 * MINUTE) < MINUTE
    assert found["deployments"][0]["episodes"] == len(times)


def test_nights_and_free_days_page_nobody_and_one_of_few_episodes_is_not_missed():
    free = shift(20)
    free = [at for at in free if not NOW - 5 * DAY <= at < NOW - 4 * DAY]
    _, firings = preview(Past(heard=heard("r1", *free)), NoDataParams())
    assert [one["paged_at"] for one in firings["berlin"] if one["fired_at"] > NOW - 12 * DAY] == [None]
    _, firings = preview(Past(heard=heard("r1", *every(5, 19, NOW - 8 * DAY))), NoDataParams())
    assert firings["berlin"] == []


def test_a_robot_is_missed_where_it_was_last_and_only_where_the_rule_looks():
    moved = NOW - 10 * DAY
    past = Past(heard=heard("r1", *[at for at in shift(19) if at < moved]))
    past.heard += heard("r1", *[at for at in shift(19) if at >= moved], deployment=2)
    _, firings = preview(past, NoDataParams())
    late = {name: [one for one in firings[name] if one["fired_at"] > moved] for name in firings}
    assert [len(late[name]) for name in ("berlin", "oslo")] == [0, 1]
    _, firings = preview(past, NoDataParams(), match=Match(site=["berlin"]))
    assert list(firings) == ["berlin"]


def test_history_is_heard_when_it_began():
    imported = [RobotArrival("old", 1, at, NOW) for at in shift(14)]
    *_, last = preview(Past(heard=imported), NoDataParams())[1]["berlin"]
    assert last["evidence"]["silence"] == "absent"


def test_a_flushed_spool_is_no_rhythm():
    broken, flushed = NOW - 5 * DAY + HOUR, NOW - 5 * DAY + 6 * HOUR
    arrivals = [RobotArrival("r1", 1, at, flushed if broken < at < flushed else at) for at in shift(20)]
    _, firings = preview(Past(heard=arrivals), NoDataParams())
    [page] = [one for one in firings["berlin"] if one["paged_at"]]
    assert page["cleared_at"] == flushed
    # The next death at that hour is told as soon.
    again = [arrival for arrival in arrivals if arrival.received_at < NOW - 2 * DAY + HOUR]
    _, firings = preview(Past(heard=again), NoDataParams())
    assert firings["berlin"][-1]["paged_at"] - again[-1].received_at < 31 * MINUTE


def test_episodes_without_a_robot_are_those_of_the_deployment():
    times = [at for at in shift(15) if at < NOW - 6 * DAY + 2 * HOUR]
    *_, firing = preview(Past(heard=heard(None, *times)), NoDataParams())[1]["berlin"]
    assert (firing["series"], firing["evidence"]["robot"]) == ("deployment", "no robot")


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
