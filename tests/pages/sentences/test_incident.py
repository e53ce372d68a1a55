from datetime import UTC, datetime, timedelta

import pytest

from gapwatch.answers.incident_change import IncidentChange, KnownChange
from gapwatch.answers.incident_standing import IncidentStanding, SuccessShare
from gapwatch.pages.sentences import incident as said
from gapwatch.statistics.change.fallen_robots import RobotSides, fallen_robots

# Another year would be named in every date.
YEAR = datetime.now(UTC).year
AT = datetime(YEAR, 11, 12, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOW = SuccessShare(0.51, 100, (0.413, 0.606))
BEFORE = SuccessShare(0.96, 300, (0.932, 0.977))
LOST = IncidentStanding(NOW, BEFORE, "before", 0.45, (0.346, 0.546), AT)
CHANGE = KnownChange(AT, AT - HOUR, AT + 3 * HOUR, "success", 400)


def alert(series: str, kind: str = "drift", **more) -> dict:
    return {"id": 7, "rule": "a-rule", "kind": kind, "series": series, "severity": "warning", **more}


def test_now_stands_against_before_each_with_n_and_interval():
    assert (
        str(said.now_against_before(LOST)) == "51 % now (n 100, 41.3 to 60.6), 96 % before (n 300, 93.2 to 97.7)"
    )
    of_sim = IncidentStanding(NOW, BEFORE, "sim", 0.45, (0.3, 0.5), AT)
    assert "96 % in sim" in str(said.now_against_before(of_sim))
    nothing = IncidentStanding(None, BEFORE, "before", None, None, None)
    assert str(said.now_against_before(nothing)) == "no episode since the change"


def test_the_headline_says_what_is_lost_only_where_it_is_established():
    words = str(said.headline(LOST, CHANGE, "x fell"))
    assert words == (
        "Real success: 51 % now (n 100, 41.3 to 60.6), 96 % before (n 300, 93.2 to 97.7). "
        "That is 45.0 points less (34.6 to 54.6), since 12 Nov 12:00."
    )
    level = IncidentStanding(BEFORE, BEFORE, "before", 0.0, (-0.04, 0.04), AT)
    assert "No loss of success is established" in str(said.headline(level, CHANGE, "x"))
    better = IncidentStanding(BEFORE, NOW, "before", -0.45, (-0.55, -0.35), AT)
    assert "45.0 points more (35.0 to 55.0)" in str(said.headline(better, CHANGE, "x"))
    silent = IncidentStanding(None, None, None, None, None, None)
    assert str(said.headline(silent, CHANGE, "ur5e silent since noon")) == "Ur5e silent since noon."


def test_the_title_has_the_numbers_of_now_where_success_is_lost():
    assert said.title(LOST, "x rose") == "45 points less success"
    assert said.title(IncidentStanding(NOW, BEFORE, "sim", 0.45, (0.3, 0.5), AT), "x") == "45 points below sim"
    assert said.title(IncidentStanding(NOW, NOW, "before", 0.0, (-0.1, 0.1), AT), "x rose") == "x rose"


@pytest.mark.parametrize(
    ("one", "name"),
    [
        (alert("success"), "success"),
        (alert("success@full", "stage_gate"), "success"),
        (alert("signal:peak_force_n"), "peak_force_n"),
        (alert("signal:a@b"), "a@b"),
        (alert("state_estimation", "category"), "state estimation"),
        (alert("category:visual", "category"), "visual"),
        (alert("robot:ur5e-7", "no_data"), "ur5e-7 silent"),
        (alert("", "from the future"), "a-rule"),
    ],
)
def test_every_alert_has_a_name(one, name):
    assert said.reason_name(one) == name


def test_reasons_are_counted_and_the_first_are_named():
    alerts = [alert("success"), alert("success"), alert("reward"), alert("state_estimation", "category")]
    assert said.reasons(alerts) == "4 reasons: success, reward, state estimation"
    assert said.reasons([*alerts, alert("signal:x")]) == "5 reasons: success, reward, state estimation …"
    assert said.reasons(alerts[:1]) == "1 reason: success"
    # What is lost comes before what merely moved, whenever that was found.
    assert said.reasons([alert("signal:x", severity="info"), alert("reward"), alert("success")]) == (
        "3 reasons: success, reward, x"
    )
    assert said.reasons([]) == "no reason is left"
    assert said.live([alert("a", state="resolved"), alert("b", state="firing")]) == [alert("b", state="firing")]
    assert len(said.live([alert("a", state="resolved")])) == 1


@pytest.mark.parametrize(
    ("since", "words"),
    [
        (timedelta(seconds=-5), "0 min"),
        (timedelta(minutes=40), "40 min"),
        (timedelta(hours=3, minutes=50), "3 h"),
        (timedelta(days=2, hours=4), "2 d 4 h"),
        (timedelta(days=2), "2 d"),
        (timedelta(days=12, hours=4), "12 d"),
    ],
)
def test_age_is_told_in_two_words_at_most(since, words):
    assert said.age(AT, AT + since) == words


def robots(*sides: RobotSides) -> str:
    return str(said.robots_verdict(IncidentChange(CHANGE, [], fallen_robots(sides), [], 0, AT)))


def test_robots_have_a_verdict():
    good, bad = (95, 100, 57, 60), (95, 100, 20, 60)
    assert robots(RobotSides("osaka-3", *bad), RobotSides("a", *good), RobotSides("b", *good)) == (
        "osaka-3 alone. The other 2 robots did not fall."
    )
    assert robots(RobotSides("a", *bad), RobotSides("b", *bad)) == "All robots alike: a, b."
    assert robots(RobotSides("a", *good), RobotSides("b", *good)) == "No robot is established to have fallen."
    assert robots(RobotSides("a", *bad)) == "a is the only robot with enough episodes, and it fell."
    assert robots(RobotSides("a", 50, 50, 0, 2)) == "Too few episodes since the change to tell robots apart."
    two_of_four = [RobotSides("a", *bad), RobotSides("b", *bad), RobotSides("c", *good), RobotSides("d", *good)]
    assert robots(*two_of_four) == "a, b fell, of 4 robots with enough episodes."


def test_a_change_is_told_with_its_span_unless_it_is_known_to_minutes():
    assert str(said.changed(CHANGE)) == "Changed 12 Nov 12:00, with 95 % between 12 Nov 11:00 and 12 Nov 15:00."
    sure = KnownChange(AT, AT - HOUR / 10, AT + HOUR / 10, "success", 400)
    assert str(said.changed(sure)) == "Changed 12 Nov 12:00."


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (f"{YEAR}-11-12T12:30:00Z", "within the span of the change"),
        (f"{YEAR}-11-12T06:00:00Z", "5 h before its span"),
        (f"{YEAR}-11-12T15:20:00Z", "20 min after its span"),
        ("nonsense", ""),
        (None, ""),
    ],
)
def test_an_event_lies_before_within_or_after_the_span(at, words):
    assert said.fit_words({"at": at}, CHANGE) == words


