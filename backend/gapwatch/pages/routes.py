"""The pages' addresses. Whoever is not signed in is sent to `/sign-in` and back."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from gapwatch.pages.fleet import FleetPage, fleet_entry
from gapwatch.pages.signin import SignIn
from gapwatch.pages.static import CachedFiles
from gapwatch.pages.templates import FRONTEND, Pages
from gapwatch.settings import Settings
from gapwatch.store import access, fleet
from gapwatch.store.database import Database


class PageRoutes:
    def __init__(self, database: Database, pages: Pages, settings: Settings) -> None:
        self._database = database
        self._pages = pages
        self._settings = settings
        self._sign_in = SignIn(database, pages, settings.public_url)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/", self.fleet),
            Route("/sign-in", self._sign_in.show, methods=["GET"]),
            Route("/sign-in", self._sign_in.submit, methods=["POST"]),
            Route("/sign-out", self._sign_in.sign_out, methods=["POST"]),
            Mount("/static", CachedFiles(directory=FRONTEND / "static")),
        ]

    def fleet(self, request: Request) -> Response:
        person = self._sign_in.who(request)
        if person is None:
            return RedirectResponse(f"/sign-in?to={quote(request.url.path)}", 303)
        with self._database.transaction() as connection:
            mine = access.memberships(connection, person.user_id)
            if not mine:
                return self._pages.render("no_project.html", email=person.email, csrf=person.csrf_token)
            project = mine[0]
            rows = fleet.deployments(connection, project.project_id)
        page = FleetPage(
            project=project.slug,
            role=project.role,
            email=person.email,
            csrf=person.csrf_token,
            public_url=self._settings.public_url,
            data_dir_option=self._settings.data_dir_option,
            entries=[fleet_entry(row) for row in rows],
        )
        return self._pages.render("fleet.html", page=page)
