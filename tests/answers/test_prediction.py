"""The real rate with the help of sim, beside the one without."""

import pytest
from answers.lab import attempts, real, sim

PREDICTION = "/deployments/berlin-line-3/prediction"


def paired(outcomes):
    for number, (in_real, in_sim) in enumerate(outcomes):
        words = ["failure", "success"]
        yield real(words[in_real], pair=f"p{number}")
        yield sim(words[in_sim], pair=f"p{number}")


def test_pairs_that_agree_sharpen_the_real_rate(lab):
    # 30 pairs: 18 succeed on both sides, 9 on neither, 2 in sim only, 1 in real only; 500 further sim episodes.
    lab.send(paired([(1, 1)] * 18 + [(0, 0)] * 9 + [(0, 1)] * 2 + [(1, 0)]))
    lab.send(attempts(sim, 350, 150))
    answer = lab.ask(PREDICTION)
    assert (answer["way"], answer["predicted"]["pairs"], answer["predicted"]["sim_episodes"]) == ("pairs", 30, 500)
    # λ = 1: the mean of the further sim episodes plus the mean of real minus sim over the pairs.
    assert answer["predicted"]["value"] == pytest.approx(0.7 + (1 - 2) / 30)
    assert (answer["without"]["value"], answer["without"]["n"]) == (pytest.approx(19 / 30), 30)
    assert answer["predicted"]["weight"] == 1
    assert 0.7 < answer["predicted"]["rho"] < 0.9
    width = [high - low for low, high in (answer["predicted"]["interval"], answer["without"]["interval"])]
    assert width[0] < width[1]
    assert answer["predicted"]["effective_n"] > 30


def test_pairs_that_say_nothing_of_each_other_are_refused(lab):
    lab.send(paired([(1, 1), (1, 0), (0, 1), (0, 0)] * 5))
    lab.send(attempts(sim, 50, 50))
    answer = lab.ask(PREDICTION)
    assert (answer["predicted"]["value"], answer["predicted"]["interval"]) == (None, None)
    assert "below 0.3" in answer["predicted"]["reason"]
    assert answer["without"]["value"] == pytest.approx(0.5)


def test_without_pairs_the_cells_predict_where_the_mix_is_the_same(lab):
    easy, hard = {"conditions": {"object": "mug"}}, {"conditions": {"object": "glass"}}
    lab.send([*attempts(sim, 490, 10, **easy), *attempts(sim, 50, 450, **hard)])
    lab.send([*attempts(real, 18, 2, **easy), *attempts(real, 3, 17, **hard)])
    answer = lab.ask(PREDICTION)
    assert answer["way"] == "cells"
    assert answer["predicted"]["rho"] > 0.7
    assert answer["predicted"]["value"] == pytest.approx(21 / 40)
    lab.send(attempts(real, 60, 0, **easy))
    other_mix = lab.ask(PREDICTION)
    assert (other_mix["way"], other_mix["predicted"]["value"]) == ("none", None)
    assert "other shares" in other_mix["predicted"]["reason"]
