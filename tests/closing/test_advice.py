from datetime import UTC, datetime

import pytest
from answers.lab import attempts, real, sim
from pages.answers_made import a_ledger, a_part

from gapwatch.closing.advice import KindExperience, advise, log_first, size_words
from gapwatch.closing.advice_content import ADVICE
from gapwatch.closing.closures import ClosureAnswer, FixAnswer, PeriodRate
from gapwatch.closing.fix import FIX_KINDS
from gapwatch.taxonomy import CATEGORIES

THEN = datetime(2026, 9, 1, tzinfo=UTC)


def a_fix(points, interval, verdict="closed", **changes):
    closure = ClosureAnswer(
        points, interval, (), None, (), None, "", verdict, PeriodRate(THEN, THEN, 0, 0, None, None), None, None, None, 0,
        "", None,
    )  # fmt: skip
    fields = {
        "id": 1, "at": THEN, "title": "pads", "told_at": THEN, "deployment": "berlin-line-3", "kind": "fine_tuning",
        "kind_name": "", "category": "contact_dynamics", "category_name": "", "robots": (), "conditions": {},
        "from_version": None, "robot_hours": 10.0, "demonstrations": None, "expected_points": 15.0,
        "shipped_at": THEN, "expectation": None, "written": None, "closure": closure,
    }  # fmt: skip
    return FixAnswer(**fields | changes)


def test_every_category_has_advice_of_known_kinds():
    assert set(ADVICE) == set(CATEGORIES)
    for content in ADVICE.values():
        assert content.recommend.endswith(".") and content.collect.endswith(".")
        assert content.kinds and set(content.kinds) <= set(FIX_KINDS)


def test_advice_goes_by_what_is_surely_lost_and_none_is_given_up_to_half_a_point():
    parts = (
        a_part("Visual", 0.09, (0.01, 0.17)),
        a_part("Contact dynamics", 0.05, (0.03, 0.07)),
        a_part("Actuation", 0.03, (0.005, 0.056)),
        a_part("Sensor noise", 0.004, (-0.01, 0.018)),
        a_part("Calibration", 0.2),
    )
    found = advise(a_ledger(categories=parts), [])
    assert [(one.category, one.interval) for one in found] == [
        ("contact_dynamics", (0.03, 0.07)),
        ("visual", (0.01, 0.17)),
    ]
    assert "200 grasps" in found[0].collect
    assert "the field's" in found[0].size


def test_own_fixes_say_how_many_hours_it_takes():
    parts = (a_part("Contact dynamics", 0.18, (0.1, 0.26)),)
    fixes = [a_fix(14.0, (10.0, 18.0)), a_fix(16.0, (12.0, 20.0)), a_fix(1.0, (-2.0, 4.0), "did nothing")]
    [item] = advise(a_ledger(categories=parts), fixes[:2])
    [experience] = item.experience
    assert experience.points_per_robot_hour == pytest.approx(1.5)
    assert experience.robot_hours_needed == 7
    assert "about 7 robot-hours" in item.size and "2 fine-tuning on real data fixes of yours" in item.size
    [item] = advise(a_ledger(categories=parts), fixes)
    assert "33 % did nothing" in item.size


def test_words_without_points():
    nothing = KindExperience("other", "other", 1, 1, None, None, None, None, None, None)
    assert size_words([nothing]) == "1 other fix of yours was measured."


def test_what_nothing_tells_apart_is_to_be_logged_first():
    joint = a_part("Visual or Actuation", 0.1, (0.05, 0.15))
    joint = type(joint)(**{**vars(joint), "category": "actuation+visual"})
    [first] = log_first(a_ledger(categories=(joint,)))
    assert first.why.startswith("Nothing that is sent tells actuation from visual")
    assert len(first.log) == 2
    assert advise(a_ledger(categories=(joint,)), []) == ()


def test_advice_is_answered_for_a_deployment(lab):
    slip = {"phase": "lift", "labels": ["slip"]}
    lab.send(
        [
            *attempts(sim, 190, 10, failure=None),
            *attempts(real, 120, 0),
            *(real("failure", failure=slip) for _ in range(60)),
        ]
    )
    answer = lab.ask("/deployments/berlin-line-3/advice")
    [item] = answer["advice"]
    assert item["category"] == "contact_dynamics" and item["interval"][0] > 0.005
    assert answer["n_real"] == 180 and answer["log_first"] == []
    assert lab.get("/deployments/nowhere/advice").status_code == 404


def test_a_loss_that_nothing_explains_is_to_be_logged_first(lab):
    lab.send([*attempts(sim, 190, 10), *attempts(real, 120, 60)])
    answer = lab.ask("/deployments/berlin-line-3/advice")
    assert answer["advice"] == []
    [first] = answer["log_first"]
    assert first["category"] == "unattributed" and len(first["log"]) == 3
