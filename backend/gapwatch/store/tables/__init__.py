"""Every table, by subject. Importing this package fills the metadata that migrations are compared with."""

from gapwatch.store.tables import (
    access,
    alerting,
    episodes,
    permits,
    registry,
    robots,
    rollouts,
    rollups,
    trials,
    work,
)
from gapwatch.store.tables.schema import Base

__all__ = [
    "Base",
    "access",
    "alerting",
    "episodes",
    "permits",
    "registry",
    "robots",
    "rollouts",
    "rollups",
    "trials",
    "work",
]
