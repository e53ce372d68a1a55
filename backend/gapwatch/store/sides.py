"""Reading one side of a comparison: what it counts up to, over time, and single episodes of it."""

from gapwatch.store.scopes import Cell, CellFilter, Domain, Scope, Window
from gapwatch.store.side_counts import (
    CellCount,
    ContractCount,
    FailureCount,
    Kind,
    Outcome,
    Signature,
    ValueRollup,
    Values,
    cell_counts,
    contract_counts,
    failure_counts,
    pooled_conditions,
    value_rollups,
)
from gapwatch.store.side_samples import FailedRow, PairRow, failed_episodes, paired_episodes, sampled_values
from gapwatch.store.side_series import BucketCount, SessionCount, bucket_counts, session_counts

__all__ = [
    "BucketCount",
    "Cell",
    "CellCount",
    "CellFilter",
    "ContractCount",
    "Domain",
    "FailedRow",
    "FailureCount",
    "Kind",
    "Outcome",
    "PairRow",
    "Scope",
    "SessionCount",
    "Signature",
    "ValueRollup",
    "Values",
    "Window",
    "bucket_counts",
    "cell_counts",
    "contract_counts",
    "failed_episodes",
    "failure_counts",
    "paired_episodes",
    "pooled_conditions",
    "sampled_values",
    "session_counts",
    "value_rollups",
]
