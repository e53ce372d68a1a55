"""An address that is asked whether it wants alerts, and the person behind it."""

import re

import httpx

from parts import wait_until

LINK = re.compile(r"\S+/confirm-address\?token=\S+")


def links_to(mail_server, address):
    """The links that were sent to an address, oldest first."""
    mails = [mail for mail in mail_server.mails if mail["To"] == address]
    texts = [mail.get_payload(decode=True).decode() for mail in mails]
    return [found[0] for found in map(LINK.search, texts) if found]


def token_of(link):
    return link.partition("?token=")[2]


def press_button(link):
    """What the page of the link does when its button is pressed."""
    url, _, token = link.partition("?token=")
    return httpx.post(url, data={"token": token})


def confirm_by_mail(mail_server, *addresses):
    """Wait for the newest question to each address, and agree."""
    for address in addresses:
        link = wait_until(lambda: links_to(mail_server, address), what="the question")[-1]  # noqa: B023
        assert press_button(link).status_code == 200
