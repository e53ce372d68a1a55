"""Everything else, through Apprise: one address for each of a hundred services."""

from __future__ import annotations

import time
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from gapwatch.channels.egress import SHOWN_ANSWER, Egress, EgressRefused
from gapwatch.channels.kind import ChannelConfig, ChannelKind, Line
from gapwatch.channels.message import Attempt, Message

# These talk to the machine itself and not to anybody on it.
LOCAL = {"dbus", "qt", "glib", "kde", "gnome", "windows", "macosx", "syslog", "file"}


def _not_mail(url: str) -> str:
    """Refuse mail addresses: `email` asks its addresses before it sends to them."""
    if url.lower().startswith(("mailto:", "mailtos:")):
        raise ValueError(
            "must not be a mail address: make a channel of kind email, which asks its addresses first"
        )
    return url


class AppriseConfig(ChannelConfig):
    urls: Annotated[list[Annotated[Line, AfterValidator(_not_mail)]], Field(min_length=1, max_length=20)]


def send(config: AppriseConfig, message: Message, egress: Egress) -> Attempt:
    import apprise

    started = time.monotonic()

    def attempt(outcome: str, answer: str) -> Attempt:
        took_ms = round(1000 * (time.monotonic() - started))
        return Attempt(outcome, None, answer[:SHOWN_ANSWER], took_ms)  # type: ignore[arg-type]

    service = apprise.Apprise()
    try:
        for url in config.urls:
            plugin = _plugin(apprise, url, egress)
            service.add(plugin)
    except EgressRefused as error:
        return attempt("refused", str(error))
    except OSError as error:
        return attempt("retry", str(error))
    text = "\n".join([*message.lines(), message.link])
    with apprise.LogCapture(level=apprise.logging.WARNING) as said:  # type: ignore[no-untyped-call]
        sent = service.notify(title=message.headline, body=text, notify_type=_type(apprise, message))
        words = _without_secrets(said.getvalue(), config.urls)
    return attempt("sent" if sent else "retry", words.strip() or ("accepted" if sent else "not accepted"))


def _plugin(apprise: Any, url: str, egress: Egress) -> Any:
    if url.partition("://")[0].lower() in LOCAL:
        raise EgressRefused("this Apprise address would reach the server itself")
    plugin = apprise.Apprise.instantiate(url, suppress_exceptions=True)
    if plugin is None:
        raise EgressRefused("Apprise does not know this address")
    host = getattr(plugin, "host", None)
    if isinstance(host, str) and host:
        egress.resolve(host, getattr(plugin, "port", None) or 443)
    return plugin


def _type(apprise: Any, message: Message) -> Any:
    if message.action == "resolve":
        return apprise.NotifyType.SUCCESS
    kinds = {"info": "INFO", "warning": "WARNING", "critical": "FAILURE"}
    return getattr(apprise.NotifyType, kinds[message.severity])


def _without_secrets(words: str, urls: list[str]) -> str:
    for url in urls:
        words = words.replace(url, "[address]")
    return words


KIND = ChannelKind(
    label="anything Apprise reaches",
    config=AppriseConfig,
    send=send,
    # Addresses carry tokens.
    secrets=frozenset({"urls"}),
    hints={"urls": "one Apprise address a line"},
    remarks="everything else but mail, which `email` sends after asking its addresses",
)
