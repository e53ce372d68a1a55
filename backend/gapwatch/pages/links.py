"""Addresses of pages. They name the project when a person has several, so that a link sent to a colleague
opens what its sender saw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, urlencode

Query = str | int | None | Iterable[str]


@dataclass(frozen=True)
class Links:
    # None when the person has one project only, and it goes without saying.
    project: str | None

    def to(self, *parts: str, **query: Query) -> str:
        """links.to("deployments", slug, since="30d") → /deployments/…?since=30d&project=…; None is left out."""
        path = "/" + "/".join(quote(part, safe="") for part in parts)
        pairs: list[tuple[str, str]] = []
        for name, value in {**query, "project": self.project}.items():
            if value is None or value == "":
                continue
            values = [str(value)] if isinstance(value, str | int) else list(value)
            pairs += [(name.rstrip("_"), text) for text in values]
        return f"{path}?{urlencode(pairs)}" if pairs else path


def local_path(to: str | None) -> str:
    """Where to go after signing in: only ever a path of ours."""
    if not to or not to.startswith("/") or to.startswith("//") or "\\" in to or not to.isprintable():
        return "/"
    return to
