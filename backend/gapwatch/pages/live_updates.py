"""`/live`: whether an open page is still what it would be now. Asked every few seconds by every page in view."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from gapwatch.pages.frame import Visit


def show_live(visit: Visit) -> Response:
    return JSONResponse({"version": visit.frame.version, "unowned_incidents": visit.frame.unowned_incidents})
