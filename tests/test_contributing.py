"""CONTRIBUTING.md says true things: the recipes name files that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = TEXT.partition("## Recipes")[2]
# Recipes speak of the backend's modules without their folder.
FOLDERS = (ROOT, ROOT / "backend/gapwatch")
FILE = re.compile(r"`([\w./<>…*-]+/[\w.<>…*-]+|[\w<>-]+\.(?:py|md|toml|yml|html|css))`")


def exists(name):
    """A placeholder such as <kind> stands for any name."""
    pattern = re.sub(r"<[^>]+>|…", "*", name)
    return any(next(folder.glob(pattern), None) is not None for folder in FOLDERS)


def test_every_path_that_a_recipe_names_exists():
    named = FILE.findall(RECIPES)
    assert len(named) > 30
    assert [name for name in named if not exists(name)] == []


def test_a_path_that_is_gone_is_noticed():
    assert FILE.findall("1. `store/no_such_file.py`: …") == ["store/no_such_file.py"]
    assert not exists("store/no_such_file.py")
    assert not exists("backend/gapwatch/no_such_stage/<verb>.py")
