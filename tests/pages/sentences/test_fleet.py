from datetime import UTC, datetime
from typing import Any

from pages.answers_made import a_present, an_alert

from gapwatch.answers.drop import DropValue
from gapwatch.answers.fleet import FleetRow, FleetSide, worst_now_first
from gapwatch.answers.leading_categories import LeadingCategory
from gapwatch.answers.now import NowMoved
from gapwatch.pages.sentences.fleet import (
    Burning,
    fire,
    list_title,
    most_urgent_first,
    verdict_counts,
    worst_of,
)
from gapwatch.pages.sentences.sentence import say


def a_row(verdict: str = "large", drop: float | None = 0.438, stage: str = "full", **now: Any) -> FleetRow:
    real, sim = FleetSide(1200, 0.7, (0.673, 0.725), 0, 0), FleetSide(400, 0.95, (0.924, 0.967), 0, 0)
    at = datetime(2026, 11, 2, tzinfo=UTC)
    value = DropValue(drop, None if drop is None else (drop - 0.1, drop + 0.1), None)
    return FleetRow(
        "turin-cell-1", "bin-pick", "1.4.0", "pick-mug", None, stage, at, "mujoco", "3.3.0", False, sim, real,
        value, verdict, "by hand", None, a_present(drop=value, verdict=verdict, **now),
    )  # fmt: skip


WORST = say("The worst is elsewhere.")


def test_one_that_nobody_took_on_is_named_and_leads_to_its_alert():
    said = fire([Burning(an_alert(), a_row())], 3, "/alerts", WORST)
    assert str(said) == (
        "▼ 1 deployment needs attention. turin-cell-1: 51 % now, 96 % until 30 Oct, still falling. Unacknowledged."
    )
    assert [part.href for part in said.parts if part.href] == ["/alerts", "/alerts/7"]


def test_of_several_the_first_is_named_in_the_words_of_its_reason():
    steady = a_row(moved=NowMoved(0.0, (-5.0, 5.0), "steady"))
    burning = [Burning(an_alert(), steady), Burning(an_alert("oslo"), a_row())]
    assert str(fire(burning, 3, "/alerts", WORST)) == (
        "▼ 2 deployments need attention. turin-cell-1: 51 % now, 95 % in simulation. Unacknowledged."
    )
    silent = Burning(an_alert(reason="silence", headline="silent for 2 hours"), a_row())
    assert "silent for 2 hours" in str(fire([silent], 1, "/alerts", WORST))


def test_what_drives_alone_and_fails_leads():
    silent = Burning(an_alert(reason="silence"), a_row())
    shadow = Burning(an_alert(), a_row(drop=0.9, stage="shadow"))
    supervised = Burning(an_alert(severity="warning"), a_row(drop=0.2, stage="supervised"))
    worse = Burning(an_alert(severity="warning"), a_row(drop=0.6))
    assert most_urgent_first([shadow, silent, supervised, worse]) == [worse, supervised, silent, shadow]


def test_a_stage_without_autonomy_weighs_less():
    full, shadow = a_row(drop=0.3), a_row(drop=0.6, stage="shadow")
    better = a_row("none", -0.2, "shadow")
    assert sorted([better, shadow, full], key=worst_now_first) == [full, shadow, better]


def test_without_anything_new_the_worst_is_named():
    assert str(fire([], 1, "/alerts", WORST)) == (
        "Nothing new needs attention. 1 incident is taken on. The worst is elsewhere."
    )
    assert str(fire([], 0, "/alerts", WORST)) == "No deployment needs attention. The worst is elsewhere."


def test_the_worst_deployment_with_what_leads_its_drop():
    said = worst_of(
        a_row(), LeadingCategory("contact_dynamics", 0.3, (0.2, 0.4), 0.44), "/deployments/turin-cell-1"
    )
    assert str(said) == (
        "The worst is turin-cell-1: 51 % now, 96 % until 30 Oct, still falling (40.7 to 61.6, n 84), "
        "43.8 points below simulation, most of it contact dynamics."
    )
    assert str(worst_of(a_row(), None, "/")).endswith("43.8 points below simulation.")


def test_no_worst_where_no_drop_is_established():
    for row in (None, a_row("none", 0.01), a_row("too few episodes", None)):
        assert str(worst_of(row, None, "/")) == "No deployment has a drop now that is established."


def test_counts_and_title():
    assert verdict_counts({"large": 2, "none": 0}) == "2 large, 0 none"
    assert list_title(1, "now", 1, 1) == "1 deployment, worst now first"
    assert list_title(250, "name", 2, 3) == "250 deployments, page 2 of 3"
