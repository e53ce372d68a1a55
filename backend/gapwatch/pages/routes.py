"""The pages' addresses, and the role each needs: the one table of who may do what.

`anybody` stands before the gate, `person` is whoever is signed in, the rest are roles in a project.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from gapwatch.access.roles import Role
from gapwatch.access.sealing import Sealer
from gapwatch.doors.costly_reads import CostlyReads
from gapwatch.pages.alert import AlertHandlers
from gapwatch.pages.alerts import show_alerts
from gapwatch.pages.compare import show_compare
from gapwatch.pages.deployments.deployment import DeploymentHandlers
from gapwatch.pages.deployments.drills import DrillHandlers
from gapwatch.pages.episode import EpisodeHandlers
from gapwatch.pages.episodes import EpisodesHandlers, Export
from gapwatch.pages.fixes import record_fix, show_fixes
from gapwatch.pages.fleet import FleetHandlers
from gapwatch.pages.forms import Form
from gapwatch.pages.incident import IncidentHandlers
from gapwatch.pages.live_updates import show_live
from gapwatch.pages.people.account import (
    AccountHandlers,
    make_project,
    show_projects,
)
from gapwatch.pages.people.address_confirmation import AddressConfirmationHandlers
from gapwatch.pages.people.onboarding import OnboardingHandlers
from gapwatch.pages.people.sign_in import SignInHandlers
from gapwatch.pages.people.sign_in_gate import IsCostly, SignInGate
from gapwatch.pages.plans import make_plan, show_plan, show_plans
from gapwatch.pages.rollouts import RolloutHandlers, is_plan
from gapwatch.pages.settings.audit import show_audit
from gapwatch.pages.settings.baselines import pin_baseline, show_baselines
from gapwatch.pages.settings.calendars import change_calendar, show_calendars
from gapwatch.pages.settings.channels import ChannelHandlers
from gapwatch.pages.settings.keys import KeyHandlers
from gapwatch.pages.settings.members import MemberHandlers
from gapwatch.pages.settings.quarantine import show_quarantine
from gapwatch.pages.settings.robots import RobotHandlers
from gapwatch.pages.settings.rules import change_rules, show_rules
from gapwatch.pages.settings.silences import add_silence, end_silence, show_silences
from gapwatch.pages.settings.start import show_settings
from gapwatch.pages.settings.taxonomy import change_taxonomy, show_taxonomy
from gapwatch.pages.templates import Pages
from gapwatch.pages.trust import show_trust
from gapwatch.pages.week import show_week
from gapwatch.settings import Settings
from gapwatch.store.core.database import Database

Who = Literal["anybody", "person"] | Role


@dataclass(frozen=True)
class PageRoute:
    """One address and method, and who may go there."""

    method: Literal["GET", "POST"]
    path: str
    who: Who
    handler: Callable[..., Any]
    # Whether a request is one of those that compute for long.
    is_costly: IsCostly | None = None


def always(request: Request, form: Form) -> bool:
    return True


def is_report(request: Request, form: Form) -> bool:
    return request.query_params.get("format") == "report"


def is_preview(request: Request, form: Form) -> bool:
    return form.one("act") == "preview"


class PageRoutes:
    def __init__(
        self,
        database: Database,
        pages: Pages,
        settings: Settings,
        *,
        nudge: Callable[[str], None],
        sealer: Sealer,
        costly: CostlyReads,
        export: Export,
    ) -> None:
        self._pages = pages
        self._gate = SignInGate(database, pages, settings, costly)
        sign_in = SignInHandlers(self._gate)
        joining = OnboardingHandlers(self._gate, sign_in, settings.server_secret())
        confirming = AddressConfirmationHandlers(self._gate, settings.server_secret())
        account = AccountHandlers(self._gate, sign_in)
        keys = KeyHandlers(settings.server_secret(), settings.public_url)
        members = MemberHandlers(settings.public_url)
        fleet = FleetHandlers(settings.public_url)
        episode = EpisodeHandlers(nudge)
        episodes = EpisodesHandlers(export, nudge)
        deployment = DeploymentHandlers(pages.assets)
        drills = DrillHandlers(database, settings.public_url)
        alert = AlertHandlers(nudge)
        incident = IncidentHandlers(nudge)
        channels = ChannelHandlers(sealer, nudge)
        robots = RobotHandlers(nudge)
        rollouts = RolloutHandlers(settings.public_url, nudge)
        self.table = (
            PageRoute("GET", "/sign-in", "anybody", sign_in.show),
            PageRoute("POST", "/sign-in", "anybody", sign_in.submit),
            PageRoute("GET", "/set-up", "anybody", joining.show_set_up),
            PageRoute("POST", "/set-up", "anybody", joining.set_up),
            PageRoute("GET", "/invitation", "anybody", joining.show_invitation),
            PageRoute("POST", "/invitation", "anybody", joining.accept_invitation),
            PageRoute("GET", "/confirm-address", "anybody", confirming.show),
            PageRoute("POST", "/confirm-address", "anybody", confirming.confirm),
            PageRoute("POST", "/sign-out", "person", sign_in.sign_out),
            PageRoute("GET", "/account", "person", account.show),
            PageRoute("POST", "/account", "person", account.change_password),
            PageRoute("GET", "/projects", "person", show_projects),
            PageRoute("POST", "/projects", "person", make_project),
            PageRoute("GET", "/live", "viewer", show_live),
            PageRoute("GET", "/", "viewer", fleet.show),
            PageRoute("GET", "/compare", "viewer", show_compare, always),
            PageRoute("GET", "/compare/simulators", "viewer", show_trust, always),
            PageRoute("GET", "/deployments/{slug:path}", "viewer", deployment.show, is_report),
            PageRoute("POST", "/deployments/{slug:path}/drill", "admin", drills.press),
            PageRoute("POST", "/deployments/{slug:path}", "engineer", deployment.record),
            PageRoute("GET", "/episodes", "viewer", episodes.show),
            PageRoute("POST", "/episodes", "engineer", episodes.label),
            PageRoute("GET", "/episodes/{episode_id:path}", "viewer", episode.show),
            PageRoute("POST", "/episodes/{episode_id:path}", "engineer", episode.label),
            PageRoute("GET", "/alerts", "viewer", show_alerts),
            PageRoute("GET", "/alerts/{alert_id}", "viewer", alert.show),
            PageRoute("POST", "/alerts/{alert_id}", "engineer", alert.act),
            PageRoute("GET", "/incidents/{incident_id}", "viewer", incident.show),
            PageRoute("POST", "/incidents/{incident_id}", "engineer", incident.act),
            PageRoute("GET", "/rollouts", "viewer", rollouts.show),
            PageRoute("POST", "/rollouts", "engineer", rollouts.act, is_plan),
            PageRoute("GET", "/decisions/{decision_id}", "viewer", rollouts.show_packet),
            PageRoute("GET", "/plans", "viewer", show_plans),
            PageRoute("POST", "/plans", "engineer", make_plan, always),
            PageRoute("GET", "/plans/{plan_id}", "viewer", show_plan),
            PageRoute("GET", "/fixes", "viewer", show_fixes, always),
            PageRoute("POST", "/fixes", "engineer", record_fix),
            PageRoute("GET", "/week", "viewer", show_week, always),
            PageRoute("GET", "/settings", "viewer", show_settings),
            PageRoute("GET", "/settings/rules", "viewer", show_rules),
            PageRoute("POST", "/settings/rules", "engineer", change_rules, is_preview),
            PageRoute("GET", "/settings/silences", "viewer", show_silences),
            PageRoute("POST", "/settings/silences", "engineer", add_silence),
            PageRoute("POST", "/settings/silences/end", "engineer", end_silence),
            PageRoute("GET", "/settings/robots", "viewer", robots.show),
            PageRoute("POST", "/settings/robots", "engineer", robots.change),
            PageRoute("GET", "/settings/calendars", "viewer", show_calendars),
            PageRoute("POST", "/settings/calendars", "engineer", change_calendar),
            PageRoute("GET", "/settings/channels", "viewer", channels.show),
            PageRoute("POST", "/settings/channels", "admin", channels.make),
            PageRoute("POST", "/settings/channels/test", "admin", channels.test),
            PageRoute("POST", "/settings/channels/remove", "admin", channels.remove),
            PageRoute("GET", "/settings/baselines", "viewer", show_baselines),
            PageRoute("POST", "/settings/baselines", "engineer", pin_baseline),
            PageRoute("GET", "/settings/taxonomy", "viewer", show_taxonomy),
            PageRoute("POST", "/settings/taxonomy", "admin", change_taxonomy),
            PageRoute("GET", "/settings/quarantine", "viewer", show_quarantine),
            PageRoute("GET", "/settings/members", "viewer", members.show),
            PageRoute("POST", "/settings/members", "admin", members.change),
            PageRoute("POST", "/settings/members/invite", "admin", members.invite),
            PageRoute("POST", "/settings/members/withdraw", "admin", members.withdraw),
            PageRoute("GET", "/settings/audit", "admin", show_audit),
            PageRoute("GET", "/settings/keys", "admin", keys.show),
            PageRoute("POST", "/settings/keys", "admin", keys.make),
            PageRoute("POST", "/settings/keys/revoke", "admin", keys.revoke),
        )

    def routes(self) -> list[BaseRoute]:
        return [self._pages.assets.route(), *(self._route(way) for way in self.table)]

    def _route(self, way: PageRoute) -> Route:
        if way.who == "anybody":
            endpoint = self._gate.for_anybody(way.handler)
        else:
            endpoint = self._gate.for_role(None if way.who == "person" else way.who, way.handler, way.is_costly)
        return Route(way.path, endpoint, methods=[way.method])
