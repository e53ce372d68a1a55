"""The report of a deployment: one HTML file with its style, its script and its figures inside."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup

from gapwatch.pages.deployments.figures import Figures
from gapwatch.pages.static import PLOTLY, Assets

_IMPORT_OF_TIMES = 'import { localText, two } from "./times.js";\n'
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Report:
    """What the template writes into the file beside the page's data."""

    figures: Figures
    assets: Assets

    @property
    def made_at(self) -> datetime:
        return datetime.now(UTC)

    @property
    def style(self) -> Markup:
        return Markup(self.assets.text("app.css"))  # noqa: S704 - our own file

    @property
    def plotly(self) -> Markup:
        return _script(self.assets.text(PLOTLY))

    @property
    def scripts(self) -> Markup:
        """Times and figures in one module: a file on a disk imports nothing."""
        charts = self.assets.text("charts.js").replace(_IMPORT_OF_TIMES, "")
        return _script(f"{self.assets.text('times.js')}\n{charts}")


def report_headers(slug: str, window: str) -> dict[str, str]:
    """The name of the file says what it is about: gapwatch-turin-cell-1-since-30-Oct-2026-11-18.html"""
    file = "-".join(_NOT_A_NAME.sub("-", words).strip("-")[:80] for words in (slug, window)).strip("-")
    name = f"gapwatch-{file}-{datetime.now(UTC):%Y-%m-%d}.html"
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def _script(text: str) -> Markup:
    """Inside an HTML file a script ends at its closing tag, even within a string."""
    return Markup(text.replace("</script", "<\\/script"))  # noqa: S704 - our own files and Plotly's
