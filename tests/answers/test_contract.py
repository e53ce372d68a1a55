"""Sides that do not mean the same: the field diff first, and the warning in every answer."""

from answers.lab import attempts, real, sim

BERLIN = "/deployments/berlin-line-3"
SIM = {"action_scale": 0.5, "control_hz": 50, "joint_order": ["j1", "j2"], "camera": {"fov": 60}}
REAL = {"action_scale": 1.0, "control_hz": 50.0, "joint_order": ["j2", "j1"], "camera": {"fov": 60}, "gain": 3}


def test_the_field_diff_is_shown_and_every_answer_carries_the_warning(lab):
    lab.send([*attempts(sim, 9, 1, contract=SIM), *attempts(real, 5, 5, contract=REAL)])
    answer = lab.ask(f"{BERLIN}/contract")
    assert answer["verdict"] == "differs"
    assert answer["differences"] == [
        {"field": "joint_order", "kind": "order", "sim": ["j1", "j2"], "real": ["j2", "j1"]},
        {"field": "action_scale", "kind": "value", "sim": 0.5, "real": 1.0},
        {"field": "gain", "kind": "only in real", "sim": None, "real": 3},
    ]
    assert [(use["contract"], use["episodes"]) for use in answer["real"]] == [(REAL, 10)]
    for question in (
        "",
        "/drop",
        "/ledger",
        "/slices",
        "/signals",
        "/trend",
        "/failures",
        "/onset",
        "/prediction",
    ):
        first = lab.ask(BERLIN + question)["warnings"][0]
        assert (first["code"], first["differences"]) == ("contract-differs", answer["differences"])
    assert lab.ask("/policies/bin-pick/drop")["warnings"][0]["code"] == "contract-differs"


def test_contracts_that_agree_or_are_unknown_warn_of_nothing(lab):
    lab.send([*attempts(sim, 9, 1, contract=SIM), *attempts(real, 5, 5)])
    unknown = lab.ask(f"{BERLIN}/contract")
    assert (unknown["verdict"], unknown["reason"], unknown["warnings"]) == ("unknown", "No contract in real.", [])
    lab.send(attempts(real, 5, 5, contract=SIM | {"control_hz": 50.00000001}))
    assert lab.ask(f"{BERLIN}/contract")["verdict"] == "comparable"


def test_the_contract_of_a_single_robot_is_compared_and_named(lab):
    """One robot of three sends its joint order swapped, honestly; most episodes run under the same as sim."""
    swapped = SIM | {"joint_order": ["j2", "j1"]}
    lab.send(attempts(sim, 180, 20, contract=SIM))
    for robot, contract, failures in (("arm-1", SIM, 5), ("arm-2", swapped, 20), ("arm-3", SIM, 5)):
        lab.send(attempts(real, 50 - failures, failures, contract=contract, robot=robot))
    answer = lab.ask(f"{BERLIN}/contract")
    assert answer["verdict"] == "differs"
    assert [difference["field"] for difference in answer["differences"]] == ["joint_order"]
    assert [(one["robot"], one["verdict"], one["fields"]) for one in answer["robots"]] == [
        ("arm-2", "differs", ["joint_order"]),
        ("arm-1", "comparable", []),
        ("arm-3", "comparable", []),
    ]
    first = lab.ask(f"{BERLIN}/drop")["warnings"][0]
    assert first["code"] == "contract-differs"
    assert "50 of 150 real episodes (arm-2)" in first["message"] and "joint_order" in first["message"]
    own = lab.ask(f"{BERLIN}/contract", robot="arm-2")
    assert (own["verdict"], own["differences"][0]["field"]) == ("differs", "joint_order")
    assert lab.ask(f"{BERLIN}/contract", robot="arm-1")["verdict"] == "comparable"
    ledger = lab.ask(f"{BERLIN}/ledger")
    assert any("contract" in str(part).lower() for part in ledger["categories"]), ledger["categories"]


def test_of_several_contracts_each_is_compared_and_said(lab):
    lab.send([*attempts(sim, 9, 1, contract=SIM), *attempts(real, 5, 4, contract=SIM), real(contract=REAL)])
    answer = lab.ask(f"{BERLIN}/contract")
    assert answer["verdict"] == "differs"
    differs, several = answer["warnings"]
    assert (several["code"], "90 %" in several["message"]) == ("several-contracts", True)
    assert (differs["code"], "1 of 10 real episodes" in differs["message"]) == ("contract-differs", True)


def test_a_contract_that_is_new_in_every_episode_costs_no_more_than_some(lab):
    lab.send(sim(contract=SIM | {"run": number}) for number in range(60))
    lab.send([*attempts(real, 5, 0, contract=SIM), *attempts(real, 2, 0)])
    answer = lab.ask(f"{BERLIN}/contract")
    assert (answer["sim_contracts"], len(answer["sim"])) == (60, 20)
    assert [(use["contract"], use["episodes"]) for use in answer["real"]] == [(SIM, 5), (None, 2)]
    assert (answer["real_contracts"], answer["differences"][0]["field"]) == (1, "run")
    # Two in sixty run under the compared one: that is no evidence for a failure.
    assert lab.ask(f"{BERLIN}/ledger")["warnings"][1]["code"] == "several-contracts"


def test_every_answer_carries_only_the_gravest_of_very_many_differences(lab):
    lab.send([*attempts(sim, 5, 5, contract={f"f{n}": 0 for n in range(90)})])
    lab.send([*attempts(real, 5, 5, contract={f"f{n}": 1 for n in range(90)})])
    assert len(lab.ask(f"{BERLIN}/contract")["differences"]) == 90
    [warning] = lab.ask(f"{BERLIN}/drop")["warnings"]
    assert (len(warning["differences"]), "90 fields" in warning["message"]) == (20, True)
