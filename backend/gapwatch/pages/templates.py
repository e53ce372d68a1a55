"""Jinja2 with escaping on and unknown names refused."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from gapwatch.pages.links import Links
from gapwatch.pages.static import Assets
from gapwatch.pages.words import FILTERS
from gapwatch.settings import ROOT
from gapwatch.taxonomy import CATEGORIES

FRONTEND = ROOT / "frontend"


def make_environment(assets: Assets) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FRONTEND / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    environment.globals |= {
        "asset": assets.url,
        "categories": CATEGORIES,
        # Pages before the door have none.
        "frame": None,
        "figures": {},
        "url": Links(None).to,
    }
    # Figures are plain dicts of thousands of numbers: no spaces.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


class Pages:
    def __init__(self) -> None:
        self.assets = Assets(FRONTEND / "static")
        self._environment = make_environment(self.assets)

    def render(
        self, template: str, status: int = 200, headers: dict[str, str] | None = None, **context: Any
    ) -> HTMLResponse:
        frame = context.get("frame")
        if frame is not None:
            context["url"] = frame.links.to
        html = self._environment.get_template(template).render(**context)
        return HTMLResponse(html, status, headers)
