"""Jinja2 with escaping on and unknown names refused."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any
from weakref import proxy

import msgspec
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
        # Pages before the gate have none.
        "frame": None,
        "url": Links(None).to,
    }
    # Figures are plain dicts of thousands of numbers.
    environment.policies["json.dumps_function"] = _as_json
    return environment


def _as_json(value: Any, indent: int | None = None, **_: Any) -> str:
    text = msgspec.json.encode(value)
    return (text if indent is None else msgspec.json.format(text, indent=indent)).decode()


class _Figures(dict[str, Any]):
    """A dict that can be known weakly."""


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
        context["figures"] = _Figures(context.get("figures", {}))
        # Macros and what they were given refer to each other, and wait for the garbage collector. Known weakly, a
        # page with its thousands of numbers does not wait with them.
        weak = {name: proxy(value) if is_dataclass(value) else value for name, value in context.items()}
        weak["figures"] = proxy(context["figures"])
        html = self._environment.get_template(template).render(**weak)
        return HTMLResponse(html, status, headers)
