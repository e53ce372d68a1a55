"""Jinja2 with escaping on and unknown names refused, and the few ways a page writes numbers and times."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from gapwatch.settings import ROOT

FRONTEND = ROOT / "frontend"
THIN_GAP = "\u202f"


def percent(rate: float) -> str:
    return f"{100 * rate:.1f}"


def count(number: int) -> str:
    """2 400, with a thin gap."""
    return f"{number:,}".replace(",", THIN_GAP)


def day(at: datetime | None) -> str:
    return "never" if at is None else f"{at.astimezone(UTC):%-d %b %H:%M}"


def asset(name: str) -> str:
    """The address of a static file; the hash of its content makes it cacheable for ever."""
    content = (FRONTEND / "static" / name).read_bytes()
    return f"/static/{name}?v={hashlib.sha256(content).hexdigest()[:12]}"


def make_environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FRONTEND / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "count": count, "day": day}
    environment.globals["asset"] = asset
    return environment


class Pages:
    def __init__(self) -> None:
        self._environment = make_environment()

    def render(
        self, template: str, status: int = 200, headers: dict[str, str] | None = None, **context: Any
    ) -> HTMLResponse:
        html = self._environment.get_template(template).render(**context)
        return HTMLResponse(html, status, headers)
