"""What people do to incidents (`incidents/incident_actions.py`), on real rows."""

from datetime import UTC, datetime, timedelta

import pytest
from alerts.stage import LINK, Stage

from gapwatch.accounts import put_person
from gapwatch.errors import Conflict, Invalid
from gapwatch.incidents import incident_actions

ANNA = "anna@example.com"


@pytest.fixture
def fallen(stage) -> Stage:
    """A deployment that fell; a channel was told of its incident."""
    stage.add_channel()
    stage.fall()
    stage.send()
    return stage


def act(stage: Stage, action: str, *arguments, incident: int | None = None, actor: str = ANNA) -> bool:
    with stage.database.transaction() as connection:
        return getattr(incident_actions, action)(connection, 1, incident or the_incident(stage), actor, *arguments)


def the_incident(stage: Stage) -> int:
    return stage.rows("SELECT max(id) FROM incidents")[0][0]


def incident(stage: Stage) -> tuple:
    return stage.rows("SELECT state, owner, acknowledged_by FROM incidents ORDER BY id DESC LIMIT 1")[0]


def history(stage: Stage) -> list[tuple]:
    return stage.rows("SELECT actor, action, comment FROM incident_history ORDER BY id")


def alert_states(stage: Stage) -> set[str]:
    return {state for (state,) in stage.rows("SELECT state FROM alerts WHERE incident_id IS NOT NULL")}


def test_the_link_of_a_message_opens_the_incident(fallen):
    assert fallen.receiver.got[0].json["link"] == f"{LINK}/incidents/{the_incident(fallen)}"


def test_a_message_names_the_runbook_of_its_rules(stage):
    stage.add_channel()
    stage.put_rule("success-drift", "drift")
    stage.run("UPDATE rules SET runbook_url = 'https://wiki.example.com/x' WHERE name = 'success-drift'")
    stage.fall()
    stage.send()
    assert stage.receiver.got[0].json["runbooks"] == ["https://wiki.example.com/x"]


def test_acknowledging_takes_on_every_alert_and_tells_whoever_was_told(fallen):
    assert len(fallen.rows("SELECT 1 FROM alerts WHERE incident_id IS NOT NULL")) > 1
    assert act(fallen, "acknowledge", "on it")
    assert incident(fallen) == ("acknowledged", ANNA, ANNA)
    assert alert_states(fallen) == {"acknowledged"}
    fallen.send()
    assert [got.json["action"] for got in fallen.receiver.got] == ["trigger", "acknowledge"]
    assert history(fallen) == [(ANNA, "acknowledge", "on it")]


def test_acknowledging_twice_changes_nothing_and_a_second_comment_is_kept(fallen):
    act(fallen, "acknowledge", None)
    deliveries = fallen.deliveries()
    act(fallen, "acknowledge", None, actor="ben@example.com")
    assert incident(fallen) == ("acknowledged", ANNA, ANNA)
    assert (history(fallen), fallen.deliveries()) == ([(ANNA, "acknowledge", None)], deliveries)
    act(fallen, "acknowledge", "me too", actor="ben@example.com")
    assert history(fallen)[1:] == [("ben@example.com", "acknowledge", "me too")]
    assert fallen.deliveries() == deliveries


def test_an_alert_that_joins_quietly_is_taken_on_by_acknowledging_again(fallen):
    act(fallen, "acknowledge", None)
    fallen.run("UPDATE alerts SET state = 'firing' WHERE id = (SELECT min(id) FROM alerts)")
    act(fallen, "acknowledge", None, actor="ben@example.com")
    assert alert_states(fallen) == {"acknowledged"}
    # Whoever took care of it still does.
    assert incident(fallen)[1] == ANNA


def test_acknowledging_one_alert_makes_its_incident_somebodys(fallen):
    from gapwatch.incidents import alert_actions

    [[alert_id]] = fallen.rows("SELECT min(id) FROM alerts WHERE incident_id IS NOT NULL")
    with fallen.database.transaction() as connection:
        alert_actions.acknowledge(connection, 1, alert_id, ANNA, None)
    assert incident(fallen)[:2] == ("acknowledged", ANNA)


