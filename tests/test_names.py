"""One word, one meaning: names that would send a reader to the wrong file."""

import ast
from collections import defaultdict
from pathlib import Path

BACKEND = Path(__file__).parents[1] / "backend/gapwatch"


def classes(source):
    return [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]


def test_class_names_are_unique_across_the_backend():
    defined = defaultdict(list)
    for path in BACKEND.rglob("*.py"):
        for name in classes(path.read_text()):
            defined[name].append(str(path.relative_to(BACKEND)))
    assert len(defined) > 200
    assert {name: files for name, files in defined.items() if len(files) > 1} == {}
