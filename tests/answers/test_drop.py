"""How much is lost, through the API."""

import pytest
from answers.lab import LATER, attempts, real, sim

from gapwatch.answers.catalogue import DEPLOYMENT_ANSWERS

DROP = "/deployments/berlin-line-3/drop"


def test_a_published_drop_comes_out_with_its_interval_and_every_promised_field(lab):
    lab.send([*attempts(sim, 56, 14), *attempts(real, 48, 32)])
    answer = lab.ask(DROP, metric="success")
    # Newcombe 1998b, Table II: 56/70 − 48/80.
    assert answer["drop"]["value"] == pytest.approx(0.2)
    assert answer["drop"]["interval"] == pytest.approx([0.0524, 0.3339], abs=5e-5)
    assert answer["drop"]["relative"] == pytest.approx(0.25)
    assert (answer["sim"]["n"], answer["sim"]["value"]) == (70, pytest.approx(0.8))
    assert (answer["real"]["n"], answer["real"]["value"]) == (80, pytest.approx(0.6))
    assert answer["real"]["interval"] == pytest.approx([0.4905, 0.7004], abs=5e-5)
    assert (answer["metric"], answer["verdict"], answer["method"]) == ("success", "large", "newcombe")
    assert answer["episodes_needed"] == 0
    assert answer["baseline"] == {
        "simulator": "mujoco",
        "version": "3.3.0",
        "chosen": "most episodes",
        "n": 70,
        "window": None,
        "alternatives": [],
    }
    assert answer["window"] == {"since": None, "until": None, "name": "everything stored"}


def test_aborted_and_abandoned_attempts_are_counted_apart(lab):
    lab.send([*attempts(sim, 9, 1), *attempts(real, 6, 4), real("aborted"), real("aborted"), real("abandoned")])
    answer = lab.ask(DROP)
    assert answer["real"]["n"] == 10
    assert (answer["real"]["aborted"], answer["real"]["abandoned"]) == (2, 1)
    assert (answer["sim"]["aborted"], answer["sim"]["abandoned"]) == (0, 0)
    assert answer["drop"]["value"] == pytest.approx(0.3)
    # The same had they failed is the drop of a project that sends them as failures.
    second = answer["if_unfinished_failed"]
    assert (second["n_sim"], second["n_real"]) == (10, 13)
    assert (second["sim"], second["real"]) == (pytest.approx(0.9), pytest.approx(6 / 13))
    lab.send([real("failure") for _ in range(3)])
    as_failures = lab.ask(DROP)
    assert second["drop"] == as_failures["drop"]
    assert second["verdict"] == as_failures["verdict"]


def test_where_every_attempt_ended_there_is_no_second_answer(lab):
    lab.send([*attempts(sim, 9, 1), *attempts(real, 6, 4)])
    assert lab.ask(DROP)["if_unfinished_failed"] is None


def test_a_verdict_that_is_open_says_how_many_more_episodes_would_settle_it(lab):
    lab.send([*attempts(sim, 90, 10), *attempts(real, 8, 2)])
    answer = lab.ask(DROP, precision=0.1)
    assert answer["verdict"] == "too few episodes"
    assert answer["episodes_needed"] > 0
    assert answer["episodes_for_precision"] > 0
    # As many more at the present rate settle it.
    more = answer["episodes_needed"] + 20
    lab.send(attempts(real, round(0.8 * more), more - round(0.8 * more)))
    settled = lab.ask(DROP)
    assert (settled["verdict"], settled["episodes_needed"]) == ("small", 0)


def test_five_sessions_on_a_side_make_its_interval_wider(lab):
    alone = [*attempts(sim, 90, 10), *attempts(real, 30, 20)]
    lab.send(alone)
    without = lab.ask(DROP)
    # Ten sittings, of which two go wrong altogether.
    sittings = [
        record
        for number, (k, n) in enumerate([(5, 5)] * 6 + [(0, 5)] * 4)
        for record in attempts(real, k, n - k, session=f"2026-10-0{number}-am", deployment="hall-2")
    ]
    lab.send(sittings)
    with_sessions = lab.ask("/deployments/hall-2/drop")
    assert with_sessions["drop"]["value"] == pytest.approx(without["drop"]["value"])
    assert with_sessions["real"]["sessions"] == 10
    assert "clustered by session" in with_sessions["method"]
    assert "clustered" not in without["method"]
    width = [high - low for low, high in (with_sessions["drop"]["interval"], without["drop"]["interval"])]
    assert width[0] > 1.3 * width[1]


