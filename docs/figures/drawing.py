"""Small SVG drawings: a plot with axes, lines, bands, points, bars and words; readable in light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import log10

INK, GREY, PALE = "#1f2933", "#7b8794", "#d9e2ec"
SIM, REAL, WARN, GOOD = "#2f6fb2", "#d9662b", "#b3261e", "#2d7d46"


class Plot:
    """Data coordinates on a white sheet of 640 × 300."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        title: str,
        x_name: str = "",
        y_name: str = "",
        x_log: bool = False,
        y_log: bool = False,
        left: int = 58,
        height: int = 300,
    ) -> None:
        self.x, self.y, self.x_log, self.y_log = x, y, x_log, y_log
        self.width, self.height = 640, height
        self.box = (left, 40, self.width - 18, height - 44)
        self.parts = [
            f'<rect width="{self.width}" height="{height}" rx="6" fill="#fff"/>',
            f'<text x="14" y="19" font-weight="600">{escape(title)}</text>',
        ]
        if x_name:
            self.parts.append(_text((self.box[0] + self.box[2]) / 2, height - 8, x_name, "middle", GREY))
        if y_name:
            self.parts.append(_text(14, 34, y_name, "start", GREY))

    def at(self, x: float, y: float) -> tuple[float, float]:
        left, top, right, bottom = self.box
        return (
            left + _share(x, self.x, self.x_log) * (right - left),
            bottom - _share(y, self.y, self.y_log) * (bottom - top),
        )

    def ticks(
        self, xs: Iterable[float] = (), ys: Iterable[float] = (), form: str = "{:g}", y_form: str = "{:g}"
    ) -> None:
        left, top, right, bottom = self.box
        for value in xs:
            x, _ = self.at(value, self.y[0])
            self.parts.append(f'<path d="M{x:.1f} {top}V{bottom}" stroke="{PALE}"/>')
            self.parts.append(_text(x, bottom + 15, form.format(value), "middle", GREY))
        for value in ys:
            _, y = self.at(self.x[0], value)
            self.parts.append(f'<path d="M{left} {y:.1f}H{right}" stroke="{PALE}"/>')
            self.parts.append(_text(left - 6, y + 4, y_form.format(value), "end", GREY))

    def line(self, xs: Sequence[float], ys: Sequence[float], colour: str, *, dashed: bool = False) -> None:
        points = " ".join("{:.1f},{:.1f}".format(*self.at(x, y)) for x, y in zip(xs, ys, strict=True))
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')

    def band(self, xs: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str) -> None:
        there = [self.at(x, y) for x, y in zip(xs, low, strict=True)]
        back = [self.at(x, y) for x, y in zip(reversed(xs), reversed(high), strict=True)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (*there, *back))
        self.parts.append(f'<polygon points="{points}" fill="{colour}" opacity="0.22"/>')

    def dots(self, xs: Sequence[float], ys: Sequence[float], colour: str, size: float = 4) -> None:
        for x, y in zip(xs, ys, strict=True):
            a, b = self.at(x, y)
            self.parts.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{size}" fill="{colour}"/>')

    def bar(self, y: float, start: float, end: float, colour: str, thick: float = 16) -> None:
        (a, row), (b, _) = self.at(start, y), self.at(end, y)
        low, high = sorted((a, b))
        self.parts.append(
            f'<rect x="{low:.1f}" y="{row - thick / 2:.1f}" width="{max(high - low, 1):.1f}" height="{thick}" '
            f'fill="{colour}" opacity="0.85"/>'
        )

    def whisker(self, y: float, low: float, high: float, colour: str = INK) -> None:
        (a, row), (b, _) = self.at(low, y), self.at(high, y)
        self.parts.append(
            f'<path d="M{a:.1f} {row - 5:.1f}v10M{a:.1f} {row:.1f}H{b:.1f}M{b:.1f} {row - 5:.1f}v10" '
            f'stroke="{colour}" stroke-width="1.6"/>'
        )

    def mark(self, x: float, colour: str = GREY) -> None:
        (a, top), (_, bottom) = self.at(x, self.y[1]), self.at(x, self.y[0])
        self.parts.append(f'<path d="M{a:.1f} {top:.1f}V{bottom:.1f}" stroke="{colour}" stroke-dasharray="3 3"/>')

    def words(self, x: float, y: float, words: str, colour: str = INK, anchor: str = "start") -> None:
        a, b = self.at(x, y)
        self.parts.append(_text(a, b + 4, words, anchor, colour))

    def beside(self, y: float, words: str) -> None:
        """A row's name, left of the plot."""
        _, b = self.at(self.x[0], y)
        self.parts.append(_text(self.box[0] - 8, b + 4, words, "end", INK))

    def svg(self) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'font-family="system-ui, sans-serif" font-size="12" fill="{INK}">' + "".join(self.parts) + "</svg>\n"
        )


def _share(value: float, span: tuple[float, float], is_log: bool) -> float:
    low, high, value = (log10(max(v, 1e-12)) for v in (*span, value)) if is_log else (*span, value)
    return min(1.04, max(-0.04, (value - low) / (high - low)))


def _text(x: float, y: float, words: str, anchor: str, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'
