"""Words inside figures. Plotly reads a little HTML in every text, so what robots sent is escaped here."""

from __future__ import annotations

from datetime import datetime
from html import escape

from gapwatch.notation import utc_text
from gapwatch.pages.words import category_name

LONGEST = 24
NARROW_NAMES = {
    "contact_dynamics": "Contact",
    "object_property": "Object",
    "environment_complexity": "Environment",
    "sensor_noise": "Sensor noise",
    "human_behavior": "Human",
    "robot_dynamics": "Robot",
    "latency_timing": "Latency",
    "state_estimation": "State estim.",
    "sim_numerics": "Sim numerics",
    "policy_robustness": "Policy",
    "interface_contract": "Interface",
}


def seen_word(seen: str, words: tuple[str, str]) -> str:
    """Which side has seen it: "real only", by what the sides are called."""
    return {"sim only": f"{words[0]} only", "real only": f"{words[1]} only"}.get(seen, seen)


def plain(text: object) -> str:
    """Text that is shown as it is."""
    return escape(str(text), quote=False)


def short(text: object, longest: int = LONGEST) -> str:
    """Cut to what a margin can hold; the whole text is in the table below the figure."""
    whole = str(text)
    return plain(whole if len(whole) <= longest else f"{whole[: longest - 1]}…")


def bold(text: object) -> str:
    return f"<b>{plain(text)}</b>"


def narrow_category(category: str) -> str:
    return plain(NARROW_NAMES.get(category, category_name(category)))


def moment(at: datetime) -> str:
    """A moment within words, {2026-11-02T09:14:03Z}, which charts.js writes in the reader's own time."""
    return f"{{{utc_text(at)}}}"