def test_pairs_are_compared_as_pairs_from_ten_on(lab):
    # 12 pairs: both succeed in 6, only sim in 4, only real in 1, neither in 1.
    outcomes = [("success", "success")] * 6 + [("success", "failure")] * 4
    outcomes += [("failure", "success"), ("failure", "failure")]
    for number, (in_sim, in_real) in enumerate(outcomes):
        pair = {"pair": f"scene-{number}"}
        lab.send([sim(in_sim, reward=1.0, **pair), real(in_real, reward=0.5 + 0.01 * number, **pair)])
    complete = lab.ask(DROP)
    assert complete["paired"]["pairs"] == 12
    assert complete["paired"]["value"] == pytest.approx(0.25)
    # Every attempt has its partner, so the drop itself is the paired one.
    assert complete["drop"]["value"] == pytest.approx(0.25)
    assert complete["drop"]["interval"] == complete["paired"]["interval"]
    assert complete["method"] == "newcombe, paired"
    reward = lab.ask(DROP, metric="reward")["paired"]
    assert (reward["value"], reward["pairs"]) == (pytest.approx(0.445), 12)
    assert reward["interval"][0] < 0.445 < reward["interval"][1]
    # With further sim episodes the pairs stand beside the drop.
    lab.send(attempts(sim, 50, 0))
    beside = lab.ask(DROP)
    assert beside["method"].startswith("newcombe") and "paired" not in beside["method"]
    assert beside["paired"] == complete["paired"]
    assert beside["drop"]["value"] == pytest.approx(60 / 62 - 7 / 12)


def test_nine_pairs_are_too_few(lab):
    for number in range(9):
        lab.send([sim(pair=f"p{number}"), real(pair=f"p{number}")])
    assert lab.ask(DROP)["paired"] is None


def test_the_baseline_is_one_simulator_named_pinned_or_with_the_most_episodes(lab):
    isaac = {"simulator": {"name": "isaac", "version": "4.5"}}
    older = {"simulator": {"name": "mujoco", "version": "2.0"}}
    lab.send([*attempts(sim, 20, 0), *attempts(sim, 5, 5, **isaac), *attempts(sim, 1, 4, **older)])
    lab.send(attempts(real, 7, 3))
    most = lab.ask(DROP)
    assert (most["sim"]["n"], most["baseline"]["chosen"]) == (20, "most episodes")
    assert most["baseline"]["alternatives"] == [
        {"simulator": "isaac", "version": "4.5", "n": 10},
        {"simulator": "mujoco", "version": "2.0", "n": 5},
    ]
    lab.pin("berlin-line-3", "isaac")
    pinned = lab.ask(DROP)
    assert (pinned["sim"]["n"], pinned["baseline"]["chosen"]) == (10, "pinned")
    assert pinned["drop"]["value"] == pytest.approx(-0.2)
    assert lab.ask("/deployments")["deployments"][0]["simulator"] == "isaac"
    # Who names one means it.
    named = lab.ask(DROP, simulator="mujoco@2.0")
    assert (named["sim"]["n"], named["baseline"]["chosen"]) == (5, "named")
    assert lab.ask(DROP, simulator=["mujoco", "isaac"])["sim"]["n"] == 20
    nobody = lab.ask(DROP, simulator="gazebo")
    assert (nobody["sim"]["value"], nobody["drop"]["value"], nobody["baseline"]) == (None, None, None)
    assert "simulator that was named" in nobody["reason"]


