"""Where a test is looked for: beside its module, by name. Of files that are about more, their first line says what."""

import ast
import re
from pathlib import Path

import pytest

from gapwatch.settings import ROOT

TESTS, CODE, CLIENT = ROOT / "tests", ROOT / "backend" / "gapwatch", ROOT / "client" / "gapwatch_client"
# Folders that are no part of the service, or about all of it: what they hold.
SUBJECTS = {
    "attack": "what the worst users do, each a hole that was open once",
    "browser": "what a person sees in Chromium",
    "client": "the package that robots and simulators install",
    "faults": "what remains when parts are killed, and while they are",
}
FILES = sorted(TESTS.rglob("test_*.py"))


def module_of(path: Path) -> Path | None:
    """The module or package whose name the file has, in the folder of the same name or below it."""
    folder = path.relative_to(TESTS).parent
    beside = CLIENT if folder.parts[:1] == ("client",) else CODE / folder
    name = path.stem.removeprefix("test_")
    found = [beside / f"{name}.py", beside / name]
    if folder.parts:
        found += [*beside.rglob(f"{name}.py")]
    return next((one for one in found if one.exists()), None)


def says_what_it_is_about(path: Path) -> bool:
    return bool(ast.get_docstring(ast.parse(path.read_text())))


def test_every_folder_of_tests_is_one_of_the_service_or_a_subject_of_its_own():
    folders = {path.relative_to(TESTS).parts[0] for path in FILES if path.parent != TESTS}
    assert {folder for folder in folders if not (CODE / folder).is_dir()} == set(SUBJECTS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_a_file_is_named_after_its_module_or_says_what_it_is_about(path):
    assert module_of(path) or says_what_it_is_about(path), (
        f"{path.relative_to(ROOT)} is named after no module: move it beside its module, or open it with what it is about"
    )


def test_the_check_notices_a_file_without_a_module(tmp_path):
    """A check that cannot fail is no check."""
    mirrored = [path for path in FILES if path.parent != TESTS and module_of(path)]
    assert len(mirrored) > 50
    assert all(module_of(path.with_name("test_no_such_module.py")) is None for path in mirrored)
    silent = tmp_path / "test_silent.py"
    silent.write_text("import os\n")
    assert not says_what_it_is_about(silent)


def test_every_test_that_the_makefile_names_exists():
    named = re.findall(r"tests/[\w/]+(?:\.py)?", (ROOT / "Makefile").read_text())
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []
