"""A world in which the cause of every failure is known: sent, folded and asked for, the ledger finds it."""

import math

import pytest
from answers.lab import real, sim

from gapwatch.demo.experiment import ledger_of, two_sides
from gapwatch.demo.gaps import GAPS


def records(make, side):
    """The episodes of one side of the world as records of the API."""
    signals = {name: values.tolist() for name, values in side.run.signals.items()}
    levels = {name: values.tolist() for name, values in side.levels().items()}
    contract = {"action_scale": 0.5 + side.contract_fields_differing, "control_hz": 50}
    for row in range(side.run.scene.n):
        fields = {
            "conditions": {name: values[row] for name, values in levels.items()},
            "signals": {name: values[row] for name, values in signals.items() if math.isfinite(values[row])},
            "contract": contract,
        }
        if side.run.failed[row]:
            labels = list(side.labels[row]) if side.labels else []
            fields["failure"] = {"phase": side.run.phases[side.run.failed_in[row]], "labels": labels}
        yield make("failure" if side.run.failed[row] else "success", **fields)


@pytest.mark.parametrize(
    ("gaps", "labelled"), [(("latency",), False), (("action scale",), False), (("dim light",), True), ((), False)]
)
def test_the_service_makes_the_ledger_that_the_benchmark_measures(lab, gaps, labelled):
    # As many as are read: of more, the service takes a sample.
    in_sim, in_real = two_sides(gaps, 100, 4, labelled=labelled, n_sim=300)
    lab.send([*records(sim, in_sim), *records(real, in_real)])
    answer = lab.ask("/deployments/berlin-line-3/ledger")
    expected = ledger_of(in_sim, in_real)
    assert answer["drop"] == pytest.approx(expected.drop, abs=1e-9)
    found = {part["category"]: part for part in answer["categories"]}
    for entry in expected.entries:
        if entry.category in found:
            same = pytest.approx(entry.contribution, abs=0.001)
            assert found[entry.category]["contribution"] == same, entry.category
    total = sum(part["contribution"] for part in found.values()) + answer["unattributed"]["contribution"]
    assert total == pytest.approx(answer["drop"], abs=1e-9)
    if gaps:
        assert answer["categories"][0]["category"] == GAPS[gaps[0]].category
        assert answer["categories"][0]["interval"][0] > 0
    else:
        assert all(part["interval"] is None or part["interval"][0] <= 0.005 for part in found.values())
