"""Draws which package of the backend imports which.

`python docs/figures/import_graph.py [REVISION] > graph.svg` draws the files as they are, or a commit. A box is a
package, or a room of one, with its modules and lines. It stands below everything that imports it. Imports that run
in a circle are red.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
from collections import Counter, defaultdict
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
TOP = "backend/gapwatch"
# Top-level files are drawn as three boxes: what wires, what stages share, and the ground.
WIRING = {"__main__", "app", "backups", "cli", "openapi", "supervisor", "web", "worker"}
GROUND = {
    *("errors", "fast_answers", "filters", "garbage_collection", "kind_registry", "levels", "logs", "record"),
    *("settings", "step_sizes", "taxonomy"),
    # Their names in earlier commits.
    *("collector", "direct", "pace"),
}
# Packages that are drawn room by room.
WITH_ROOMS = {"statistics", "store"}
WIDTH, BOX_WIDTH, BOX_HEIGHT, ROW_HEIGHT = 1080, 136, 38, 92


def read_sources(revision: str | None) -> dict[str, str]:
    """Return module name → source, for a commit or for the working tree."""
    if revision is None:
        files = {path.relative_to(ROOT / TOP): path.read_text() for path in (ROOT / TOP).rglob("*.py")}
    else:
        packed = subprocess.run(
            ["git", "archive", revision, TOP], cwd=ROOT, capture_output=True, check=True
        ).stdout
        files = {}
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            for member in archive.getmembers():
                content = archive.extractfile(member) if member.name.endswith(".py") else None
                if content is not None:
                    files[Path(member.name).relative_to(TOP)] = content.read().decode()
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): text for path, text in files.items()}


def boxes_of(sources: dict[str, str]) -> dict[str, str]:
    """Return the package or room that each module is drawn in."""
    packages = {module.rpartition(".")[0] for module in sources}
    boxes = {}
    for module in sources:
        first, *rest = module.split(".")
        room = ".".join((first, *rest[:1]))
        if first in packages:
            boxes[module] = room if first in WITH_ROOMS and room in packages else first
        else:
            boxes[module] = "wiring" if module in WIRING else "ground" if module in GROUND else "shared files"
    return boxes


def imports_of(sources: dict[str, str], boxes: dict[str, str]) -> Counter[tuple[str, str]]:
    """Count imports from box to box."""
    counted: Counter[tuple[str, str]] = Counter()
    for module, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gapwatch"):
                base = (node.module or "").removeprefix("gapwatch").removeprefix(".")
                for alias in node.names:
                    whole = f"{base}.{alias.name}".lstrip(".")
                    target = whole if whole in sources else base
                    if target in boxes and boxes[target] != boxes[module]:
                        counted[boxes[module], boxes[target]] += 1
    return counted


def reachable(edges: Counter[tuple[str, str]]) -> dict[str, set[str]]:
    """Return every box that can be reached from a box."""
    direct: dict[str, set[str]] = defaultdict(set)
    for source, target in edges:
        direct[source].add(target)
    closed: dict[str, set[str]] = {}
    for box in {box for edge in edges for box in edge}:
        seen: set[str] = set()
        waiting = [box]
        while waiting:
            for target in direct[waiting.pop()] - seen:
                seen.add(target)
                waiting.append(target)
        closed[box] = seen
    return closed


def depths(boxes: list[str], edges: Counter[tuple[str, str]], below: dict[str, set[str]]) -> dict[str, int]:
    """Return the row of each box: one below the lowest box that imports it; a circle shares a row."""
    rows = dict.fromkeys(boxes, 0)
    for _ in boxes:
        for source, target in edges:
            if source not in below.get(target, ()):
                rows[target] = max(rows[target], rows[source] + 1)
    return rows


def draw(sources: dict[str, str]) -> str:
    sources = {module: text for module, text in sources.items() if module not in ("", "store", "statistics")}
    box_of = boxes_of(sources)
    edges = imports_of(sources, box_of)
    boxes = sorted(set(box_of.values()))
    below = reachable(edges)
    rows = depths(boxes, edges, below)
    by_row: dict[int, list[str]] = defaultdict(list)
    for box in boxes:
        by_row[rows[box]].append(box)
    centre: dict[str, tuple[float, float]] = {}
    for row, names in by_row.items():
        for place, name in enumerate(names):
            centre[name] = (WIDTH * (place + 0.5) / len(names), ROW_HEIGHT * row + BOX_HEIGHT / 2 + 8)
    modules = Counter(box_of.values())
    lines: Counter[str] = Counter()
    for module, source in sources.items():
        lines[box_of[module]] += source.count("\n")
    parts = []
    for (source, target), count in sorted(edges.items()):
        (x1, y1), (x2, y2) = centre[source], centre[target]
        circular = source in below.get(target, ())
        start, end = (y1, y2) if y1 == y2 else (y1 + BOX_HEIGHT / 2, y2 - BOX_HEIGHT / 2)
        bend = (start + end) / 2 if y1 != y2 else start - 46
        parts.append(
            f'<path d="M{x1:.0f} {start:.0f} C{x1:.0f} {bend:.0f} {x2:.0f} {bend:.0f} {x2:.0f} {end:.0f}"'
            f' fill="none" stroke="{"#d1242f" if circular else "#8b949e"}"'
            f' stroke-opacity="{0.9 if circular else 0.45}" stroke-width="{min(5.0, 0.6 + count / 10):.1f}"/>'
        )
    for box, (x, y) in sorted(centre.items()):
        parts.append(
            f'<rect x="{x - BOX_WIDTH / 2:.0f}" y="{y - BOX_HEIGHT / 2:.0f}" width="{BOX_WIDTH}"'
            f' height="{BOX_HEIGHT}" rx="5" fill="#ffffff" stroke="#57606a"/>'
            f'<text x="{x:.0f}" y="{y - 2:.0f}" text-anchor="middle" font-size="13">{escape(box)}</text>'
            f'<text x="{x:.0f}" y="{y + 13:.0f}" text-anchor="middle" font-size="10" fill="#57606a">'
            f"{modules[box]} modules, {lines[box]:,} lines</text>"
        )
    height = ROW_HEIGHT * max(rows.values()) + BOX_HEIGHT + 16
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">'
        f'<rect width="{WIDTH}" height="{height}" fill="#f6f8fa"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    sys.stdout.write(draw(read_sources(sys.argv[1] if len(sys.argv) > 1 else None)))
