import pytest
from alerts.receivers import BadDay
from channels.messages import EGRESS, message
from pydantic import ValidationError

from gapwatch.channels.egress import Egress
from gapwatch.channels.kinds import apprise
from gapwatch.channels.kinds.apprise import AppriseConfig

# Apprise loads all its plugins, one of which imports a module that Python is about to drop.
quiet = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated", "ignore::DeprecationWarning:pgpy")


@quiet
def test_apprise_reaches_the_rest(receiver):
    address = receiver.url.removeprefix("http://")
    attempt = apprise.send(AppriseConfig(urls=[f"json://{address}/apprise"]), message(), EGRESS)
    assert attempt.outcome == "sent", attempt.answer
    assert receiver.got[0].json["title"].startswith("berlin")
    receiver.bad_days = [BadDay(500)]
    attempt = apprise.send(AppriseConfig(urls=[f"json://{address}/apprise"]), message(), EGRESS)
    assert attempt.outcome == "retry"
    assert address not in attempt.answer or "/apprise" not in attempt.answer


@quiet
@pytest.mark.parametrize("url", ["json://127.0.0.1/x", "syslog://", "dbus://", "nonsense://x"])
def test_apprise_does_not_reach_this_machine(url):
    assert apprise.send(AppriseConfig(urls=[url]), message(), Egress()).outcome == "refused"


@pytest.mark.parametrize("url", ["mailto://me:pass@example.com", "MailTos://me:pass@example.com"])
def test_apprise_sends_no_mail_past_the_confirmation_of_addresses(url):
    with pytest.raises(ValidationError, match="kind email"):
        AppriseConfig(urls=[url])
