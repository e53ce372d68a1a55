"""What the documents tell people to paste does what they say."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gapwatch.settings import ROOT
from parts import clean_environment

API = (ROOT / "docs" / "api.md").read_text()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_every_command_of_the_api_document_works_in_a_shell(service, tmp_path):
    blocks = re.findall(r"```bash\n(.*?)```", API, re.DOTALL)
    # curl shall fail on an error status, so that the shell does.
    script = "set -euo pipefail\ncurl() { command curl --fail-with-body -w '\\n' \"$@\"; }\n" + "\n".join(blocks)
    environment = clean_environment(
        URL=service.url, DATA=str(service.data_dir), GAPWATCH=str(Path(sys.executable).with_name("gapwatch"))
    )
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"status":"accepted"' in done.stdout
    assert '"accepted":100' in done.stdout
    assert '"rejected":1' in done.stdout
    assert '"status":"corrected","revision":2' in done.stdout
    assert (tmp_path / "episodes.csv").read_text().count("\n") == 101
    assert (tmp_path / "episodes.parquet").read_bytes().startswith(b"PAR1")


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
)
def test_links_between_documents_lead_somewhere(name):
    text = (ROOT / name).read_text()
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text) + re.findall(r'\bsrc(?:set)?="([^"]+)"', text):
        if not target.startswith(("http://", "https://")):
            assert ((ROOT / name).parent / target).exists(), target
