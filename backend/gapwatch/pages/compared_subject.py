"""One deployment or policy version beside others."""

from __future__ import annotations

from dataclasses import dataclass

from gapwatch.answers.drop import DropAnswer
from gapwatch.answers.real_difference import RealDifference


@dataclass(frozen=True)
class ComparedSubject:
    name: str
    kind: str
    about: str
    drop: DropAnswer
    against: RealDifference | None
    href: str | None
