"""`/settings/channels`: where alerts go; made, tried and removed. What is secret in one is never shown again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from gapwatch.access.sealing import Sealer
from gapwatch.channels.kind import ChannelKind, FormField
from gapwatch.channels.kinds import CHANNEL_KINDS, split_secrets
from gapwatch.channels.retired import problem_of
from gapwatch.errors import NotFound
from gapwatch.pages.frame import View, Visit
from gapwatch.store.alerting import (
    alert_list,
    alert_settings,
    mail_addresses,
)
from gapwatch.watching.notification import test_content
from gapwatch.watching.routing import WEEKDAYS, Routing
from gapwatch.watching.rules import Severity

# What the form shows first.
FIRST_KIND = "slack"
MOST_DELIVERIES = 20


@dataclass(frozen=True)
class ChannelEntry:
    id: int
    name: str
    kind: str
    config: dict[str, Any]
    routing: dict[str, Any]
    created_at: datetime
    # Why nothing can be sent there: its kind is gone.
    problem: str
    # Mail addresses that get nothing because they have not said that they want it; and whether any address has.
    waiting: list[str]
    is_told: bool
    # How often in a row what is open was not taken when it was sent again, since when, and what was answered.
    resend_failures: int
    resent_at: datetime | None
    resend_answer: str

    @property
    def digest(self) -> str:
        """When the digest goes there, in words; empty without one."""
        wanted = self.routing.get("digest")
        return "" if wanted is None else f"{wanted['weekday']} {wanted['hour']:02}:00 {wanted['time_zone']}"

    @property
    def where(self) -> str:
        """Its configuration but for the secrets."""
        return "; ".join(
            f"{name} {', '.join(value) if isinstance(value, list | tuple) else value}"
            for name, value in self.config.items()
        )


@dataclass(frozen=True)
class ChannelsPage:
    channels: list[ChannelEntry]
    kinds: dict[str, str]
    kind: str
    fields: list[FormField]
    note: str
    severities: tuple[str, ...]
    deliveries: list[dict[str, Any]]
    problem: str
    takes_digest: bool
    weekdays: tuple[str, ...] = WEEKDAYS


class ChannelHandlers:
    def __init__(self, sealer: Sealer, nudge: Callable[[str], None]) -> None:
        self._sealer = sealer
        self._nudge = nudge

    def show(self, visit: Visit) -> View:
        kind = visit.request.query_params.get("kind", FIRST_KIND)
        return self._view(visit, kind if kind in CHANNEL_KINDS else FIRST_KIND)

    def make(self, visit: Visit) -> View | Response:
        kind, name = visit.form.one("kind"), visit.form.line("name", 128)
        if kind not in CHANNEL_KINDS or not name or "/" in name:
            return self._view(visit, FIRST_KIND, "Give the channel a kind, and a name without a slash.")
        values: dict[str, Any] = {}
        for field in CHANNEL_KINDS[kind].form_fields():
            text = visit.form.one(f"config_{field.name}").strip()
            if text:
                values[field.name] = text.split() if field.several else text
        try:
            shown, secrets = split_secrets(kind, values)
            routing = Routing.model_validate(_routing(visit, CHANNEL_KINDS[kind]))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            return self._view(visit, kind, f"{where}: {first['msg']}.")
        if alert_settings.channel_named(visit.transaction, visit.project_id, name) is not None:
            return self._view(visit, kind, "There is a channel with this name.")
        alert_settings.put_channel(
            visit.transaction,
            visit.project_id,
            channel_id=None,
            name=name,
            kind=kind,
            config=shown,
            sealed=self._sealer.seal(secrets),
            routing=routing,
            enabled=True,
            actor=visit.actor,
            secrets=alert_settings.SecretFate(set=sorted(secrets)),
        )
        self._nudge("send")
        return RedirectResponse(visit.frame.links.to("settings", "channels"), 303)

    def test(self, visit: Visit) -> Response:
        """Put a test into the outbox, or the question to an address that has not confirmed.

        What the other side said appears in the log below within seconds.
        """
        number = visit.form.number("channel")
        channels = alert_settings.channels(visit.transaction, visit.project_id, number) if number else []
        if not channels:
            raise NotFound("There is no such channel.")
        content = test_content(channels[0].name)
        mail_addresses.try_channel(visit.transaction, visit.project_id, number, channels[0].config, content)
        self._nudge("send")
        return RedirectResponse(visit.frame.links.to("settings", "channels"), 303)

    def remove(self, visit: Visit) -> Response:
        number = visit.form.number("channel")
        if not alert_settings.disable_channel(visit.transaction, visit.project_id, number, visit.actor):
            raise NotFound("There is no such channel.")
        return RedirectResponse(visit.frame.links.to("settings", "channels"), 303)

    def _view(self, visit: Visit, kind: str, problem: str = "") -> View:
        channels = alert_settings.channels(visit.transaction, visit.project_id)
        page = ChannelsPage(
            channels=[
                _entry(channel, mail_addresses.addresses_of(visit.transaction, visit.project_id, channel.config))
                for channel in channels
                if channel.enabled
            ],
            kinds={name: known.label for name, known in CHANNEL_KINDS.items()},
            kind=kind,
            fields=CHANNEL_KINDS[kind].form_fields(),
            note=CHANNEL_KINDS[kind].note,
            severities=get_args(Severity),
            deliveries=alert_list.deliveries_page(
                visit.transaction,
                visit.project_id,
                incident=None,
                channel=None,
                state=None,
                before_id=None,
                limit=MOST_DELIVERIES,
            ),
            problem=problem,
            takes_digest=CHANNEL_KINDS[kind].takes_digest,
        )
        return View("settings_channels.html", page, 422 if problem else 200)


def _routing(visit: Visit, kind: ChannelKind) -> dict[str, Any]:
    given: dict[str, Any] = {"min_severity": visit.form.one("min_severity") or "warning"}
    weekday = visit.form.one("digest_weekday")
    if weekday and kind.takes_digest:
        zone, hour = visit.form.line("digest_zone", 64), visit.form.line("digest_hour", 2)
        given["digest"] = {"weekday": weekday, "hour": hour or 8, "time_zone": zone or "UTC"}
        if visit.form.one("digest_only"):
            given["events"] = []
    return given


def _entry(channel: alert_settings.Channel, known: list[mail_addresses.MailAddress]) -> ChannelEntry:
    waiting = [address.address for address in known if address.confirmed_at is None]
    return ChannelEntry(
        channel.id,
        channel.name,
        channel.kind,
        dict(channel.config),
        channel.routing.model_dump(mode="json", exclude_none=True),
        channel.created_at,
        problem_of(channel.kind),
        waiting,
        is_told=not known or len(waiting) < len(known),
        resend_failures=channel.resend_failures,
        resent_at=channel.resent_at,
        resend_answer=channel.resend_answer or "",
    )
