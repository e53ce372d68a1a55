"""A policy over all its tasks: the published case in which the headline and the truth have opposite signs."""

import pytest
from answers.lab import attempts, real, sim

# "A careful examination of large behavior models" (TRI), Fig. 2A, nominal, seen tasks; Dryad
# doi:10.5061/dryad.xd2547dxc, CC0. Policy → task → (successes, episodes) in sim and, of three tasks, in real.
TASKS = (
    "BimanualPlaceAppleFromBowlIntoBin", "BimanualPlaceFruitFromBowlIntoBin", "BimanualPutRedBellPepperInBin",
    "BimanualPutSpatulaOnPlateFromDryingRack", "BimanualPutSpatulaOnPlateFromTable",
    "BimanualStackPlatesOnTableFromDryingRack", "BimanualStoreCerealBoxUnderShelf", "PlaceCupByCoaster",
    "PushCoasterToCenterOfTable", "PutBananaOnSaucer", "PutMugOnSaucer", "PutSpatulaInUtensilCrock",
    "TurnCupUpsideDown",
)  # fmt: skip
SIM_ONLY = {
    "Single Task": [
        (149, 200), (123, 200), (166, 199), (131, 200), (109, 200), (189, 200), (159, 199),
        (100, 200), (145, 200), (39, 200), (107, 200), (156, 200), (137, 200),
    ],
    "LBM zeroshot": [
        (151, 200), (172, 200), (166, 200), (163, 199), (164, 200), (175, 199), (151, 200),
        (104, 200), (115, 200), (10, 200), (119, 200), (147, 200), (141, 200),
    ],
    "LBM finetuned": [
        (158, 200), (173, 200), (167, 185), (174, 200), (170, 200), (187, 200), (178, 200),
        (108, 200), (140, 200), (33, 200), (124, 200), (169, 200), (67, 200),
    ],
}  # fmt: skip
BOTH_TASKS = ("PushCoasterToMug", "PutKiwiInCenterOfTable", "TurnMugRightsideUp")
BOTH = {
    "Single Task": [(32, 199, 6, 50), (27, 200, 22, 50), (75, 200, 42, 50)],
    "LBM zeroshot": [(36, 199, 7, 50), (4, 200, 10, 50), (97, 200, 28, 50)],
    "LBM finetuned": [(55, 200, 17, 50), (18, 200, 41, 50), (93, 200, 44, 50)],
}


def tri(policy):
    fields = {"policy": {"name": policy, "version": "2025"}}
    for task, (k, n) in zip(TASKS, SIM_ONLY[policy], strict=True):
        yield from attempts(sim, k, n - k, task=task, **fields)
    for task, (k_sim, n_sim, k_real, n_real) in zip(BOTH_TASKS, BOTH[policy], strict=True):
        yield from attempts(sim, k_sim, n_sim - k_sim, task=task, **fields)
        yield from attempts(real, k_real, n_real - k_real, task=task, deployment=f"station-{task}", **fields)


def test_the_crude_drop_is_split_into_what_only_sim_tried_and_what_both_did(lab):
    lab.send(record for policy in BOTH for record in tri(policy))
    for policy, crude, off_support, mix, rate in (
        ("Single Task", 0.1101, 0.3531, 0.0003, -0.2433),
        ("LBM zeroshot", 0.2990, 0.3703, 0.0002, -0.0715),
        ("LBM finetuned", -0.0477, 0.3557, 0.0000, -0.4033),
    ):
        drop = lab.ask(f"/policies/{policy}/drop")
        assert drop["drop"]["value"] == pytest.approx(crude, abs=5e-5)
        assert (drop["real"]["n"], drop["task"], drop["deployment"]) == (150, None, None)
        ledger = lab.ask(f"/policies/{policy}/ledger", version="2025")
        assert ledger["drop"] == pytest.approx(crude, abs=5e-5)
        parts = [ledger[name]["contribution"] for name in ("off_support", "mix", "rate")]
        assert parts == pytest.approx([off_support, mix, rate], abs=5e-5)
        assert sum(parts) == pytest.approx(ledger["drop"], abs=1e-9)
        assert ledger["rate"]["interval"][0] < rate < ledger["rate"]["interval"][1]
        assert ledger["strata"]["names"] == ["task"]
        assert ledger["strata"]["common"] == 3
        assert ledger["strata"]["sim_only"] == sorted(TASKS)
        assert ledger["strata"]["real_only"] == []
        # What looks like a loss is a gain where both sides were tried, and the answer says so.
        assert ledger["reverses"] == (policy != "LBM finetuned")
        assert [w["code"] for w in ledger["warnings"]] == (["sign-turns"] if ledger["reverses"] else [])
        # Nobody said why these attempts failed.
        assert ledger["unattributed"]["contribution"] == pytest.approx(ledger["drop"], abs=1e-9)
        assert all(part["contribution"] == 0 and part["interval"] is None for part in ledger["categories"])


def test_versions_stay_apart_and_the_newest_that_ran_on_a_robot_is_meant(lab):
    first, second, third = ({"policy": {"name": "lab/grasp", "version": v}} for v in ("1", "2", "3"))
    lab.send([*attempts(sim, 9, 1, **first), *attempts(real, 8, 2, **first)])
    lab.send([*attempts(sim, 19, 1, **second), *attempts(real, 15, 5, **second)])
    lab.send(attempts(sim, 30, 0, **third))
    newest = lab.ask("/policies/lab/grasp/drop")
    assert (newest["version"], newest["sim"]["n"], newest["real"]["n"]) == ("2", 20, 20)
    assert newest["drop"]["value"] == pytest.approx(0.2)
    assert lab.ask("/policies/lab/grasp/drop", version="1")["drop"]["value"] == pytest.approx(0.1)
    unproven = lab.ask("/policies/lab/grasp/ledger", version="3")
    assert (unproven["drop"], unproven["categories"], unproven["off_support"]) == (None, [], None)
    assert "No real episodes" in unproven["reason"]
    assert lab.get("/policies/lab/grasp/drop", version="4").status_code == 404
    assert lab.get("/policies/unheard-of/ledger").status_code == 404
