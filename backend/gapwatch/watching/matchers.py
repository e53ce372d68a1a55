"""Which deployments, severities and rules something is for: exact words or globs, never patterns that can run
away.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints

Glob = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Globs = Annotated[list[Glob], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


class Match(BaseModel):
    """Every field that is given must fit; of several words one. `*` stands for anything."""

    model_config = ConfigDict(extra="forbid")

    deployment: Globs = []
    policy: Globs = []
    task: Globs = []
    site: Globs = []
    stage: Globs = []
    rule: Globs = []
    severity: Globs = []

    def fits(self, words: Mapping[str, str | None]) -> bool:
        """`words` are what is known of the subject; a field that is asked for and not known does not fit."""
        for name in type(self).model_fields:
            wanted = getattr(self, name)
            if wanted and not any(fnmatchcase(words.get(name) or "", glob) for glob in wanted):
                return False
        return True
