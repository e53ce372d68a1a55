"""The benchmarks in bench/ follow the code that they measure: each of them can at least be started."""

import importlib
import re

import pytest

from gapwatch.settings import ROOT

MODULES = sorted(path.stem for path in (ROOT / "bench").glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_finds_all_that_it_uses(name):
    importlib.import_module(f"bench.{name}")


def test_every_benchmark_that_the_makefile_runs_exists():
    run = re.findall(r"-m bench\.(\w+)", (ROOT / "Makefile").read_text())
    assert run
    assert {*run} <= {*MODULES}