def test_it_is_assigned_to_a_member_by_address_or_by_name_and_to_nobody(fallen):
    slug = fallen.rows("SELECT slug FROM projects WHERE id = 1")[0][0]
    put_person(fallen.database, ANNA, "wet lamp oxen parade", slug, "engineer")
    put_person(fallen.database, "anna@other.example", "wet lamp oxen parade", slug, "viewer")
    assert act(fallen, "assign", "Anna@Example.com ", None)
    assert incident(fallen) == ("firing", ANNA, None)
    act(fallen, "assign", "anna", None)
    act(fallen, "assign", None, "off shift")
    assert incident(fallen)[1] is None
    assert history(fallen) == [(ANNA, "assign", f"to {ANNA}"), (ANNA, "assign", "to nobody: off shift")]


@pytest.mark.parametrize("owner", ["nobody-here", "", "ben@example.com", "anna@other.example", "%"])
def test_it_is_assigned_to_no_stranger_and_to_nobody_who_may_only_look(fallen, owner):
    slug = fallen.rows("SELECT slug FROM projects WHERE id = 1")[0][0]
    put_person(fallen.database, "anna@other.example", "wet lamp oxen parade", slug, "viewer")
    with pytest.raises(Invalid) as refused:
        act(fallen, "assign", owner, None)
    assert refused.value.errors[0]["pointer"] == "/body/owner"
    assert history(fallen) == []


def test_resolving_ends_every_alert_restarts_the_detectors_and_tells(fallen):
    assert act(fallen, "resolve", "new pads")
    assert incident(fallen)[0] == "resolved"
    assert alert_states(fallen) == {"resolved"}
    assert fallen.rows("SELECT count(*) FROM detectors WHERE restart")[0][0] > 1
    fallen.send()
    assert fallen.receiver.got[-1].json["action"] == "resolve"
    deliveries = fallen.deliveries()
    assert act(fallen, "resolve", None)
    assert (fallen.deliveries(), len(history(fallen))) == (deliveries, 1)
    assert act(fallen, "resolve", "really")
    assert history(fallen)[1] == (ANNA, "comment", "really")


def test_what_is_not_over_opens_another_incident_after_it_was_resolved(fallen):
    act(fallen, "resolve", None)
    fallen.happen(0.1, 60, seed=5)
    assert [state for (state,) in fallen.rows("SELECT state FROM incidents ORDER BY id")] == ["resolved", "firing"]


def test_what_is_over_can_only_be_commented_on(fallen):
    act(fallen, "resolve", None)
    later = datetime.now(UTC) + timedelta(hours=1)
    for action, arguments in (("acknowledge", (None,)), ("assign", (None, None)), ("silence", ("x", later))):
        with pytest.raises(Conflict, match="resolved"):
            act(fallen, action, *arguments)
    assert act(fallen, "comment_on", "it was the lamp")
    assert history(fallen)[-1] == (ANNA, "comment", "it was the lamp")


def test_a_silence_has_an_owner_a_reason_and_an_end_and_covers_the_deployment(fallen):
    later = datetime.now(UTC) + timedelta(hours=4)
    assert act(fallen, "silence", "pads are changed", later)
    [[match, owner, reason, ends_at]] = fallen.rows("SELECT match, owner, reason, ends_at FROM silences")
    assert (match, owner, reason, ends_at) == ({"deployment": ["berlin-line-3"]}, ANNA, "pads are changed", later)
    assert history(fallen)[0][1] == "silence"


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        ("acknowledge", (None,)),
        ("assign", (None, None)),
        ("silence", ("x", datetime(2100, 1, 1, tzinfo=UTC))),
        ("resolve", (None,)),
        ("comment_on", ("x",)),
    ],
)
def test_there_is_nothing_to_do_without_an_incident(stage, action, arguments):
    assert not act(stage, action, *arguments, incident=4711)