def test_other_versions_of_the_policy_and_other_tasks_are_not_mixed_in(lab):
    lab.send(attempts(real, 1, 9, policy={"name": "bin-pick", "version": "1.3.0"}))
    lab.send(
        [*attempts(sim, 10, 0, policy={"name": "bin-pick", "version": "1.3.0"}), *attempts(sim, 0, 9, task="t2")]
    )
    lab.send([*attempts(sim, 8, 2), *attempts(real, 7, 3, at=LATER)])
    answer = lab.ask(DROP)
    assert (answer["version"], answer["sim"]["n"], answer["real"]["n"]) == ("1.4.0", 10, 10)
    assert answer["drop"]["value"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([*attempts(real, 7, 3)], "No sim episodes of bin-pick 1.4.0 on pick-mug."),
        (
            [*attempts(sim, 7, 3), real("aborted")],
            "No real episodes of bin-pick 1.4.0 on pick-mug in this window.",
        ),
    ],
)
def test_a_side_without_episodes_gives_nulls_and_a_reason(lab, records, reason):
    lab.send(records)
    answer = lab.ask(DROP)
    assert answer["reason"] == reason
    assert answer["drop"] == {"value": None, "interval": None, "relative": None, "relative_interval": None}
    assert answer["verdict"] == "too few episodes"
    assert (answer["episodes_needed"] or answer["episodes_needed_reason"]) is not None
    for kind in DEPLOYMENT_ANSWERS:
        # These two do not speak of the sides.
        if kind.name not in ("shadow", "ranges"):
            assert lab.ask(f"/deployments/berlin-line-3/{kind.name}")["reason"] == reason


def test_an_answer_says_whom_it_speaks_for_and_has_both(lab):
    """Five robots of 60 that differ: these five are known well, any robot of this kind is not."""
    lab.send(attempts(sim, 450, 50))
    for number, k in enumerate((54, 50, 47, 40, 31)):
        lab.send(attempts(real, k, 60 - k, robot=f"arm-{number}", site="berlin"))
    these = lab.ask("/deployments/berlin-line-3/drop")
    assert these["population"] == {"name": "these", "words": "these 5 robots only", "by": None, "levels": 0}
    assert [(one["population"], one["words"], one["by"], one["levels"]) for one in these["populations"]] == [
        ("these", "these 5 robots only", None, 0),
        ("any", "any robot of this kind", "robot", 5),
    ]
    assert these["drop"]["interval"] == these["populations"][0]["interval"]
    every = lab.ask("/deployments/berlin-line-3/drop", population="any")
    assert every["drop"]["interval"] == these["populations"][1]["interval"]
    assert every["method"] == "newcombe, clustered by robot"
    widths = [high - low for low, high in (every["drop"]["interval"], these["drop"]["interval"])]
    assert widths[0] > 2 * widths[1]
    # A window that begins and ends within a day counts its robots from the episodes.
    within = {"since": "2026-10-05T06:00:00Z", "until": "2026-10-05T18:00:00Z", "population": "any"}
    assert lab.ask("/deployments/berlin-line-3/drop", **within)["population"] == every["population"]
    filtered = lab.ask("/deployments/berlin-line-3/drop", robot=["arm-0", "arm-1"], population="any")
    assert filtered["population"]["levels"] == 2
    slices = lab.ask("/deployments/berlin-line-3/slices", population="any")
    assert slices["population"]["words"] == "any robot of this kind"
    assert lab.ask("/deployments/berlin-line-3/prediction", population="any")["population"]["by"] == "robot"
    assert lab.get("/deployments/berlin-line-3/drop", population="all").status_code == 422


def test_a_metric_of_mostly_zeros_has_no_interval_and_says_why(lab):
    lab.send(sim(metrics={"spill_ml": 1.0 + (n % 7)}) for n in range(60))
    lab.send(real(metrics={"spill_ml": 5.0 if n < 4 else 0.0}) for n in range(40))
    answer = lab.ask("/deployments/berlin-line-3/drop", metric="spill_ml")
    assert answer["drop"]["interval"] is None
    assert "4 of 40 are not" in answer["reason"]


def test_a_metric_with_a_long_tail_is_resampled(lab):
    lab.send(sim(metrics={"settle_m": 1.0 + (n % 7) / 7}) for n in range(60))
    lab.send(real(metrics={"settle_m": 1.05**n * (20.0 if n == 24 else 1.0)}) for n in range(25))
    answer = lab.ask("/deployments/berlin-line-3/drop", metric="settle_m")
    assert answer["method"] == "bootstrap-t"
    low, high = answer["drop"]["interval"]
    assert low < answer["drop"]["value"] < high
