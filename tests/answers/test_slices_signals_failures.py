"""Where it is lost, what was measured, and how attempts fail, through the API."""

from random import Random

import pytest
from answers.lab import attempts, real, sim

BERLIN = "/deployments/berlin-line-3"


def test_the_level_that_is_worse_stands_out_and_levels_of_one_side_are_named(lab):
    for light, in_sim, in_real in (("dim", (95, 5), (50, 50)), ("bright", (95, 5), (94, 6))):
        for thing in ("mug", "can"):
            fields = {"conditions": {"lighting": light, "object": thing}}
            lab.send([*attempts(sim, *in_sim, **fields), *attempts(real, *in_real, **fields)])
    lab.send(
        [*attempts(sim, 5, 0, conditions={"lighting": "strobe"}), *attempts(real, 3, 0, conditions={"wet": True})]
    )
    answer = lab.ask(f"{BERLIN}/slices")
    found = {(one["condition"], one["level"]): one for one in answer["slices"]}
    dim = found["lighting", "dim"]
    assert (dim["drop"], dim["verdict"], dim["suspect"]) == (pytest.approx(0.45), "worse", True)
    assert dim["interval"][0] < 0.45 < dim["interval"][1]
    assert (dim["sim"]["n"], dim["real"]["n"], dim["categories"]) == (200, 200, ["visual"])
    assert dim["q_value"] < 1e-6
    # Wilson's, of 100 of 200.
    assert dim["real"]["interval"] == pytest.approx([0.4314, 0.5686], abs=1e-4)
    assert answer["slices"][0] == dim
    assert not found["lighting", "bright"]["suspect"]
    # The two objects are equally bad: neither stands out.
    assert not any(found["object", thing]["suspect"] for thing in ("mug", "can"))
    assert (found["lighting", "strobe"]["seen"], found["lighting", "strobe"]["drop"]) == ("sim only", None)
    assert found["wet", "true"]["seen"] == "real only"
    assert found["lighting", "missing"]["real"]["n"] == 3
    pairs = {(one["condition"], one["level"]): one for one in answer["pairs"]}
    crossed = pairs.get(("lighting × object", "dim × mug")) or pairs["object × lighting", "mug × dim"]
    assert crossed["drop"] == pytest.approx(0.45)
    assert (crossed["sim"]["n"], crossed["real"]["n"]) == (100, 100)


def test_a_signal_that_is_shifted_comes_first_with_its_size_and_category(lab):
    chance = Random(5)
    for make, shift in ((sim, 0.0), (real, 2.0)):
        lab.send(
            make(signals={"peak_force_n": chance.gauss(20 + shift, 1), "room_temperature_c": chance.gauss(21, 1)})
            for _ in range(80)
        )
    lab.send(real(signals={"battery_voltage": 24.0}) for _ in range(5))
    answer = lab.ask(f"{BERLIN}/signals")
    force, other, alone = answer["signals"]
    assert (force["signal"], force["categories"], force["size"]) == ("peak_force_n", ["contact_dynamics"], "large")
    assert 0.6 < force["interval"][0] < force["effect"] < force["interval"][1] <= 1
    assert force["q_value"] < 1e-6
    assert (force["sim"]["n"], force["real"]["n"]) == (80, 80)
    assert force["sim"]["median"] == pytest.approx(20, rel=0.05)
    assert force["sim"]["curve"][-1][1] == 1
    assert len(force["sim"]["curve"]) <= 60
    assert (other["signal"], other["interval"][0] < 0 < other["interval"][1]) == ("room_temperature_c", True)
    assert (alone["signal"], alone["seen"], alone["effect"]) == ("battery_voltage", "real only", None)
    assert not answer["sampled"]
    assert lab.ask(f"{BERLIN}/signals", condition="lighting:")["sampled"]


def test_failures_are_grouped_and_tell_which_side_knows_them(lab):
    lab.send(
        [
            *attempts(sim, 97, 0),
            *(sim("failure", failure={"phase": "grasp", "labels": ["slip"]}) for _ in range(2)),
            sim("failure", failure={"phase": "place"}),
            *attempts(real, 30, 0),
            *(real("failure", failure={"phase": "grasp", "labels": ["slip"]}) for _ in range(10)),
            *(real("failure", failure={"phase": "approach", "labels": ["glare", "blur"]}) for _ in range(6)),
            *(real("failure", failure={"category": "actuation"}) for _ in range(4)),
        ]
    )
    answer = lab.ask(f"{BERLIN}/failures")
    groups = answer["groups"]
    assert [(g["phase"], g["labels"], g["category"], g["seen"]) for g in groups] == [
        ("grasp", ["slip"], None, "both"),
        ("approach", ["blur", "glare"], None, "real only"),
        (None, [], "actuation", "real only"),
        ("place", [], None, "sim only"),
    ]
    assert groups[0]["points_to"] == ["contact_dynamics"]
    assert groups[0]["excess"] == pytest.approx(10 / 50 - 2 / 100)
    assert groups[0]["interval"][0] < groups[0]["excess"] < groups[0]["interval"][1]
    assert (groups[0]["real"], groups[0]["sim"]) == (
        {"failures": 10, "share": pytest.approx(0.2)},
        {"failures": 2, "share": pytest.approx(0.02)},
    )
    assert {word["word"]: word["real"]["failures"] for word in answer["labels"]} == {
        "slip": 10,
        "glare": 6,
        "blur": 6,
    }
    assert {word["word"]: word["seen"] for word in answer["phases"]} == {
        "grasp": "both", "approach": "real only", None: "real only", "place": "sim only",
    }  # fmt: skip
    # The groups add up to the drop.
    assert sum(group["excess"] for group in groups) == pytest.approx(lab.ask(f"{BERLIN}/drop")["drop"]["value"])
