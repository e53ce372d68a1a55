"""Finds the modules of a package that each define one kind, so that adding a module is all it takes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

# Stored in `kind` columns, whose check is this pattern.
KIND_PATTERN = "^[a-z][a-z0-9_]{0,39}$"

Kind = TypeVar("Kind")


def load_kinds(package: str, path: Iterable[str], kind_type: type[Kind]) -> dict[str, Kind]:
    """Return `KIND` of every module of a package by the module's name, in alphabetical order."""
    kinds = {}
    for module in sorted(iter_modules(path), key=lambda module: module.name):
        kind = import_module(f"{package}.{module.name}").KIND
        if not isinstance(kind, kind_type) or not re.match(KIND_PATTERN, module.name):
            raise TypeError(f"{package}.{module.name} does not define a kind")
        kinds[module.name] = kind
    return kinds
