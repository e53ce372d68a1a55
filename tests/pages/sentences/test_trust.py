from typing import Any

from gapwatch.answers.answer import Span
from gapwatch.answers.trust import LeftOut, TrustAnswer
from gapwatch.pages.sentences.trust import correlation, headline


def an_answer(**more: Any) -> TrustAnswer:
    fields = {
        "simulator": "mujoco", "version": "3.3.0", "alternatives": (), "metric": "success", "task": None,
        "window": Span(None, None), "filter": {}, "policies": (), "n_policies": 6, "pearson": 0.831,
        "spearman": 0.8, "mmrv": 0.02, "interval": (0.412, 0.962), "mmrv_interval": None, "leave_one_out": (),
        "largest_change": None, "fragile": False, "regret": 0.031, "convention": "real mix",
        "verdict": "trustworthy", "tasks": (), "warnings": (), "reason": None, "method": "by hand",
    }  # fmt: skip
    return TrustAnswer(**fields | more)


def test_how_far_the_simulator_is_believed():
    said = headline(an_answer(), None)
    assert str(said) == (
        "mujoco 3.3.0 is trustworthy: over 6 policy versions its success correlates with reality by r = 0.83 "
        "(0.41 to 0.96), and picking its best policy costs 3.1 points of real success."
    )
    assert said.emphasised("strong") == ["trustworthy", "r = 0.83"]
    assert str(headline(an_answer(interval=None, regret=None), None)).endswith("by r = 0.83.")


def test_too_few_policies_are_said():
    assert str(headline(an_answer(n_policies=0), None)) == (
        "No policy was tried both in mujoco 3.3.0 and in reality."
    )
    few = an_answer(n_policies=1, verdict="too few policies", reason="it takes four")
    assert str(headline(few, None)) == "1 policy version was tried on both sides; too few policies, it takes four."


def test_what_hangs_on_one_policy_is_said():
    said = str(headline(an_answer(fragile=True), LeftOut("grasp 1.2", -0.104, 0.1)))
    assert said.endswith(" Without grasp 1.2 r would be \u22120.10 instead of 0.83.")


def test_an_unknown_correlation_is_a_dash():
    assert correlation(None) == "–"