def line(action: str, **more) -> str:
    fields = {"actor": "anna", "action": action, "comment": None, "alert": None, "rule": None, "series": None}
    return str(said.line_of(fields | {"from_state": None, "to_state": None} | more))


def test_lines_of_history_say_who_did_what():
    assert line("acknowledge", comment="on it") == "anna took it on: on it"
    assert line("assign", comment="to ben") == "anna passed it on: to ben"
    assert line("of the future") == "anna of the future"
    of_alert = {"alert": 7, "rule": "success-drift", "series": "success", "actor": "gapwatch"}
    assert line("breach", **of_alert, to_state="firing") == "success (success-drift) firing"
    assert line("data_stopped", **of_alert | {"actor": "anna"}, to_state="no_data").endswith("no data, anna")
    assert line("comment", **of_alert, from_state="firing", to_state="firing", comment="hm").endswith(
        "gapwatch: hm"
    )


@pytest.mark.parametrize(
    ("unowned", "owned", "options", "words"),
    [
        (0, 0, {}, "Nothing is on fire."),
        (0, 2, {}, "Every open incident has an owner: 2 are taken care of."),
        (1, 0, {}, "▼ 1 incident has no owner."),
        (3, 1, {}, "▼ 3 incidents have no owner; 1 is taken care of."),
        (1, 0, {"filtered": True}, "1 incident that matches."),
        (2, 1, {"resolved": True, "more": True}, "3 resolved incidents, older ones on the next page."),
    ],
)
def test_the_inbox_says_what_waits(unowned, owned, options, words):
    options = {"filtered": False, "resolved": False, "more": False} | options
    assert str(said.inbox(unowned, owned, shown=unowned + owned, **options)) == words


def test_the_button_says_how_many_alerts_it_takes_on():
    assert said.acknowledge_words(5) == "Acknowledge, 5 alerts"
    assert said.acknowledge_words(1) == "Acknowledge, 1 alert"
    assert said.failures(50_000, 50_000) == "50\u202f000 or more failures since the change"
    assert said.failures(1, 50_000) == "1 failure since the change"
    assert said.robot_word("fell") == "▼ fell"
