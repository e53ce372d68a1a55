"""Why it is lost: hand-weighed failures, and a drop that is split twice and adds up twice."""

from random import Random

import pytest
from answers.lab import NOON, attempts, real, sim

BERLIN = "/deployments/berlin-line-3"
LEDGER = f"{BERLIN}/ledger"


def by_name(ledger):
    return {part["category"]: part for part in ledger["categories"]}


def total(ledger):
    parts = [part["contribution"] for part in ledger["categories"]]
    return sum(parts) + ledger["unattributed"]["contribution"]


def test_each_failure_counts_once_where_its_evidence_points(lab):
    """20 real attempts, 10 failed; 100 sim attempts, 10 failed."""
    lab.send(
        [
            *attempts(sim, 90, 0),
            *(sim("failure", failure={"labels": ["slip"]}) for _ in range(6)),
            *(sim("failure") for _ in range(4)),
            *attempts(real, 10, 0),
            # A label is far stronger than a phase, which sim does not even write down.
            *(real("failure", failure={"labels": ["slip"], "phase": "approach"}) for _ in range(4)),
            # Without a label the phase points: approach is visual. It is convention, and takes no more than 70 %.
            *(real("failure", failure={"phase": "approach"}) for _ in range(2)),
            # A person's word stands above all.
            real("failure", id="judged", failure={"category": "actuation", "labels": ["slip"]}),
            # Two labels share it.
            real("failure", failure={"labels": ["slip", "glare"]}),
            real("failure"),
            real("failure", failure={"labels": ["unheard_of"]}),
        ]
    )
    ledger = lab.ask(LEDGER)
    assert ledger["drop"] == pytest.approx(0.4)
    found = by_name(ledger)
    assert found["contact_dynamics"]["contribution"] == pytest.approx(4.5 / 20 - 6 / 100, abs=1e-3)
    assert 0.5 / 20 < found["visual"]["contribution"] < (0.5 + 0.7 * 2) / 20 + 1e-9
    assert found["actuation"]["contribution"] == pytest.approx(1 / 20)
    assert ledger["unattributed"]["contribution"] > 2 / 20 - 4 / 100
    # What only a phase speaks for may be nothing.
    assert found["visual"]["interval"][0] <= 0
    assert "phases-on-one-side" in [warning["code"] for warning in ledger["warnings"]]
    assert total(ledger) == pytest.approx(ledger["drop"], abs=1e-9)
    # A category without evidence is zero and has no interval; none is left out.
    assert len(ledger["categories"]) == 13
    assert (found["sensor_noise"]["contribution"], found["sensor_noise"]["interval"]) == (0, None)
    assert [part["category"] for part in ledger["categories"][:3]] == ["contact_dynamics", "visual", "actuation"]
    for name in ("contact_dynamics", "visual", "actuation"):
        low, high = found[name]["interval"]
        assert low <= found[name]["contribution"] <= high
    # Every bar names the episodes behind it, and why.
    assert found["contact_dynamics"]["episodes"]["count"] == 5
    assert found["contact_dynamics"]["episodes"]["sim_count"] == 6
    assert found["actuation"]["episodes"]["top"] == [
        {"id": "judged", "weight": 1.0, "evidence": ["a person chose actuation"]}
    ]
    [shared] = [one for one in found["visual"]["episodes"]["top"] if one["weight"] == 0.5]
    assert shared["evidence"] == ["label glare"]
    assert ledger["failures_read"] == {"sim": 10, "real": 10}


def test_a_signal_far_outside_of_what_sim_successes_know_is_evidence(lab):
    lab.send(
        [
            *(sim(signals={"loop_latency_ms_p95": 10 + n % 5}) for n in range(100)),
            *(real(signals={"loop_latency_ms_p95": 10 + n % 5}) for n in range(40)),
            *(real("failure", signals={"loop_latency_ms_p95": 60.0}) for _ in range(40)),
        ]
    )
    ledger = lab.ask(LEDGER)
    found = by_name(ledger)["latency_timing"]
    assert 0.3 < found["contribution"] <= ledger["drop"]
    assert found["interval"][0] > 0
    assert "above 99 % of sim successes" in found["episodes"]["top"][0]["evidence"][0]
    assert total(ledger) == pytest.approx(ledger["drop"], abs=1e-9)
    # With a filter the signals are those of the matching episodes.
    assert by_name(lab.ask(LEDGER, condition="lighting:"))["latency_timing"]["contribution"] > 0.3


