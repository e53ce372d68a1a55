from datetime import UTC, datetime

from pages.answers_made import an_alert

from gapwatch.answers.drop import DropValue
from gapwatch.answers.fleet import FleetRow, FleetSide
from gapwatch.answers.leading_categories import LeadingCategory
from gapwatch.pages.sentences.fleet import fire, list_title, verdict_counts, worst_of
from gapwatch.pages.sentences.sentence import say


def a_row(verdict: str = "large", drop: float | None = 0.25) -> FleetRow:
    real, sim = FleetSide(1200, 0.7, (0.673, 0.725), 0, 0), FleetSide(400, 0.95, (0.924, 0.967), 0, 0)
    at = datetime(2026, 11, 2, tzinfo=UTC)
    return FleetRow(
        "berlin-line-3", "bin-pick", "1.4.0", "pick-mug", None, "full", at, "mujoco", "3.3.0", False, sim, real,
        DropValue(drop, None if drop is None else (0.21, 0.28), None), verdict, "by hand", None,
    )  # fmt: skip


WORST = say("The worst is elsewhere.")


def test_one_fire_is_named_and_leads_to_its_alert():
    said = fire([an_alert()], 3, "/alerts", WORST)
    assert str(said) == (
        "▼ Yes, one deployment is on fire: berlin-line-3, success fell from 91 % to 70 %. Nobody has taken it on."
    )
    assert [part.href for part in said.parts if part.href] == ["/alerts/7"]


def test_of_several_fires_the_first_is_named():
    assert str(fire([an_alert(), an_alert("oslo"), an_alert("lyon")], 3, "/alerts", WORST)) == (
        "▼ Yes, 3 deployments are on fire: berlin-line-3, success fell from 91 % to 70 %; and 2 more. "
        "Nobody has taken them on."
    )


def test_without_a_new_fire_the_worst_is_named():
    assert str(fire([], 1, "/alerts", WORST)) == "No new fire. 1 incident is taken on. The worst is elsewhere."
    assert str(fire([], 2, "/alerts", WORST)) == "No new fire. 2 incidents are taken on. The worst is elsewhere."
    assert str(fire([], 0, "/alerts", WORST)) == "No, nothing is on fire. The worst is elsewhere."


def test_the_worst_deployment_with_what_leads_its_drop():
    said = worst_of(a_row(), LeadingCategory("contact_dynamics", 0.15), "/deployments/berlin-line-3")
    assert str(said) == (
        "The worst is berlin-line-3: real success 70.0 % (67.3 to 72.5, n 1\u202f200), 25.0 points below simulation, "
        "most of it contact dynamics by its labels."
    )
    assert str(worst_of(a_row(), None, "/")).endswith("25.0 points below simulation.")


def test_no_worst_where_no_drop_is_established():
    for row in (None, a_row("none", 0.01), a_row("too few episodes", None)):
        assert str(worst_of(row, None, "/")) == "No deployment has a drop that is established."


def test_counts_and_title():
    assert verdict_counts({"large": 2, "none": 0}) == "2 large, 0 none"
    assert list_title(1, "worst", 1, 1) == "1 deployment, worst first"
    assert list_title(250, "name", 2, 3) == "250 deployments, page 2 of 3"
