"""Mail addresses: asked by a link, told of nothing before they agree, by a button and never by following the link."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest
from alerts.confirming import confirm_by_mail, links_to, press_button, token_of
from alerts.receivers import BadDay
from alerts.stage import LINK, SECRET

from gapwatch.access.tokens import ADDRESS_LASTS, address_of_token, address_token, is_address_token
from gapwatch.store.alerting import alert_settings
from parts import make_project, wait_until

ANNA, BEN = "anna@example.com", "ben@example.com"


def mails_to(mail_server, address):
    return [mail["Subject"] for mail in mail_server.mails if address in mail["To"]]


def test_an_address_is_asked_and_gets_no_notification_until_it_agrees(stage, mail_server):
    stage.add_mail_channel(mail_server, ANNA)
    stage.send()
    [link] = links_to(mail_server, ANNA)
    assert link.startswith(f"{LINK}/confirm-address?token=")
    stage.fall()
    stage.keep_time()
    stage.send()
    assert stage.deliveries() == [("confirm", "sent", "confirmation")]
    assert len(mail_server.mails) == 1
    # What is open then is told as soon as somebody may be told.
    stage.confirm(ANNA)
    stage.keep_time()
    stage.send()
    assert stage.deliveries()[1:] == [("trigger", "sent", "change")]
    assert "success" in mails_to(mail_server, ANNA)[1]


def test_of_several_addresses_those_that_agreed_are_told_and_the_others_are_named(stage, mail_server):
    stage.add_mail_channel(mail_server, ANNA, BEN)
    stage.confirm(BEN)
    stage.fall()
    stage.send()
    [notification] = [mail for mail in mail_server.mails if "May Gapwatch" not in mail["Subject"]]
    assert notification["To"] == BEN
    [(answer,)] = stage.rows(
        "SELECT a.answer FROM delivery_attempts a JOIN deliveries d ON d.project_id = a.project_id AND d.id = a.delivery_id WHERE d.action = 'trigger'"
    )
    assert answer.endswith(f"; waiting for confirmation: {ANNA}")


def test_a_channel_that_gives_up_hands_over_to_one_that_has_somebody_to_tell(stage, mail_server):
    stage.add_channel("/hook")
    stage.add_mail_channel(mail_server, ANNA)
    last = stage.add_channel("/last", min_severity="critical")
    stage.fall()
    stage.receiver.bad_days = [BadDay(404)]
    stage.send()
    assert stage.rows("SELECT channel_id FROM deliveries WHERE reason = 'fallback'") == [(last,)]


def test_a_notification_on_its_way_to_an_address_that_was_replaced_goes_to_another_channel(stage, mail_server):
    mail = stage.add_mail_channel(mail_server, ANNA)
    stage.confirm(ANNA)
    stage.fall()
    stage.add_channel("/hook", min_severity="critical")
    stage.run(
        "UPDATE channels SET config = jsonb_set(config, '{to}', CAST(:to AS jsonb)) WHERE id = :id",
        to=f'["{BEN}"]',
        id=mail,
    )
    stage.run("INSERT INTO mail_addresses (project_id, address) VALUES (1, :a)", a=BEN)
    stage.send()
    assert ("trigger", "dead", "change") in stage.deliveries()
    assert ("trigger", "sent", "fallback") in stage.deliveries()
    [(answer,)] = stage.rows(
        "SELECT answer FROM delivery_attempts WHERE outcome = 'refused' AND answer LIKE 'wait%'"
    )
    assert answer == f"waiting for confirmation: {BEN}"
    assert mails_to(mail_server, BEN) == []


def test_a_question_is_tried_again_with_the_same_link(stage, mail_server):
    stage.add_mail_channel(mail_server, ANNA)
    mail_server.codes = [451]
    stage.send()
    assert stage.deliveries() == [("confirm", "due", "confirmation")]
    stage.run("UPDATE deliveries SET due_at = now()")
    stage.send()
    [link] = links_to(mail_server, ANNA)
    [(number, asked_at)] = stage.rows("SELECT id, asked_at FROM mail_addresses")
    assert token_of(link) == address_token(SECRET, 1, number, asked_at)


def test_a_question_that_was_answered_meanwhile_is_not_sent(stage, mail_server):
    stage.add_mail_channel(mail_server, ANNA)
    stage.confirm(ANNA)
    stage.send()
    assert mail_server.mails == []
    assert stage.deliveries() == [("confirm", "dead", "confirmation")]


def test_an_address_that_is_in_no_channel_any_more_is_forgotten(stage, mail_server):
    first = stage.add_mail_channel(mail_server, ANNA, BEN)
    second = stage.add_mail_channel(mail_server, ANNA, name="second")
    stage.confirm(ANNA)
    for channel, left in ((first, [ANNA]), (second, [])):
        with stage.database.transaction() as connection:
            assert alert_settings.disable_channel(connection, 1, channel, "test")
        assert [address for (address,) in stage.rows("SELECT address FROM mail_addresses")] == left
    stage.add_mail_channel(mail_server, ANNA)
    assert stage.rows("SELECT confirmed_at FROM mail_addresses") == [(None,)]


def test_a_token_is_of_one_question_and_ends():
    asked = datetime(2026, 11, 16, 10, 0, 0, 123456, tzinfo=UTC)
    token = address_token(b"secret", 3, 7, asked)
    assert address_of_token(token) == (3, 7)
    assert is_address_token(b"secret", token, asked, asked + ADDRESS_LASTS)
    assert not is_address_token(b"secret", token, asked, asked + ADDRESS_LASTS + timedelta(seconds=1))
    assert not is_address_token(b"secret", token, asked + timedelta(microseconds=1), asked)
    assert not is_address_token(b"another", token, asked, asked)
    assert not is_address_token(b"secret", token.replace("3.7.", "3.8.", 1), asked, asked)
    for bad in ("", ".", "1", "x.y.z", "1.2", "1.²." + "0" * 64, "-1.2.x", f"{10**12}.1.x"):
        assert not is_address_token(b"secret", bad, asked, asked)


def add_mail(project, mail_server, *to):
    config = {"to": list(to), "sender": "gw@example.com", "host": "127.0.0.1", "port": mail_server.port}
    body = {"name": "mail", "kind": "email", "config": config | {"security": "none"}}
    with project.client("admin") as client:
        return client.post("/channels", json=body).raise_for_status().json()


def states(project):
    with project.client("read") as client:
        [channel] = client.get("/channels").json()["channels"]
    return {one["address"]: one["state"] for one in channel["addresses"]}


def let_minute_pass(project):
    project.rows(
        "UPDATE mail_addresses SET asked_at = asked_at - interval '2 minutes' WHERE project_id = :p RETURNING 1"
    )


def test_following_the_link_shows_a_button_and_pressing_it_confirms(watched, mail_server):
    made = add_mail(watched, mail_server, ANNA, BEN)
    assert {one["state"] for one in made["addresses"]} == {"waiting for confirmation"}
    link = wait_until(lambda: links_to(mail_server, ANNA), what="the question")[0]
    for _ in range(2):
        shown = httpx.get(link)
        assert shown.status_code == 200
        assert ANNA in shown.text and watched.slug in shown.text
        assert '<form method="post" action="/confirm-address">' in shown.text
    assert httpx.head(link).status_code in {200, 405}
    assert set(states(watched).values()) == {"waiting for confirmation"}
    foreign = {"Origin": "https://evil.example"}
    data = {"token": token_of(link)}
    assert httpx.post(f"{watched.url}/confirm-address", data=data, headers=foreign).status_code == 403
    assert press_button(link).status_code == 200
    assert states(watched) == {ANNA: "confirmed", BEN: "waiting for confirmation"}
    # Again changes nothing and offers nothing.
    assert "<form" not in httpx.get(link).text.split("<main")[1]
    assert press_button(link).status_code == 200
    actions = watched.rows("SELECT actor, action FROM audit_entries WHERE project_id = :p ORDER BY id")
    assert actions.count((ANNA, "address.confirmed")) == 1


def test_send_a_test_asks_an_address_that_has_not_confirmed_and_says_so(watched, mail_server):
    channel = add_mail(watched, mail_server, ANNA)
    wait_until(lambda: links_to(mail_server, ANNA), what="the question")
    with watched.client("admin") as client:
        soon = client.post(f"/channels/{channel['id']}/test").raise_for_status().json()
        assert (soon["sent"], soon["outcome"], soon["delivery"]) == ("confirmation", "waiting", None)
        let_minute_pass(watched)
        again = client.post(f"/channels/{channel['id']}/test").raise_for_status().json()
        assert (again["sent"], again["outcome"], again["status"]) == ("confirmation", "sent", 250)
        assert again["waiting_for_confirmation"] == [ANNA]
        old, new = links_to(mail_server, ANNA)
        assert press_button(old).status_code == 404
        assert press_button(new).status_code == 200
        tested = client.post(f"/channels/{channel['id']}/test").raise_for_status().json()
        assert (tested["sent"], tested["waiting_for_confirmation"]) == ("test", [])
        assert "queued as 17" in tested["answer"]
    assert mails_to(mail_server, ANNA)[-1] == "Test from Gapwatch to the channel mail"


def test_a_link_that_is_guessed_over_or_of_another_project_is_not_there(watched, alerting_service, mail_server):
    add_mail(watched, mail_server, ANNA)
    link = wait_until(lambda: links_to(mail_server, ANNA), what="the question")[0]
    project, number, vouched = token_of(link).split(".")
    other = make_project(alerting_service, watched.database)
    add_mail(other, mail_server, BEN)
    theirs = token_of(wait_until(lambda: links_to(mail_server, BEN), what="the question")[0])
    wrong = ["", "x", f"{project}.{number}.{'0' * 64}", f"{project}.{int(number) + 1}.{vouched}"]
    wrong += [f"{project}.{number}.{theirs.split('.')[2]}", f"{theirs.split('.')[0]}.{number}.{vouched}"]
    for token in wrong:
        for answer in (
            httpx.get(f"{watched.url}/confirm-address", params={"token": token}),
            httpx.post(f"{watched.url}/confirm-address", data={"token": token}),
        ):
            assert answer.status_code == 404
            assert ANNA not in answer.text
    watched.rows(
        "UPDATE mail_addresses SET asked_at = asked_at - interval '3 days' WHERE project_id = :p RETURNING 1"
    )
    assert press_button(link).status_code == 404
    assert states(watched) == {ANNA: "waiting for confirmation"}


def test_neither_the_database_nor_the_log_has_the_token(watched, alerting_service, mail_server):
    add_mail(watched, mail_server, ANNA)
    vouched = token_of(wait_until(lambda: links_to(mail_server, ANNA), what="the question")[0]).split(".")[2]
    for table in ("mail_addresses", "deliveries", "delivery_attempts", "audit_entries"):
        assert not watched.value(
            f"SELECT count(*) FROM {table} t WHERE project_id = :p AND t::text LIKE '%{vouched}%'"
        )
    confirm_by_mail(mail_server, ANNA)
    assert vouched not in alerting_service.log


@pytest.mark.parametrize("change", [{"to": [ANNA, BEN]}, {"to": [BEN]}])
def test_an_address_that_is_added_later_is_asked_and_the_others_keep_their_word(watched, mail_server, change):
    channel = add_mail(watched, mail_server, ANNA)
    confirm_by_mail(mail_server, ANNA)
    config = channel["config"] | change
    with watched.client("admin") as client:
        changed = client.put(
            f"/channels/{channel['id']}", json={"name": "mail", "kind": "email", "config": config}
        )
        found = {one["address"]: one["state"] for one in changed.raise_for_status().json()["addresses"]}
    assert found.pop(BEN) == "waiting for confirmation"
    assert set(found.values()) <= {"confirmed"}
    wait_until(lambda: links_to(mail_server, BEN), what="the question")
    assert len(links_to(mail_server, ANNA)) == 1
