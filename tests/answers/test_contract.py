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
    assert answer["real"] == [{"contract": REAL, "episodes": 10}]
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


def test_of_several_contracts_the_most_used_is_compared_and_said(lab):
    lab.send([*attempts(sim, 9, 1, contract=SIM), *attempts(real, 5, 4, contract=SIM), real(contract=REAL)])
    answer = lab.ask(f"{BERLIN}/contract")
    assert answer["verdict"] == "comparable"
    [warning] = answer["warnings"]
    assert (warning["code"], "90 %" in warning["message"]) == ("several-contracts", True)


def test_a_contract_that_is_new_in_every_episode_costs_no_more_than_some(lab):
    lab.send(sim(contract=SIM | {"run": number}) for number in range(60))
    lab.send([*attempts(real, 5, 0, contract=SIM), *attempts(real, 2, 0)])
    answer = lab.ask(f"{BERLIN}/contract")
    assert (answer["sim_contracts"], len(answer["sim"])) == (60, 20)
    assert answer["real"] == [{"contract": SIM, "episodes": 5}, {"contract": None, "episodes": 2}]
    assert (answer["real_contracts"], answer["differences"][0]["field"]) == (1, "run")
    # Two in sixty run under the compared one: that is no evidence for a failure.
    assert lab.ask(f"{BERLIN}/ledger")["warnings"][1]["code"] == "several-contracts"


def test_every_answer_carries_only_the_gravest_of_very_many_differences(lab):
    lab.send([*attempts(sim, 5, 5, contract={f"f{n}": 0 for n in range(90)})])
    lab.send([*attempts(real, 5, 5, contract={f"f{n}": 1 for n in range(90)})])
    assert len(lab.ask(f"{BERLIN}/contract")["differences"]) == 90
    [warning] = lab.ask(f"{BERLIN}/drop")["warnings"]
    assert (len(warning["differences"]), "90 fields" in warning["message"]) == (20, True)
