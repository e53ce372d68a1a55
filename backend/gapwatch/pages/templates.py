"""Jinja2 with escaping on and unknown names refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any
from weakref import proxy

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from starlette.responses import HTMLResponse

from gapwatch.pages.figures.text import seen_word
from gapwatch.pages.figures.trend import glyph
from gapwatch.pages.filtering import WINDOWS
from gapwatch.pages.first_episode import sending_command
from gapwatch.pages.labelling import CATEGORY_KEYS
from gapwatch.pages.links import Links
from gapwatch.pages.sentences import captions, shadow
from gapwatch.pages.sentences.deployment import baseline_words, robots_words
from gapwatch.pages.sentences.episode import failed_how
from gapwatch.pages.sentences.incident import robot_word
from gapwatch.pages.sentences.plans import ranges_finding
from gapwatch.pages.sentences.rollout import gate_words
from gapwatch.pages.sentences.rule import matched
from gapwatch.pages.sentences.stage import STAGES
from gapwatch.pages.sentences.trust import correlation
from gapwatch.pages.static import Assets
from gapwatch.pages.words import FILTERS
from gapwatch.settings import ROOT
from gapwatch.taxonomy import CATEGORIES

FRONTEND = ROOT / "frontend"
_INDENTATION = re.compile(r"^[ \t]+", re.MULTILINE)
SENTENCES: dict[str, Callable[..., Any]] = {
    "age_of": captions.age_of,
    "baseline_words": baseline_words,
    "bound_finding": shadow.bound_finding,
    "bound_narrowing": shadow.bound_narrowing,
    "conditions_caption": captions.conditions_caption,
    "correlation": correlation,
    "differs": captions.differs,
    "drove": shadow.drove,
    "exposure_summary": captions.exposure_summary,
    "failed_how": failed_how,
    "failures_finding": captions.failures_finding,
    "few_levels": captions.few_levels,
    "forecast_finding": shadow.forecast_finding,
    "gate_words": gate_words,
    "glyph": glyph,
    "fields_differ": captions.fields_differ,
    "ledger_caption": captions.ledger_caption,
    "line_key": captions.line_key,
    "matched": matched,
    "moved_by": captions.moved_by,
    "proposal_rate": shadow.proposal_rate,
    "proposal_words": shadow.proposal_words,
    "ranges_finding": ranges_finding,
    "real_higher": captions.real_higher,
    "robot_word": robot_word,
    "robots_caption": captions.robots_caption,
    "robots_finding": captions.robots_finding,
    "robots_words": robots_words,
    "seen_word": seen_word,
    "sending_command": sending_command,
    "signals_finding": captions.signals_finding,
    "signals_title": captions.signals_title,
    "standing_signals": captions.standing_signals,
    "worst_conditions": captions.worst_conditions,
}


class _Outdented(Extension):
    """Leaves the indentation of templates out of pages, where it was a fifth of their size.

    Also a macro's first words then stand where it is called. What must keep its spaces comes from an expression.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return _INDENTATION.sub("", source)


def make_environment(assets: Assets) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FRONTEND / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_Outdented],
    )
    environment.filters |= FILTERS | SENTENCES
    environment.globals |= {
        "asset": assets.url,
        "categories": CATEGORIES,
        "category_keys": CATEGORY_KEYS,
        "stages": STAGES,
        "windows": WINDOWS,
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
