"""The drop of metrics other than success, through the API."""

from random import Random

import pytest
from answers.lab import attempts, real, sim

from gapwatch.statistics.estimates.drops import (
    MetricSums,
    duration_drop,
)
from gapwatch.statistics.estimates.skewed_means import MeanSide, guarded_mean_drop

DROP = "/deployments/berlin-line-3/drop"


def test_a_reward_is_compared_by_means_with_welchs_interval(lab):
    in_sim, in_real = [0.9, 0.8, 1.0, 0.7, 0.85], [0.5, 0.7, 0.4, 0.6]
    # Failures have rewards too, and count.
    lab.send([*(sim(reward=x) for x in in_sim), *(real("failure", reward=x) for x in in_real), real()])
    answer = lab.ask(DROP, metric="reward")
    sums = (MetricSums(len(x), sum(x), sum(v * v for v in x)) for x in (in_sim, in_real))
    expected = guarded_mean_drop(*map(MeanSide, sums), "lower")
    assert answer["drop"]["value"] == pytest.approx(0.3)
    assert answer["drop"]["interval"] == pytest.approx([expected.low, expected.high])
    assert answer["drop"]["relative"] == pytest.approx(0.3 / 0.85)
    assert (answer["sim"]["n"], answer["real"]["n"], answer["real"]["value"]) == (5, 4, pytest.approx(0.55))
    assert (answer["better"], answer["direction"], answer["method"]) == ("higher", "default", "welch")
    assert (answer["verdict"], answer["smallest_that_matters"]) == ("large", pytest.approx(0.05 * 0.85))


def test_a_project_says_which_direction_is_better_and_what_matters(lab):
    lab.send(
        [*(sim(metrics={"score": 10 + x}) for x in (0, 1, 2)), *(real(metrics={"score": x}) for x in (15, 16))]
    )
    assert lab.ask(DROP, metric="score")["drop"]["value"] == pytest.approx(-4.5)
    lab.options({"metrics": {"score": {"better": "lower", "smallest_that_matters": 100}}})
    answer = lab.ask(DROP, metric="score")
    assert answer["drop"]["value"] == pytest.approx(4.5)
    assert (answer["better"], answer["direction"], answer["smallest_that_matters"]) == ("lower", "project", 100)
    assert answer["verdict"] == "small"


def test_energy_is_worse_when_it_is_higher_without_being_told(lab):
    lab.send(
        [*(sim(metrics={"energy_j": x}) for x in (100, 102)), *(real(metrics={"energy_j": x}) for x in (150, 152))]
    )
    answer = lab.ask(DROP, metric="energy_j")
    assert (answer["drop"]["value"], answer["better"]) == (pytest.approx(50), "lower")


def test_attempts_that_failed_are_durations_cut_off_and_not_left_out(lab):
    chance = Random(3)
    in_sim = [(round(chance.uniform(5, 15), 2), False) for _ in range(40)]
    in_real = [(round(chance.uniform(8, 20), 2), False) for _ in range(25)] + [(20.0, True)] * 10
    lab.send(
        [
            *(sim(duration_s=time) for time, _ in in_sim),
            *(real("failure" if cut else "success", duration_s=time) for time, cut in in_real),
        ]
    )
    answer = lab.ask(DROP, metric="duration_s")
    expected = duration_drop(in_sim, in_real)
    # Sketches keep a duration within one per cent.
    assert answer["drop"]["value"] == pytest.approx(expected.value, abs=0.2)
    assert answer["drop"]["interval"] == pytest.approx([expected.low, expected.high], abs=0.3)
    assert (answer["sim"]["n"], answer["real"]["n"]) == (40, 35)
    assert answer["method"].startswith("restricted mean up to")
    assert answer["better"] == "lower"


def test_durations_without_failures_are_exact_means(lab):
    lab.send([*(sim(duration_s=x) for x in (10.0, 11.0, 12.0)), *(real(duration_s=x) for x in (13.0, 14.0, 18.0))])
    answer = lab.ask(DROP, metric="duration_s")
    assert (answer["drop"]["value"], answer["method"]) == (pytest.approx(4.0), "welch")


def test_a_filter_takes_the_metric_of_matching_episodes(lab):
    dim = {"conditions": {"lighting": "dim"}}
    lab.send([*(sim(reward=x, **dim) for x in (0.9, 1.0)), *(sim(reward=0.1) for _ in range(3))])
    lab.send([*(real(reward=x, **dim) for x in (0.4, 0.6)), *(real(reward=0.9) for _ in range(3))])
    answer = lab.ask(DROP, metric="reward", condition="lighting:dim")
    assert (answer["sim"]["n"], answer["real"]["n"], answer["drop"]["value"]) == (2, 2, pytest.approx(0.45))
    assert answer["sim"]["sampled"]


def test_a_metric_that_a_side_lacks_or_measures_in_another_unit_is_refused_with_the_reason(lab):
    lab.send([*(sim(metrics={"energy_j": 5.0}) for _ in range(3)), *attempts(real, 3, 0)])
    answer = lab.ask(DROP, metric="energy_j")
    assert (answer["drop"]["value"], answer["verdict"]) == (None, "too few episodes")
    assert answer["reason"] == "No episode in real has the metric energy_j."
    assert lab.ask(DROP, metric="unheard_of")["reason"] == "No episode in sim and real has the metric unheard_of."
    joule, calorie = ({"contract": {"units": {"work": unit}}, "metrics": {"work": 4.2}} for unit in ("J", "cal"))
    lab.send([*(sim(**joule) for _ in range(3)), *(real(**calorie) for _ in range(3))])
    answer = lab.ask(DROP, metric="work")
    assert (answer["drop"]["value"], answer["reason"]) == (None, "work is in J in sim and in cal in real.")
    assert answer["warnings"][0]["code"] == "contract-differs"
    # Success has no unit and is compared all the same, with the warning.
    success = lab.ask(DROP)
    assert success["drop"]["value"] == 0
    assert success["warnings"][0]["code"] == "contract-differs"
