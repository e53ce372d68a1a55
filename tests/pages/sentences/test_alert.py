from datetime import UTC, datetime
from typing import Any

import pytest

from gapwatch.pages.sentences.alert import evidence, headline

CHANGED = datetime(2026, 11, 2, 9, 30, tzinfo=UTC)
SINCE = {"value": 0.7, "n": 120, "interval": [0.61, 0.78]}


def an_alert(found: dict[str, Any], series: str = "success@berlin", kind: str = "drift") -> dict[str, Any]:
    return {"evidence": found, "series": series, "kind": kind}


def test_a_share_that_fell_says_from_what_to_what_and_since_when():
    found = {
        "reference": {"value": 0.91, "n": 900},
        "since": SINCE,
        "drop": {"value": 0.21, "interval": [0.12, 0.3]},
    }
    said = headline(an_alert(found), CHANGED, "")
    assert str(said).startswith(
        "Real success went from 91.0 % (n 900) to 70.0 % (n 120, 61.0 to 78.0) since 2 Nov"
    )
    assert str(said).endswith("09:30. That is 21.0 points (12.0 to 30.0).")
    assert 'datetime="2026-11-02T09:30:00Z"' in said.__html__()


def test_a_share_below_sim_is_held_against_sim():
    found = {"reference": {"value": 0.95, "n": 400, "side": "sim"}, "since": SINCE}
    said = headline(an_alert(found), None, "")
    assert str(said) == "Real success is 70.0 % (n 120, 61.0 to 78.0) against 95.0 % in simulation (n 400)."
    assert said.emphasised("sim") == ["95.0 %"]


def test_a_category_says_what_it_costs():
    found = {"category": "contact_dynamics", "contribution": 0.12, "interval": [0.08, 0.16]}
    assert str(headline(an_alert(found, "category", "category"), None, "")) == (
        "Contact dynamics costs 12.0 points of success (8.0 to 16.0)."
    )


@pytest.mark.parametrize("found", [{}, {"reference": {"value": 3.0}, "since": {"value": 4.0, "n": 3}}])
def test_anything_else_is_said_as_it_is_sent(found):
    assert str(headline(an_alert(found, "duration_s"), None, "no episode for 40 min")) == "No episode for 40 min"
    assert str(headline(an_alert(found, "duration_s"), None, "")) == ""


def test_the_evidence_fact_by_fact():
    found = {
        "reference": {"value": 0.95, "n": 400, "side": "sim"},
        "since": SINCE,
        "now": {"value": None},
        "drop": {"value": 0.25, "interval": [0.2, 0.3]},
        "e_value": 31.6,
        "threshold": 20,
        "arl": 10_000.0,
        "statistic": "e-detector",
    }
    assert [(fact.name, str(fact.value)) for fact in evidence(an_alert(found))] == [
        ("Series", "success@berlin"),
        ("Before", "95.0 % n 400, sim"),
        ("Since", "70.0 % [61.0, 78.0] n 120"),
        ("Now", "–"),
        ("Drop", "25.0 points [20.0, 30.0]"),
        ("e-value", "31.6 fires at 20"),
        ("False alarms", "at most once in 10\u202f000 episodes, however often it is looked at"),
        ("Method", "e-detector"),
    ]


def test_what_is_no_share_is_a_number():
    facts = evidence(an_alert({"since": {"value": 14.25, "interval": [13.1, 15.2]}}, "duration_s"))
    assert [str(fact.value) for fact in facts] == ["duration_s", "14.2 [13.1, 15.2]"]
