"""What all tables share: names of constraints, column kinds, checks.

Every key starts with `project_id`, so that rows of one project lie together and the schema
distributes by project as it stands. Enumerations are words with a check, readable in psql.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

from sqlalchemy import CheckConstraint, Double, FetchedValue, ForeignKey, MetaData, Text, func, text
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP
from sqlalchemy.orm import DeclarativeBase, mapped_column

from gapwatch.kind_registry import KIND_PATTERN

NAMES = {
    "pk": "%(table_name)s_pkey",
    "uq": "%(table_name)s_%(column_0_N_name)s_key",
    "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    "ck": "%(table_name)s_%(constraint_name)s_check",
    "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
}


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMES)
    type_annotation_map: ClassVar[dict[Any, Any]] = {str: Text}


ProjectId = Annotated[int, mapped_column(ForeignKey("projects.id"), primary_key=True)]
# Counted by project, see `store/core/row_numbers.py`.
RowId = Annotated[int, mapped_column(server_default=FetchedValue(), primary_key=True)]
# Names, slugs and ids compare byte by byte: "C" is the fastest order and the same on every machine.
Word = Annotated[str, mapped_column(Text(collation="C"))]
Time = Annotated[datetime, mapped_column(TIMESTAMP(timezone=True))]
CreatedAt = Annotated[datetime, mapped_column(TIMESTAMP(timezone=True), server_default=func.now())]
Numbers = Annotated[list[float], mapped_column(ARRAY(Double))]
Words = Annotated[list[str], mapped_column(ARRAY(Text(collation="C")))]


def one_of(column: str, *words: str) -> CheckConstraint:
    listed = ", ".join(f"'{word}'" for word in words)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def kind_name(column: str) -> CheckConstraint:
    """A kind's name. Which kinds there are is up to the registry; see docs/decisions/0019."""
    return CheckConstraint(f"{column} ~ '{KIND_PATTERN}'", name=column)


def finite(column: str) -> CheckConstraint:
    # Postgres sorts NaN above Infinity, so one comparison refuses both.
    return CheckConstraint(f"{column} > '-Infinity' AND {column} < 'Infinity'", name=f"{column}_finite")


def all_finite(column: str) -> CheckConstraint:
    bad = "'{NaN,Infinity,-Infinity}'::double precision[]"
    return CheckConstraint(f"NOT ({column} && {bad})", name=f"{column}_finite")


EMPTY_JSON = text("'{}'::jsonb")
EMPTY_ARRAY = text("'{}'")

# Where episodes are counted: `record.side_of`.
SIDES = ("sim", "real", "shadow")
OUTCOMES = ("success", "failure", "aborted", "abandoned")
STAGES = ("offline", "shadow", "supervised", "full")
