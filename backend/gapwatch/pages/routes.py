"""The pages' addresses, and the role each needs: the one table of who may do what.

`anybody` stands before the gate, `person` is whoever is signed in, the rest are roles in a project.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from starlette.routing import BaseRoute, Route

from gapwatch.access.roles import Role
from gapwatch.access.sealing import Sealer
from gapwatch.pages.alert import AlertHandlers
from gapwatch.pages.alerts import show_alerts
from gapwatch.pages.compare import show_compare
from gapwatch.pages.deployments.deployment import DeploymentHandlers
from gapwatch.pages.episode import EpisodeHandlers
from gapwatch.pages.episodes import EpisodesHandlers, Export
from gapwatch.pages.fleet import FleetHandlers
from gapwatch.pages.live_updates import show_live
from gapwatch.pages.people.account import (
    AccountHandlers,
    make_project,
    show_projects,
)
from gapwatch.pages.people.address_confirmation import AddressConfirmationHandlers
from gapwatch.pages.people.onboarding import OnboardingHandlers
from gapwatch.pages.people.sign_in import SignInHandlers
from gapwatch.pages.people.sign_in_gate import SignInGate
from gapwatch.pages.settings.baselines import pin_baseline, show_baselines
from gapwatch.pages.settings.channels import ChannelHandlers
from gapwatch.pages.settings.keys import KeyHandlers
from gapwatch.pages.settings.members import MemberHandlers
from gapwatch.pages.settings.quarantine import show_quarantine
from gapwatch.pages.settings.rules import change_rules, show_rules
from gapwatch.pages.settings.silences import add_silence, end_silence, show_silences
from gapwatch.pages.settings.start import show_settings
from gapwatch.pages.settings.taxonomy import change_taxonomy, show_taxonomy
from gapwatch.pages.templates import Pages
from gapwatch.pages.trust import show_trust
from gapwatch.settings import Settings
from gapwatch.store.core.database import Database

Who = Literal["anybody", "person"] | Role


@dataclass(frozen=True)
class Way:
    """One address and method, and who may go there."""

    method: Literal["GET", "POST"]
    path: str
    who: Who
    handler: Callable[..., Any]


class PageRoutes:
    def __init__(
        self,
        database: Database,
        pages: Pages,
        settings: Settings,
        *,
        nudge: Callable[[str], None],
        sealer: Sealer,
        export: Export,
    ) -> None:
        self._pages = pages
        self._gate = SignInGate(database, pages, settings)
        sign_in = SignInHandlers(self._gate)
        joining = OnboardingHandlers(self._gate, sign_in, settings.server_secret())
        confirming = AddressConfirmationHandlers(self._gate, settings.server_secret())
        account = AccountHandlers(self._gate, sign_in)
        keys = KeyHandlers(settings.server_secret(), settings.public_url)
        members = MemberHandlers(settings.public_url)
        fleet = FleetHandlers(settings.public_url)
        episode = EpisodeHandlers(nudge)
        deployment = DeploymentHandlers(pages.assets)
        alert = AlertHandlers(nudge)
        channels = ChannelHandlers(sealer, nudge)
        self.table = (
            Way("GET", "/sign-in", "anybody", sign_in.show),
            Way("POST", "/sign-in", "anybody", sign_in.submit),
            Way("GET", "/set-up", "anybody", joining.show_set_up),
            Way("POST", "/set-up", "anybody", joining.set_up),
            Way("GET", "/invitation", "anybody", joining.show_invitation),
            Way("POST", "/invitation", "anybody", joining.accept_invitation),
            Way("GET", "/confirm-address", "anybody", confirming.show),
            Way("POST", "/confirm-address", "anybody", confirming.confirm),
            Way("POST", "/sign-out", "person", sign_in.sign_out),
            Way("GET", "/account", "person", account.show),
            Way("POST", "/account", "person", account.change_password),
            Way("GET", "/projects", "person", show_projects),
            Way("POST", "/projects", "person", make_project),
            Way("GET", "/live", "viewer", show_live),
            Way("GET", "/", "viewer", fleet.show),
            Way("GET", "/compare", "viewer", show_compare),
            Way("GET", "/compare/simulators", "viewer", show_trust),
            Way("GET", "/deployments/{slug:path}", "viewer", deployment.show),
            Way("POST", "/deployments/{slug:path}", "engineer", deployment.record),
            Way("GET", "/episodes", "viewer", EpisodesHandlers(export).show),
            Way("GET", "/episodes/{episode_id:path}", "viewer", episode.show),
            Way("POST", "/episodes/{episode_id:path}", "engineer", episode.label),
            Way("GET", "/alerts", "viewer", show_alerts),
            Way("GET", "/alerts/{alert_id}", "viewer", alert.show),
            Way("POST", "/alerts/{alert_id}", "engineer", alert.act),
            Way("GET", "/settings", "viewer", show_settings),
            Way("GET", "/settings/rules", "viewer", show_rules),
            Way("POST", "/settings/rules", "engineer", change_rules),
            Way("GET", "/settings/silences", "viewer", show_silences),
            Way("POST", "/settings/silences", "engineer", add_silence),
            Way("POST", "/settings/silences/end", "engineer", end_silence),
            Way("GET", "/settings/channels", "viewer", channels.show),
            Way("POST", "/settings/channels", "admin", channels.make),
            Way("POST", "/settings/channels/test", "admin", channels.test),
            Way("POST", "/settings/channels/remove", "admin", channels.remove),
            Way("GET", "/settings/baselines", "viewer", show_baselines),
            Way("POST", "/settings/baselines", "engineer", pin_baseline),
            Way("GET", "/settings/taxonomy", "viewer", show_taxonomy),
            Way("POST", "/settings/taxonomy", "admin", change_taxonomy),
            Way("GET", "/settings/quarantine", "viewer", show_quarantine),
            Way("GET", "/settings/members", "viewer", members.show),
            Way("POST", "/settings/members", "admin", members.change),
            Way("POST", "/settings/members/invite", "admin", members.invite),
            Way("POST", "/settings/members/withdraw", "admin", members.withdraw),
            Way("GET", "/settings/keys", "admin", keys.show),
            Way("POST", "/settings/keys", "admin", keys.make),
            Way("POST", "/settings/keys/revoke", "admin", keys.revoke),
        )

    def routes(self) -> list[BaseRoute]:
        return [self._pages.assets.route(), *(self._route(way) for way in self.table)]

    def _route(self, way: Way) -> Route:
        if way.who == "anybody":
            endpoint = self._gate.for_anybody(way.handler)
        else:
            endpoint = self._gate.for_role(None if way.who == "person" else way.who, way.handler)
        return Route(way.path, endpoint, methods=[way.method])
