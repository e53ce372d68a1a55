"""The import layers of pyproject.toml hold, and the check of them can fail."""

import subprocess
import sys
from pathlib import Path

import pytest

from gapwatch.settings import ROOT

BIN = Path(sys.executable).parent


def lint(config: Path) -> subprocess.CompletedProcess[str]:
    argv = [BIN / "lint-imports", "--no-cache", "--config", config]
    return subprocess.run(argv, cwd=ROOT / "backend", capture_output=True, text=True, check=False)


def test_stages_meet_only_in_the_store_and_pure_modules_stay_pure():
    done = lint(ROOT / "pyproject.toml")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("container", "layers", "broken"),
    [
        ("gapwatch", '"store", "ingest"', "gapwatch.ingest"),
        ("gapwatch", '"settings", "store"', "gapwatch.store"),
        ("gapwatch.store", '"fold", "read"', "gapwatch.store.read"),
    ],
)
def test_the_check_notices_a_wrong_import(tmp_path, container, layers, broken):
    """A check that cannot fail is no check: with two layers swapped it must name the import."""
    config = tmp_path / "pyproject.toml"
    config.write_text(
        '[tool.importlinter]\nroot_package = "gapwatch"\n[[tool.importlinter.contracts]]\nname = "Swapped"\n'
        f'type = "layers"\ncontainers = ["{container}"]\nlayers = [{layers}]\n'
    )
    done = lint(config)
    assert done.returncode == 1
    assert f"{broken}." in done.stdout
