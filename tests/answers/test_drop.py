"""How much is lost, through the API."""

import pytest
from answers.lab import attempts, real, sim

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
    assert answer["window"] == {"since": None, "until": None}
