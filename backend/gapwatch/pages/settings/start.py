"""`/settings`: leads to the first page that this role can use."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from gapwatch.pages.frame import Visit


def show_settings(visit: Visit) -> Response:
    return RedirectResponse(visit.frame.links.to("settings", "rules"), 303)
