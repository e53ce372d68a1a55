"""What the documents tell people to paste does what they say."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gapwatch.settings import ROOT
from parts import Service, clean_environment

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


def paste(document: str, service: Service, directory: Path) -> str:
    """Run every command of a document in one shell; return what it printed."""
    blocks = re.findall(r"```bash\n(.*?)```", (ROOT / "docs" / document).read_text(), re.DOTALL)
    # curl shall fail on an error status, so that the shell does.
    script = "set -euo pipefail\ncurl() { command curl --fail-with-body -w '\\n' \"$@\"; }\n" + "\n".join(blocks)
    environment = clean_environment(
        URL=service.url, DATA=str(service.data_dir), GAPWATCH=str(Path(sys.executable).with_name("gapwatch"))
    )
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_command_of_the_api_document_works_in_a_shell(service, tmp_path):
    printed = paste("api.md", service, tmp_path)
    assert '"status":"accepted"' in printed
    assert '"accepted":100' in printed
    assert '"rejected":1' in printed
    assert '"status":"corrected","revision":2' in printed
    assert (tmp_path / "episodes.csv").read_text().count("\n") == 101
    assert (tmp_path / "episodes.parquet").read_bytes().startswith(b"PAR1")


def test_the_walk_of_the_rollout_document_leads_from_offline_to_full_and_back(service, tmp_path):
    printed = paste("rollout.md", service, tmp_path)
    permits = [json.loads(line) for line in printed.splitlines() if line.startswith('{"policy":')]
    assert [(one["stage"], one["state"], one["policy"]["version"]) for one in permits] == [
        ("shadow", "go", "1.0"),
        ("supervised", "go", "2.0"),
        ("shadow", "fallback", "1.0"),
    ]
    assert "Claims and what they rest on" in (tmp_path / "packet.html").read_text()
    assert "walk: 4 of 4 packets reproduced to the last figure, 0 aged out, 0 WRONG" in printed


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
)
def test_links_between_documents_lead_somewhere(name):
    text = (ROOT / name).read_text()
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text) + re.findall(r'\bsrc(?:set)?="([^"]+)"', text):
        if not target.startswith(("http://", "https://")):
            assert ((ROOT / name).parent / target).exists(), target
