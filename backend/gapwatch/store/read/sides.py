"""Reading one side of a comparison: what it counts up to, over time, and single episodes of it."""

from gapwatch.store.read.bucket_counts import (
    BucketCount,
    Tier,
    bucket_counts,
    each_day_counts,
)
from gapwatch.store.read.combined_counts import CombinedCounts, combined_counts
from gapwatch.store.read.failed_episodes import FailedRows
from gapwatch.store.read.rollup_counts import (
    CellCount,
    ContractCount,
    FailureCount,
    Kind,
    Outcome,
    Total,
    ValueRollup,
    Values,
    cell_counts,
    contract_counts,
    each_cell_counts,
    each_contract_counts,
    each_failure_counts,
    each_totals,
    each_value_rollups,
    failure_counts,
    value_rollups,
)
from gapwatch.store.read.sampled_episodes import (
    FailedSelection,
    PairRow,
    each_failed_episodes,
    failed_episodes,
    failures_by_day,
    paired_episodes,
    sampled_values,
)
from gapwatch.store.read.selection import (
    Cell,
    CellFilter,
    Domain,
    Scope,
    Selection,
    Window,
)
from gapwatch.store.read.session_counts import SessionCount, each_session_counts, session_counts
from gapwatch.store.read.window_edges import WindowEdges
from gapwatch.tally.sums import Signature

__all__ = [
    "BucketCount",
    "Cell",
    "CellCount",
    "CellFilter",
    "CombinedCounts",
    "ContractCount",
    "Domain",
    "FailedRows",
    "FailedSelection",
    "FailureCount",
    "Kind",
    "Outcome",
    "PairRow",
    "Scope",
    "Selection",
    "SessionCount",
    "Signature",
    "Tier",
    "Total",
    "ValueRollup",
    "Values",
    "Window",
    "WindowEdges",
    "bucket_counts",
    "cell_counts",
    "combined_counts",
    "contract_counts",
    "each_cell_counts",
    "each_contract_counts",
    "each_day_counts",
    "each_failed_episodes",
    "each_failure_counts",
    "each_session_counts",
    "each_totals",
    "each_value_rollups",
    "failed_episodes",
    "failure_counts",
    "failures_by_day",
    "paired_episodes",
    "sampled_values",
    "session_counts",
    "value_rollups",
]
