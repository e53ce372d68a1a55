"""The walk of one episode in docs/architecture.md names modules that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_MODULES = 70


def test_the_walk_of_an_episode_names_modules_that_exist_and_stays_short():
    text = (ROOT / "docs/architecture.md").read_text()
    walk = text.partition("### One episode, module by module")[2].partition("|---|---|")[2].partition("\n\n")[0]
    modules = re.findall(r"`([a-z_/]+)`", walk)
    assert 50 < len(modules) <= MOST_MODULES
    assert [name for name in modules if not (ROOT / "backend/gapwatch" / f"{name}.py").exists()] == []
    assert len(set(modules)) == len(modules)
