"""Randomisation ranges on their way to the service: from a dict, or from a file of the training run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gapwatch_client.range_files import read_ranges

Ranges = Mapping[str, Any]


def parameters_of(ranges: Ranges | str | os.PathLike[str]) -> list[dict[str, Any]]:
    """A pair or a mapping by name, `{"friction": (0.4, 0.8), "mass": {"low": -1, "high": 3, …}}`; or a file."""
    if not isinstance(ranges, Mapping):
        return read_ranges(Path(ranges))
    parameters = []
    for name, given in ranges.items():
        if isinstance(given, Mapping):
            parameters.append({"name": str(name), **given})
        else:
            low, high = given
            parameters.append({"name": str(name), "low": low, "high": high})
    return parameters


def ranges_path(simulator: Mapping[str, str]) -> str:
    name, version = (quote(simulator[part], safe="") for part in ("name", "version"))
    return f"/api/v1/simulators/{name}/{version}/ranges"
