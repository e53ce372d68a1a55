"""What an alert says in a sentence, and its evidence, fact by fact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gapwatch.pages.sentences.sentence import Part, Sentence, Words, percent_range, point_range, say, small, strong
from gapwatch.pages.words import (
    category_name,
    count,
    number,
    percent,
    percent_interval,
    point_interval,
    points,
    when,
)
from gapwatch.watching.series import RATE_SERIES


def headline(alert: Mapping[str, Any], changed_at: datetime | None, sentence: str) -> Sentence:
    """From what to what, where the evidence says so; else `sentence`, as it is sent to people."""
    evidence = alert["evidence"]
    reference, since = evidence.get("reference") or {}, evidence.get("since") or {}
    if is_share(alert["series"]) and "value" in reference and "value" in since:
        return _from_to(metric_of(alert["series"]), reference, since, changed_at, evidence.get("drop") or {})
    if alert["kind"] == "category" and evidence.get("interval"):
        costs = f"{points(evidence['contribution'])} points"
        name = category_name(evidence["category"])
        bounds = point_range(evidence["interval"])
        return say(strong(name), " costs ", strong(costs), " of success ", bounds, ".")
    return say(sentence[:1].upper() + sentence[1:])


def metric_of(series: str) -> str:
    """success@berlin → success"""
    return series.partition("@")[0]


def is_share(series: str) -> bool:
    return metric_of(series) in RATE_SERIES


def _from_to(
    metric: str,
    reference: Mapping[str, Any],
    since: Mapping[str, Any],
    changed_at: datetime | None,
    drop: Mapping[str, Any],
) -> Sentence:
    now = Part(f"{percent(since['value'])} %", "real")
    before = f"{percent(reference['value'])} %"
    words: list[Words]
    if reference.get("side") == "sim":
        of_sim = f"(n {count(reference['n'])})"
        words = [f"Real {metric} is ", now, " ", _size(since), " against ", Part(before, "sim"), " in simulation "]
        words.append(small(of_sim))
    else:
        words = [f"Real {metric} went from ", strong(before)]
        words += [" ", small(f"(n {count(reference['n'])})")] if "n" in reference else []
        words += [" to ", now, " ", _size(since)]
    words += [" since ", Part(when(changed_at), "strong")] if changed_at is not None else []
    words.append(".")
    if drop.get("interval"):
        words += [" That is ", strong(f"{points(drop['value'])} points"), " ", point_range(drop["interval"]), "."]
    return say(*words)


def _size(part: Mapping[str, Any]) -> Part:
    interval = f", {percent_range(part['interval'])}" if part.get("interval") else ""
    return small(f"(n {count(part['n'])}{interval})")


@dataclass(frozen=True)
class Fact:
    name: str
    value: Sentence


def evidence(alert: Mapping[str, Any]) -> list[Fact]:
    """What the detector held against what, as far as its evidence says."""
    measured, share = alert["evidence"], is_share(alert["series"])
    facts = [Fact("Series", say(alert["series"]))]
    if reference := measured.get("reference"):
        side = f", {reference['side']}" if "side" in reference else ""
        facts.append(Fact("Before", say(_value(reference, share), *_n(reference, side))))
    if since := measured.get("since"):
        facts.append(Fact("Since", say(_value(since, share), *_bounds(since, share), *_n(since))))
    if now := measured.get("now"):
        facts.append(Fact("Now", say(_value(now, share), *_n(now))))
    drop = measured.get("drop") or {}
    if "value" in drop:
        interval = (" ", small(point_interval(drop["interval"]))) if drop.get("interval") else ()
        facts.append(Fact("Drop", say(f"{points(drop['value'])} points", *interval)))
    if e_value := measured.get("e_value"):
        fires_at = (
            (" ", Part(f"fires at {number(measured['threshold'])}", "muted")) if "threshold" in measured else ()
        )
        facts.append(Fact("e-value", say(number(e_value), *fires_at)))
    if run_length := measured.get("arl"):
        often = f"at most once in {count(round(run_length))} episodes, however often it is looked at"
        facts.append(Fact("False alarms", say(often)))
    if statistic := measured.get("statistic"):
        facts.append(Fact("Method", say(statistic)))
    return facts


def _value(part: Mapping[str, Any], share: bool) -> str:
    value = part.get("value")
    if value is None:
        return "–"
    return f"{percent(value)} %" if share else number(value)


def _bounds(part: Mapping[str, Any], share: bool) -> tuple[Words, ...]:
    bounds = part.get("interval")
    if not bounds:
        return ()
    return (" ", small(percent_interval(bounds) if share else f"[{number(bounds[0])}, {number(bounds[1])}]"))


def _n(part: Mapping[str, Any], more: str = "") -> tuple[Words, ...]:
    return (" ", Part(f"n {count(part['n'])}{more}", "muted")) if "n" in part else ()
