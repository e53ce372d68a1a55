"""Channels of kinds that are gone. Apprise was one: it followed redirects, resolved names again, took any port,
and read files and templates that an address named, so nothing could confine it.

An Apprise address of a service that has a kind of its own becomes a channel of that kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from pydantic import ValidationError

from gapwatch.channels.kinds import CHANNEL_KINDS, split_secrets

RETIRED_KINDS = {
    "apprise": (
        "Apprise is no longer supported, and nothing is sent here. Make a channel of kind discord, mattermost, "
        "ntfy, opsgenie, pagerduty, pushover, slack, teams, telegram or webhook instead, then remove this one."
    )
}


def problem_of(kind: str) -> str:
    """What is wrong with a channel of this kind; nothing with one that this release knows."""
    if kind in CHANNEL_KINDS:
        return ""
    return RETIRED_KINDS.get(kind, "This release does not know the kind of this channel; nothing is sent here.")


@dataclass(frozen=True)
class Successor:
    """The channel that an Apprise address becomes."""

    kind: str
    shown: dict[str, object]
    secrets: dict[str, object]


def successors_of(url: str) -> list[Successor] | None:
    """The channels that tell whom an Apprise address told; None if none can."""
    try:
        parts = urlsplit(url.strip())
        wanted = _configs(parts)
        return [Successor(kind, *split_secrets(kind, config)) for kind, config in wanted] or None
    except (ValidationError, ValueError):
        return None


# The hosts of services that people also gave by their own address.
_NATIVE = {
    "discord": re.compile(r"^https://(?:discord|discordapp)\.com/api/webhooks/[0-9]+/[\w-]+/?$"),
    "slack": re.compile(r"^https://hooks\.slack\.com/services/\w+/\w+/\w+/?$"),
    "teams": re.compile(
        r"^https://[\w.-]+\.(?:logic\.azure\.com|powerplatform\.com|webhook\.office\.com)(?::443)?/"
    ),
}


def _configs(parts: SplitResult) -> list[tuple[str, dict[str, object]]]:
    scheme, host = parts.scheme.lower(), parts.netloc.rpartition("@")[2]
    path = [unquote(part) for part in parts.path.split("/") if part]
    user = unquote(parts.username) if parts.username else ""
    options = {name: values[0] for name, values in parse_qs(parts.query).items()}
    match scheme:
        case "https":
            url = parts.geturl()
            return [(kind, {"url": url}) for kind, pattern in _NATIVE.items() if pattern.match(url)]
        case "discord" if len(path) == 1:
            return [("discord", {"url": f"https://discord.com/api/webhooks/{quote(host)}/{quote(path[0])}"})]
        case "slack" if len(path) == 2 and not parts.fragment:  # noqa: PLR2004 - three tokens, and no channels that they do not say
            return [("slack", {"url": f"https://hooks.slack.com/services/{'/'.join(map(quote, [host, *path]))}"})]
        case "workflow" | "workflows" if len(path) == 2 and "template" not in options:  # noqa: PLR2004
            signed = "api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=" + quote(path[1], safe="")
            tail = f"workflows/{quote(path[0])}/triggers/manual/paths/invoke?{signed}"
            return [("teams", {"url": f"https://{host}/{tail}"})]
        case "tgram":
            token, chats = (f"{host}", path) if ":" in host else (f"{host}:{path[0]}", path[1:])
            # Apprise takes a chat's name without its sign too.
            ids = [chat if re.match(r"^(-?\d+|@.*)$", chat) else f"@{chat}" for chat in chats]
            return [("telegram", {"token": token, "chat_id": chat}) for chat in ids]
        case "ntfy" | "ntfys":
            return _ntfy(parts, host, path)
        case "pover" if user and not path:
            return [("pushover", {"token": host, "user": user})]
        case "opsgenie" if not path:
            url = "https://api.eu.opsgenie.com" if options.get("region") == "eu" else "https://api.opsgenie.com"
            return [("opsgenie", {"api_key": host, "url": url})]
        case "mmost" | "mmosts" if path:
            plain = "https" if scheme == "mmosts" else "http"
            tail = "/".join(quote(part) for part in [*path[:-1], "hooks", path[-1]])
            return [("mattermost", {"url": f"{plain}://{host}/{tail}"})]
        case "pagerduty" if user:
            return [("pagerduty", {"routing_key": user})]
    return []


def _ntfy(parts: SplitResult, host: str, path: list[str]) -> list[tuple[str, dict[str, object]]]:
    login: dict[str, object] = {}
    user = unquote(parts.username or "")
    if user.startswith("tk_"):
        login = {"token": user}
    elif user:
        login = {"username": user, "password": unquote(parts.password or "")}
    if not path:
        # Without a path the host is the topic, at the public server.
        return [("ntfy", {"topic": host, **login})]
    url = f"{'https' if parts.scheme.lower() == 'ntfys' or host == 'ntfy.sh' else 'http'}://{host}"
    return [("ntfy", {"topic": topic, "url": url, **login}) for topic in path]
