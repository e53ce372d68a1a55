"""Pure code does not ask what time it is: its callers say so, and a test or a replay can say another time.

The import contracts keep the database, the web and `time` out. `datetime` has both: the type, which pure code needs,
and the clock, which it may not read.
"""

import ast
from pathlib import Path

import pytest

from gapwatch.settings import ROOT

BACKEND = ROOT / "backend" / "gapwatch"
PURE = (
    "statistics",
    "watching",
    "tally",
    "ingest/packing",
    "levels.py",
    "notation.py",
    "taxonomy.py",
    "record.py",
)
CLOCKS = {"now", "utcnow", "today"}
CLOCK_MODULES = {"time"}


def modules() -> list[Path]:
    paths = [BACKEND / name for name in PURE]
    return sorted(found for path in paths for found in (path.rglob("*.py") if path.is_dir() else [path]))


def clock_reads(source: str) -> list[int]:
    """The lines on which the code reads a clock, or imports a module that does nothing else."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr=name) if name in CLOCKS:
                lines.append(node.lineno)
            case ast.Import(names=names) if any(name.name.split(".")[0] in CLOCK_MODULES for name in names):
                lines.append(node.lineno)
            case ast.ImportFrom(module=module, level=0) if str(module).split(".")[0] in CLOCK_MODULES:
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(BACKEND)))
def test_pure_code_reads_no_clock(path):
    assert clock_reads(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import time as clock",
        "from time import monotonic",
        "from datetime import datetime\nat = datetime.now()",
        "import datetime\nat = datetime.datetime.now(tz=datetime.UTC)",
        "from datetime import datetime\nclock = datetime.utcnow",
        "from datetime import date\nday = date.today()",
    ],
)
def test_the_check_notices_a_clock(source):
    """A check that cannot fail is no check."""
    assert clock_reads(source) != []


def test_times_that_are_given_are_no_clock():
    assert clock_reads("from datetime import UTC, datetime\nat = datetime(2026, 1, 1, tzinfo=UTC)") == []
