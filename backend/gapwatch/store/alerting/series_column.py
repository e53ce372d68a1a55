"""A watched series as a column of episodes: the SQL of `watching.series.value_of`, or of one robot."""

from __future__ import annotations

from gapwatch.watching.series import COUNTS, OF_ROBOT

_COLUMNS = {
    "success": "CASE e.outcome WHEN 'success' THEN 1.0 WHEN 'failure' THEN 0.0 END",
    "reward": "e.reward",
    "duration": "e.duration_s",
    **{name: f"CASE WHEN e.{name} > 0 THEN 1.0 WHEN e.{name} = 0 THEN 0.0 END" for name in COUNTS},
}
_NAMED = {
    "signal": "e.signals[array_position(sn.names, {0})]",
    "metric": "e.metrics[array_position(mn.names, {0})]",
}


def series_column(series: str, parameter: str) -> tuple[str, dict[str, str]]:
    """The column of a series, over `e`, `r`, `sn` and `mn`, and its parameters; NULL for an unknown one."""
    kind, _, name = series.partition(":")
    stageless = series.partition("@")[0]
    robot = series.partition(OF_ROBOT)[2]
    if stageless in _COLUMNS and robot and "\0" not in robot:
        column = f"CASE WHEN r.name = CAST(:{parameter} AS text) THEN {_COLUMNS[stageless]} END"
        return f"CAST({column} AS float8)", {parameter: robot}
    if stageless in _COLUMNS:
        return f"CAST({_COLUMNS[stageless]} AS float8)", {}
    if kind not in _NAMED or "\0" in name:
        return "CAST(NULL AS float8)", {}
    column = _NAMED[kind].format(f"CAST(:{parameter} AS text)")
    return f"CAST({column} AS float8)", {parameter: name}
