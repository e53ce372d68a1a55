"""Episodes that come in sessions: what is promised however alike they are, how soon a drop is seen, and the book-keeping."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from gapwatch.watching.detector_run import StoredDetector
from gapwatch.watching.engine import watch_episodes
from gapwatch.watching.kinds.drift import DriftParams
from gapwatch.watching.kinds.drop import DropParams
from gapwatch.watching.kinds.stage_gate import StageGateParams
from gapwatch.watching.rules import Rule
from gapwatch.watching.series import SeenEpisode
from gapwatch.watching.sessions import MOST_OPEN, Sessions

START = datetime(2026, 11, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DRIFT = Rule("drift", "drift", DriftParams(), "warning")
# Any drop at all would count.
DROP = Rule("drop", "drop", DropParams(above=0.0), "warning")
SIM_N = 2000


def seen(number, success, session, *, robot="r1", at=None, **fields):
    at = at or START + number * MINUTE
    outcome = "success" if success else "failure"
    return SeenEpisode(
        f"e{number}", at, at, outcome, **{"policy_id": 1, "robot": robot, "session": session} | fields
    )


def sittings(rng, *parts, icc, size=10, named=True):
    """So many episodes at a rate, then so many at another, in sessions whose own rates spread by the ICC."""
    found = []
    for rate, n in parts:
        for _ in range(n // size):
            spread = (1 - icc) / icc if icc else None
            own = rate if spread is None else rng.beta(rate * spread, (1 - rate) * spread)
            session = f"s{len(found) // size}" if named else None
            found += [seen(len(found) + i, bool(x), session) for i, x in enumerate(rng.random(size) < own)]
    return found


def alarm(rule, episodes, rng):
    """The place of the first breach, with a simulation of the rate 0.8 as it may happen to come out."""
    sim, seed = (int(rng.binomial(SIM_N, 0.8)), SIM_N), int(rng.integers(1 << 31))
    found, _ = watch_episodes([rule], {}, episodes, count=0, sim_counts=lambda _: sim, seed=seed)
    return next((one.index for one in found if one.input == "breach"), None)


@pytest.mark.parametrize("icc", [0.1, 0.3])
@pytest.mark.parametrize("rule", [DRIFT, DROP], ids=lambda rule: rule.name)
def test_unchanged_series_in_sessions_rarely_alarm_however_alike_their_episodes_are(rule, icc):
    """320 series of 400 episodes in sessions of ten, looked at after each; 6.5 % is the bound of the others, too."""
    rng = np.random.default_rng(1)
    alarmed = [alarm(rule, sittings(rng, (0.8, 400), icc=icc), rng) is not None for _ in range(320)]
    assert np.mean(alarmed) <= 0.065


def test_without_the_sessions_named_likeness_is_learned_from_runs_of_episodes():
    """Before it was, 30 % of these alarmed and more."""
    rng = np.random.default_rng(2)
    alarmed = [alarm(DRIFT, sittings(rng, (0.8, 400), icc=0.3, named=False), rng) is not None for _ in range(60)]
    assert np.mean(alarmed) <= 0.2


@pytest.mark.parametrize(("icc", "usually", "within"), [(0.0, 60, 120), (0.1, 140, 230), (0.3, 190, 380)])
def test_a_drop_of_30_points_is_found_the_sooner_the_less_alike_episodes_of_a_session_are(icc, usually, within):
    """From 80 %, after 1000 own episodes in sessions of ten: half within `usually`, nine in ten within `within`."""
    rng = np.random.default_rng(3)
    for rule in (DRIFT, DROP):
        found = [alarm(rule, sittings(rng, (0.8, 1000), (0.5, 500), icc=icc), rng) for _ in range(60)]
        delays = [np.inf if one is None else one - 999 for one in found if one is None or one >= 1000]
        assert len(delays) >= 57
        assert np.median(delays) <= usually
        assert np.quantile(delays, 0.9, method="higher") <= within


@pytest.mark.parametrize(("icc", "within"), [(0.1, 150), (0.3, 250)])
def test_a_drop_of_30_points_at_deploy_is_found_in_sessions(icc, within):
    rng = np.random.default_rng(10)
    found = [alarm(DROP, sittings(rng, (0.5, within), icc=icc), rng) is not None for _ in range(100)]
    assert np.mean(found) >= 0.95


@pytest.mark.parametrize("size", [20, 50])
def test_longer_sessions_keep_the_promise_too(size):
    rng = np.random.default_rng(11)
    for rule in (DRIFT, DROP):
        alarmed = [alarm(rule, sittings(rng, (0.8, 1000), icc=0.3, size=size), rng) is not None for _ in range(80)]
        # Of 80 series 6.5 % and two standard errors.
        assert np.mean(alarmed) <= 0.12


@pytest.mark.parametrize("batch", [1, 7, 100])
def test_batches_of_any_size_give_the_same_alarms_with_the_same_evidence(batch):
    rng = np.random.default_rng(4)
    episodes = []
    for number in range(900):
        # Two robots take turns, each in sessions of its own; every ninth episode is in none.
        robot, bad = number % 2, 500 <= number < 700
        session = None if number % 9 == 0 else f"r{robot}-{number // 30}"
        success = bool(rng.random() < (0.3 if bad else 0.9))
        episodes.append(seen(number, success, session, robot=f"r{robot}", stage="full"))
    rules = [DRIFT, DROP, Rule("gate", "stage_gate", StageGateParams(), "warning")]

    def watched(size):
        stored, found = {}, []
        for at in range(0, len(episodes), size):
            fresh, states = watch_episodes(
                rules, stored, episodes[at : at + size], count=at, sim_counts=lambda _: (1800, 2000)
            )
            # A robot's detector is given back with the batches that it is in.
            stored |= {key: StoredDetector(s.params, json.loads(json.dumps(s.state))) for key, s in states.items()}
            found += [(one.rule.name, one.series, one.input, at + one.index, one.evidence) for one in fresh]
        return found, stored

    whole, states = watched(len(episodes))
    assert [(name, given) for name, _, given, _, _ in whole if name != "gate"][:2] == [
        ("drop", "breach"),
        ("drift", "breach"),
    ]
    assert watched(batch) == (whole, states)


def test_an_alarm_over_sessions_says_so_and_counts_episodes():
    rng = np.random.default_rng(5)
    episodes = sittings(rng, (0.9, 300), (0.3, 200), icc=0.1)
    found, _ = watch_episodes([DRIFT], {}, episodes, count=0, sim_counts=lambda _: (0, 0))
    evidence = found[0].evidence
    assert evidence["statistic"] == "e-detector over sessions"
    assert evidence["reference"]["n"] == 300
    assert evidence["sessions"]["n"] >= 30
    assert evidence["sessions"]["design_effect"] > 1
    since = evidence["since"]
    assert since["n"] % 10 == 0
    # The change is dated to the first episode of a session near it.
    number = int(evidence["change_point"]["first_episode"].removeprefix("e"))
    assert number % 10 == 0
    assert abs(number - 300) <= 20
    assert since["interval"][0] < since["value"] < since["interval"][1]
    assert evidence["decided_by"]["episode"] == f"e{found[0].index}"


def test_a_drop_against_sim_over_sessions_has_an_interval_that_knows_of_them():
    rng = np.random.default_rng(6)
    episodes = sittings(rng, (0.8, 300), (0.4, 300), icc=0.3)
    found, _ = watch_episodes([DROP], {}, episodes, count=0, sim_counts=lambda _: (1600, 2000))
    evidence = found[0].evidence
    assert evidence["statistic"] == "e-process over sessions"
    low, high = evidence["drop"]["interval"]
    assert low < evidence["reference"]["value"] - evidence["since"]["value"] < high
    assert evidence["e_value"] >= evidence["threshold"] == evidence["arl"] == 30_000


def fed(sessions, episode, part_size=5):
    """What one episode completes: the mean and n of each part, or the value itself."""
    complete = [
        *sessions.end_before(episode),
        *sessions.take(episode, float(episode.outcome == "success"), part_size),
    ]
    return [one.value if isinstance(one.value, float) else (one.value.mean, one.value.n) for one in complete]


def test_a_session_is_one_value_when_it_is_over_and_a_long_one_several():
    sessions = Sessions()
    given = [fed(sessions, seen(i, i % 2 == 0, "a")) for i in range(13)]
    assert [(i, one) for i, one in enumerate(given) if one] == [(4, [(0.6, 5)]), (9, [(0.4, 5)])]
    # The rest is three of five, which is worth a look of its own.
    assert fed(sessions, seen(13, True, "b")) == [(2 / 3, 3)]
    [one] = sessions.end_all()
    assert (one.value.mean, one.value.n, one.value.ended) == (1.0, 1, (1.0, 1))
    assert sessions.is_empty


def test_a_short_rest_is_learned_from_and_not_judged():
    sessions = Sessions()
    for number in range(7):
        fed(sessions, seen(number, True, "a"))
    [rest] = sessions.end_all()
    assert (rest.value.n, rest.value.is_judged, rest.value.ended) == (2, False, (7.0, 7))


def test_sessions_of_robots_that_take_turns_are_kept_apart():
    sessions = Sessions()
    for number in range(8):
        robot = f"r{number % 2}"
        assert fed(sessions, seen(number, number % 2 == 0, f"{robot}-am", robot=robot)) == []
    # Only its own robot moving on ends a session; an episode in none ends nothing.
    assert fed(sessions, seen(8, True, None, robot="r0")) == [1.0]
    assert fed(sessions, seen(9, True, "r0-pm", robot="r0")) == [(1.0, 4)]


def test_two_hours_end_a_session_also_one_that_goes_on_under_its_name():
    sessions = Sessions()
    fed(sessions, seen(0, True, "am"))
    assert fed(sessions, seen(1, True, "am", at=START + timedelta(hours=2))) == []
    assert fed(sessions, seen(2, False, "am", at=START + timedelta(hours=5))) == [(1.0, 2)]
    assert fed(sessions, seen(3, False, None, at=START + timedelta(hours=9))) == [(0.0, 1), 0.0]


def test_no_more_than_twenty_sessions_are_open():
    sessions = Sessions()
    for number in range(MOST_OPEN + 5):
        complete = fed(sessions, seen(number, True, f"s{number}", robot=f"r{number}"))
        assert complete == ([] if number < MOST_OPEN else [(1.0, 1)])
    assert len(sessions.dump()) == MOST_OPEN
    again = Sessions(json.loads(json.dumps(sessions.dump())))
    assert again.dump() == sessions.dump()


def test_an_episode_that_comes_for_a_session_that_is_over_resets_nothing():
    rng = np.random.default_rng(7)
    episodes = sittings(rng, (0.9, 300), icc=0.0)
    late = seen(300, False, "s3", at=START + 35 * MINUTE)
    _, before = watch_episodes([DRIFT], {}, episodes, count=0, sim_counts=lambda _: (0, 0))
    found, after = watch_episodes([DRIFT], before, [late], count=300, sim_counts=lambda _: (0, 0))
    assert found == []
    old, new = (states["drift", "success"].state["detector"] for states in (before, after))
    assert new["sessions"]["sessions"] == old["sessions"]["sessions"] + 1
    assert new["learned_n"] >= old["learned_n"]


def test_a_deployment_that_names_one_session_for_ever_is_watched_as_if_it_named_none():
    rng = np.random.default_rng(8)
    values = [*(rng.random(300) < 0.9), *(rng.random(100) < 0.3)]

    def first_breach(names):
        given = [seen(i, bool(x), name) for i, (x, name) in enumerate(zip(values, names, strict=True))]
        found, _ = watch_episodes([DRIFT], {}, given, count=0, sim_counts=lambda _: (0, 0))
        return next(one.index for one in found if one.input == "breach")

    assert first_breach(["one"] * 400) == first_breach([None] * 400) < 330
    # A second session that is bad throughout is not much proof, but some.
    assert 330 < first_breach(["good"] * 300 + ["bad"] * 100) < 400


def test_a_new_policy_version_and_another_stage_end_the_sessions_before_them():
    rng = np.random.default_rng(9)
    episodes = sittings(rng, (0.8, 303), icc=0.1)
    later = seen(400, True, episodes[-1].session, policy_id=2)
    _, stored = watch_episodes([DROP], {}, [*episodes, later], count=0, sim_counts=lambda _: (1600, 2000))
    [open_] = stored["drop", "success"].state["sessions"]
    assert (open_["session"], open_["n"]) == (episodes[-1].session, 1)
