"""Everything else, through Apprise: one address for each of a hundred services."""

from __future__ import annotations

import time
from typing import Any

from gapwatch.alerts.channels.message import Message
from gapwatch.alerts.egress import SHOWN_ANSWER, Egress, Refused
from gapwatch.store.alerting.outbox import Attempt
from gapwatch.watching.channels import AppriseConfig

# These talk to the machine itself and not to anybody on it.
LOCAL = {"dbus", "qt", "glib", "kde", "gnome", "windows", "macosx", "syslog", "file"}


def send(config: AppriseConfig, message: Message, egress: Egress) -> Attempt:
    import apprise

    started = time.monotonic()

    def attempt(outcome: str, answer: str) -> Attempt:
        took_ms = round(1000 * (time.monotonic() - started))
        return Attempt(outcome, None, answer[:SHOWN_ANSWER], took_ms)  # type: ignore[arg-type]

    told = apprise.Apprise()
    try:
        for url in config.urls:
            plugin = _plugin(apprise, url, egress)
            told.add(plugin)
    except Refused as error:
        return attempt("refused", str(error))
    except OSError as error:
        return attempt("retry", str(error))
    text = "\n".join([*message.lines(), message.link])
    with apprise.LogCapture(level=apprise.logging.WARNING) as said:  # type: ignore[no-untyped-call]
        sent = told.notify(title=message.headline, body=text, notify_type=_type(apprise, message))
        words = _without_secrets(said.getvalue(), config.urls)
    return attempt("sent" if sent else "retry", words.strip() or ("accepted" if sent else "not accepted"))


def _plugin(apprise: Any, url: str, egress: Egress) -> Any:
    if url.partition("://")[0].lower() in LOCAL:
        raise Refused("this Apprise address would reach the server itself")
    plugin = apprise.Apprise.instantiate(url, suppress_exceptions=True)
    if plugin is None:
        raise Refused("Apprise does not know this address")
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
