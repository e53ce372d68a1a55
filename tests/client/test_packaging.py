"""The client by itself: it needs nothing but Python, and its parts only the library they are named for."""

import subprocess
import sys

import pytest

from gapwatch.settings import ROOT

MODULES = [
    "gapwatch_client",
    "gapwatch_client.shell",
    "gapwatch_client.import_command",
    "gapwatch_client.importers.run",
]


def alone(script: str) -> subprocess.CompletedProcess[str]:
    """Run with the standard library and the client's directory, and nothing that is installed."""
    argv = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import sys; sys.path.insert(0, {str(ROOT / 'client')!r})\n{script}",
    ]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("module", MODULES)
def test_it_is_imported_without_any_other_package(module):
    done = alone(f"import {module}")
    assert done.returncode == 0, done.stderr


def test_a_missing_library_is_named_with_how_to_get_it(tmp_path):
    (tmp_path / "run.mcap").write_bytes(b"")
    script = "from gapwatch_client.import_command import main\n"
    script += f"sys.exit(main([{str(tmp_path / 'run.mcap')!r}, '--dry-run']))"
    done = alone(script)
    assert (done.returncode, done.stderr) == (2, "")
    assert "No module named 'mcap'. Try: pip install 'gapwatch-client[mcap]'" in done.stdout


def test_the_version_is_said_in_one_way():
    text = (ROOT / "client" / "pyproject.toml").read_text()
    told = alone("import gapwatch_client; print(gapwatch_client.__version__)").stdout.strip()
    assert f'version = "{told}"' in text
