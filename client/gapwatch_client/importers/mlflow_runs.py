"""MLflow runs as episodes: parameters, metrics and tags under the names `params.*`, `metrics.*` and `tags.*`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from gapwatch_client.importers.mapping import Row
from gapwatch_client.importers.record_fields import is_field
from gapwatch_client.importers.report import ImportReport

PAGE = 500
_SUCCESS = ("success", "is_success", "successes")
_REWARD = ("reward", "return", "sum_reward", "episode_reward")
_TAGS = {
    "mlflow.source.git.commit": "provenance.git_sha",
    "mlflow.runName": "provenance.run_name",
    "mlflow.user": "provenance.evaluator",
}


def read_runs(uri: str, report: ImportReport, experiment: str | None = None) -> Iterator[Row]:
    """Read the runs of a tracking server or a directory; of one experiment or of all."""
    # Read a directory of runs as it is; by default MLflow wants it moved into a database first.
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    experiments = [e for e in client.search_experiments() if experiment in {None, e.name, e.experiment_id}]
    if not experiments:
        raise ValueError(f"there is no experiment {experiment or ''} at {uri}")
    for match in sorted(experiments, key=lambda e: (len(e.experiment_id), e.experiment_id)):
        token = None
        while True:
            page = client.search_runs([match.experiment_id], max_results=PAGE, page_token=token)
            for run in page:
                row = _row(run, match.name, report)
                if row is not None:
                    yield row
            token = page.token
            if not token:
                break


def _row(run: Any, experiment: str, report: ImportReport) -> Row | None:
    info, data = run.info, run.data
    if info.status in {"RUNNING", "SCHEDULED"}:
        report.skipped("the run has not ended")
        return None
    values: dict[str, Any] = {"task": experiment, "started_at": info.start_time, "provenance.run_id": info.run_id}
    if info.end_time is not None:
        values["duration_s"] = (info.end_time - info.start_time) / 1000
    if info.status in {"FAILED", "KILLED"}:
        values["outcome"] = "aborted"
    for name, value in data.metrics.items():
        if name in _SUCCESS:
            values.setdefault("outcome", "success" if value >= 0.5 else "failure")  # noqa: PLR2004 - a rate or a flag
        elif name in _REWARD:
            values["reward"] = value
        else:
            values[name if name.startswith(("signals.", "metrics.")) else f"metrics.{name}"] = value
    for name, value in data.params.items():
        # A parameter named like a field becomes that field; the others become provenance.
        values[name if is_field(name) else f"provenance.{name}"] = value
    for name, value in data.tags.items():
        if name in _TAGS or is_field(name):
            values[_TAGS.get(name, name)] = value
        elif not name.startswith("mlflow."):
            values[f"provenance.{name}"] = value
    return Row(f"mlflow/{info.run_id}", values)
