"""The other side of every channel, on this machine."""

import pytest
from alerts.receivers import MailServer, Receiver


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def mail_server():
    server = MailServer()
    yield server
    server.close()