def test_a_condition_where_real_fails_more_is_evidence(lab):
    dim, bright = {"conditions": {"lighting": "dim"}}, {"conditions": {"lighting": "bright"}}
    lab.send([*attempts(sim, 95, 5, **dim), *attempts(sim, 95, 5, **bright)])
    lab.send([*attempts(real, 40, 60, **dim), *attempts(real, 94, 6, **bright)])
    ledger = lab.ask(LEDGER)
    assert ledger["suspects"] == ["lighting: dim"]
    visual = by_name(ledger)["visual"]
    # Real loses 54 of 100 in dim light above bright, and that is half of its attempts; sim loses nothing there.
    assert visual["contribution"] == pytest.approx(0.27, abs=0.02)
    assert visual["interval"][0] > 0.1
    assert (visual["mix"], visual["rate"]) == (0, pytest.approx(0.27, abs=0.03))
    [evidence] = visual["episodes"]["top"][0]["evidence"]
    assert evidence == visual["why"][0]
    assert evidence.startswith("lighting dim costs ")
    assert evidence.endswith(" points more here than in sim")
    assert ledger["headline"]["category"] == "visual"
    [term] = ledger["model"]["terms"]
    assert (term["name"], term["level"], term["never_simulated"]) == ("lighting", "dim", False)
    assert total(ledger) == pytest.approx(ledger["drop"], abs=1e-9)


def test_off_support_mix_and_rate_by_hand(lab):
    """Sim 40 dim and 60 bright, real 60 dim, 20 bright and 20 on rubber that sim never saw."""
    dim, bright = {"conditions": {"lighting": "dim"}}, {"conditions": {"lighting": "bright"}}
    rubber = {"conditions": {"lighting": "strobe"}}
    lab.send([*attempts(sim, 32, 8, **dim), *attempts(sim, 54, 6, **bright)])
    lab.send([*attempts(real, 36, 24, **dim), *attempts(real, 16, 4, **bright), *attempts(real, 2, 18, **rubber)])
    ledger = lab.ask(LEDGER)
    # On the common levels: shares 0.4 and 0.6 in sim, 0.75 and 0.25 in real; rates 0.8, 0.9 and 0.6, 0.8.
    mix = (0.4 - 0.75) * (0.8 + 0.6) / 2 + (0.6 - 0.25) * (0.9 + 0.8) / 2
    rate = (0.4 + 0.75) / 2 * (0.8 - 0.6) + (0.6 + 0.25) / 2 * (0.9 - 0.8)
    crude = 0.86 - 0.54
    assert ledger["drop"] == pytest.approx(crude)
    assert ledger["mix"]["contribution"] == pytest.approx(mix)
    assert ledger["rate"]["contribution"] == pytest.approx(rate)
    assert ledger["off_support"]["contribution"] == pytest.approx(crude - mix - rate)
    parts = [ledger[name] for name in ("off_support", "mix", "rate")]
    assert sum(part["value"] for part in parts) == pytest.approx(ledger["drop"], abs=1e-9)
    for part in parts:
        assert part["interval"][0] <= part["contribution"] <= part["interval"][1]
    assert ledger["strata"]["names"] == ["lighting"]
    assert (ledger["strata"]["common"], ledger["strata"]["real_only"]) == (2, ["strobe"])
    # Asked again, the same numbers.
    assert lab.ask(LEDGER)["rate"] == ledger["rate"]


def test_several_conditions_are_split_exactly_over_their_mixes(lab):
    levels = [
        {"conditions": {"lighting": light, "object": thing}}
        for light in ("dim", "bright")
        for thing in ("mug", "can")
    ]
    for number, fields in enumerate(levels):
        lab.send(attempts(sim, 30 - number, 10 + 5 * number, **fields))
        lab.send(attempts(real, 20 + 5 * number, 10, **fields))
    ledger = lab.ask(LEDGER)
    assert sorted(ledger["strata"]["names"]) == ["lighting", "object"]
    shares = ledger["shapley"]
    assert sorted(shares["factors"]) == ["lighting", "object"]
    together = shares["off_support"] + sum(shares["factors"].values()) + shares["rate"]
    assert together == pytest.approx(ledger["drop"], abs=1e-9)
    assert sum(shares["factors"].values()) == pytest.approx(ledger["mix"]["contribution"], abs=1e-9)


def test_thin_combinations_are_not_taken_for_off_support(lab):
    """Six conditions of three levels have more combinations than there are episodes; sim and real are alike."""
    chance = Random(7)
    for make, count in ((sim, 300), (real, 60)):
        lab.send(
            make(
                "success" if n % 4 else "failure",
                conditions={f"c{place}": f"l{chance.randrange(3)}" for place in range(6)},
            )
            for n in range(count)
        )
    ledger = lab.ask(LEDGER)
    assert ledger["strata"]["left_out"]
    assert abs(ledger["off_support"]["contribution"]) < 0.03
    assert ledger["strata"]["real_only_count"] <= 3


