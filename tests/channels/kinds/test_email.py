import pytest
from channels.messages import EGRESS, message

from gapwatch.channels.egress import Egress
from gapwatch.channels.kinds import email
from gapwatch.channels.kinds.email import EmailConfig


@pytest.fixture
def mail_config(mail_server):
    return EmailConfig(
        to=["on-call@example.com"],
        sender="gapwatch@example.com",
        host="127.0.0.1",
        port=mail_server.port,
        security="none",
    )


def test_mail_has_the_headline_as_its_subject_and_one_thread_an_incident(mail_server, mail_config):
    attempt = email.send(mail_config, message(), EGRESS)
    assert (attempt.outcome, attempt.status) == ("sent", 250)
    assert "queued as 17" in attempt.answer
    email.send(mail_config, message("resolve", resolved_by="gapwatch"), EGRESS)
    first, second = mail_server.mails
    assert str(first["To"]) == "on-call@example.com"
    assert first["References"] == second["References"]
    assert "visual (20 points)" in first.get_payload(decode=True).decode()


def test_a_name_cannot_add_a_header(mail_server, mail_config):
    email.send(mail_config, message(headline="x\r\nBcc: everybody@example.com"), EGRESS)
    [mail] = mail_server.mails
    assert mail["Bcc"] is None


@pytest.mark.parametrize(("code", "outcome"), [(451, "retry"), (550, "refused")])
def test_a_mail_server_that_says_no(mail_server, mail_config, code, outcome):
    mail_server.codes = [code]
    attempt = email.send(mail_config, message(), EGRESS)
    assert (attempt.outcome, attempt.status) == (outcome, code)


def test_mail_to_a_private_server_needs_the_setting(mail_server, mail_config):
    assert email.send(mail_config, message(), Egress()).outcome == "refused"
    assert mail_server.mails == []
