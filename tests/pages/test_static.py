import hashlib
import re

import httpx
import pytest

from gapwatch.pages.static import Assets
from gapwatch.pages.templates import FRONTEND

STATIC = FRONTEND / "static"
VENDORED = sorted(path.parent for path in (STATIC / "vendor").glob("*/SHA256SUMS"))


def test_every_vendored_folder_says_what_its_files_are():
    assert VENDORED and sorted(path for path in (STATIC / "vendor").iterdir() if path.is_dir()) == VENDORED


@pytest.mark.parametrize("folder", VENDORED, ids=lambda folder: folder.name)
def test_vendored_files_are_unchanged_and_carry_their_licence(folder):
    recorded = dict(reversed(line.split()) for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert {path.name for path in folder.iterdir()} - {"SHA256SUMS"} == recorded.keys()
    assert "LICENSE" in recorded
    for name, digest in recorded.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name


def test_every_import_of_a_script_is_served_beside_it(service):
    assets = Assets(STATIC)
    imports = {
        (path.name, to)
        for path in STATIC.glob("*.js")
        for to in re.findall(r'from "\./([^"]+)"', path.read_text())
    }
    assert ("live.js", "vendor/idiomorph/idiomorph.esm.js") in imports
    for name, to in imports:
        address = f"{service.url}{assets.url(name).removesuffix(name)}{to}"
        answer = httpx.get(address)
        assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/javascript"), address
        assert "immutable" in answer.headers["cache-control"]


def test_only_scripts_styles_and_pictures_are_served(service):
    url = Assets(STATIC).url("live.js").removesuffix("live.js")
    for name in ("vendor/idiomorph/LICENSE", "vendor/README.md", "%2e%2e/templates/base.html"):
        assert httpx.get(f"{service.url}{url}{name}").status_code == 404, name