def test_more_failures_than_are_read_still_add_up(lab):
    """1200 real failures of which a thousand are read: what labels say of all is known exactly."""
    rare = [real("failure", failure={"labels": ["glare"]}, at=NOON.replace(day=1 + n)) for n in range(3)]
    lab.send(
        [
            *attempts(sim, 900, 100),
            *attempts(real, 800, 0),
            *(real("failure", failure={"labels": ["slip"]}, at=NOON.replace(day=1 + n % 20)) for n in range(900)),
            *(real("failure", at=NOON.replace(day=1 + n % 20)) for n in range(297)),
            *rare,
        ]
    )
    ledger = lab.ask(LEDGER)
    found = by_name(ledger)
    assert ledger["failures_read"]["real"] < 1100
    assert ledger["drop"] == pytest.approx(1200 / 2000 - 0.1)
    # Nobody labels sim's failures: labels share out what real fails above sim, 1000 of its 1200 failures.
    assert found["contact_dynamics"]["contribution"] == pytest.approx(900 / 2000 * 1000 / 1200, rel=0.01)
    assert found["visual"]["contribution"] == pytest.approx(3 / 2000 * 1000 / 1200, rel=0.01)
    assert "labelled-on-one-side" in [warning["code"] for warning in ledger["warnings"]]
    assert total(ledger) == pytest.approx(ledger["drop"], abs=1e-9)


def test_a_project_says_what_its_words_mean(lab):
    lab.options({"taxonomy": {"labels": {"gripper_lost": "actuation"}}})
    lost = {"failure": {"labels": ["gripper_lost"]}}
    lab.send([*attempts(sim, 9, 1, **lost), *attempts(real, 5, 5, **lost)])
    assert by_name(lab.ask(LEDGER))["actuation"]["contribution"] == pytest.approx(0.4)


def test_a_cause_that_was_never_simulated_is_judged_by_real_alone_and_the_sender_is_told(lab):
    wet, dry = {"conditions": {"floor": "wet"}}, {"conditions": {"floor": "dry"}}
    lab.send([*attempts(sim, 190, 10), *attempts(real, 10, 132, **wet), *attempts(real, 91, 17, **dry)])
    ledger = lab.ask(LEDGER)
    floor = by_name(ledger)["environment_complexity"]
    assert floor["contribution"] == pytest.approx(142 / 250 * (132 / 142 - 17 / 108), abs=0.06)
    assert "floor wet was never simulated" in floor["why"][0]
    assert ledger["headline"]["category"] == "environment_complexity"
    [told] = [warning["message"] for warning in ledger["warnings"] if warning["code"] == "never-simulated"]
    assert "log floor in sim" in told


def test_what_nothing_explains_is_said_to_be_so_with_what_to_log(lab):
    lab.send([*attempts(sim, 190, 10), *attempts(real, 60, 40)])
    ledger = lab.ask(LEDGER)
    assert ledger["unattributed"]["contribution"] == pytest.approx(ledger["drop"])
    assert ledger["headline"]["category"] is None
    assert ledger["headline"]["sentence"] == "Most of it is not explained by what is logged."
    assert len(ledger["headline"]["log"]) == 3


def test_sessions_widen_the_intervals_of_categories(lab):
    slip = {"failure": {"labels": ["slip"]}}
    lab.send([*attempts(sim, 95, 5), *(real() for _ in range(80)), *(real("failure", **slip) for _ in range(20))])
    for sitting in range(10):
        bad = sitting < 2
        lab.send(
            real(
                "failure" if bad else "success",
                session=f"s{sitting}",
                deployment="hall-2",
                **(slip if bad else {}),
            )
            for _ in range(10)
        )
    alone, clustered = (by_name(lab.ask(f"/deployments/{slug}/ledger")) for slug in ("berlin-line-3", "hall-2"))
    width = [high - low for low, high in (part["contact_dynamics"]["interval"] for part in (alone, clustered))]
    assert width[1] > 1.5 * width[0]


def test_a_contract_that_differs_is_evidence_where_real_fails_more(lab):
    ours, theirs = ({"contract": {"action_scale": scale, "control_hz": 50}} for scale in (0.5, 1.0))
    lab.send([*attempts(sim, 95, 5, **ours), *attempts(real, 20, 80, **theirs)])
    # Under sim's own contract the same failures are nobody's.
    lab.send(attempts(real, 20, 80, deployment="same-contract", **ours))
    found = by_name(lab.ask(LEDGER))["interface_contract"]
    assert found["contribution"] > 0.5
    assert found["interval"][0] > 0
    assert found["episodes"]["top"][0]["evidence"] == ["the contract differs in 1 field"]
    same = by_name(lab.ask("/deployments/same-contract/ledger"))["interface_contract"]
    assert (same["contribution"], same["interval"]) == (0, None)


def test_a_contract_that_differs_and_costs_nothing_is_no_evidence(lab):
    ours, theirs = ({"contract": {"action_scale": scale}} for scale in (0.5, 1.0))
    lab.send([*attempts(sim, 180, 20, **ours), *attempts(real, 90, 10, **theirs)])
    found = by_name(lab.ask(LEDGER))["interface_contract"]
    assert found["contribution"] == pytest.approx(0, abs=0.02)
