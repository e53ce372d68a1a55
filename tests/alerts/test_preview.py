"""A rule tried on what is stored: it says of the past what the watch found live."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from alerts.rhythms import day_shift
from alerts.stage import EVERY, START
from alerts.test_watch import add_sims, ledger_of

from gapwatch.answers.rule_preview import try_rule
from gapwatch.watching.kinds import read_params
from gapwatch.watching.rules import Rule


def preview(stage, kind, days=90, **params):
    rule = Rule("preview", kind, read_params(kind, params), "info")
    with stage.database.reading(stage.project_id) as connection:
        found = try_rule(connection, 1, rule, days, datetime.now(UTC))
    return {one["deployment"]: one["firings"] for one in found["deployments"]}


def test_a_category_is_found_as_it_was_live(stage, monkeypatch):
    ledger_of(monkeypatch, "visual", "latency_timing")
    add_sims(stage)
    stage.happen(0.95, 300)
    for n in range(6):
        stage.happen(0.1, 10, seed=n)
    stage.recover()
    [firing] = preview(stage, "category", category=["visual"])["berlin-line-3"]
    [(evidence, state)] = stage.rows("SELECT evidence, state FROM alerts WHERE rule = 'gap-category'")
    assert firing["evidence"] == evidence
    assert state == "resolved"
    assert START + 300 * EVERY < firing["fired_at"] < firing["cleared_at"]


def test_a_category_of_an_earlier_policy_version_is_asked_of_that_version(stage, monkeypatch):
    asked = []

    def remember(comparison):
        asked.append(comparison.subject.version)
        return SimpleNamespace(categories=())

    monkeypatch.setattr("gapwatch.answers.category_costs.answer_ledger", remember)
    add_sims(stage)
    stage.happen(0.95, 100)
    stage.happen(0.1, 100, policy_id=2)
    stage.run("UPDATE rollup_counts SET policy_id = 2 WHERE domain = 'sim'")
    assert preview(stage, "category")["berlin-line-3"] == []
    assert set(asked) == {"1.5.0"}


def test_a_silence_is_found_as_it_was_live(stage):
    [(now,)] = stage.rows("SELECT now()")
    times = day_shift(now, quiet=timedelta(minutes=40))
    for at in times:
        stage.accept([True], at=at)
    stage.run(
        "UPDATE episodes SET received_at = started_at; UPDATE work w SET created_at = e.started_at"
        " FROM episodes e WHERE e.id = w.episode_ids[1]"
    )
    while stage.rows("SELECT 1 FROM work LIMIT 1"):
        stage.watch()
    stage.listen_for_silence()
    # Before it, the first night was unknown.
    *_, firing = preview(stage, "no_data")["berlin-line-3"]
    [(series, evidence)] = stage.rows("SELECT series, evidence FROM alerts")
    assert (firing["series"], firing["evidence"]) == (series, evidence)
    assert firing["cleared_at"] is None
    assert firing["fired_at"] - times[-1] < timedelta(minutes=31)
    assert all(one["cleared_at"] for one in preview(stage, "no_data", after_minutes=180)["berlin-line-3"])


def test_late_episodes_are_previewed_in_their_place_as_the_watch_takes_them(stage):
    stage.happen(0.95, 300)
    stage.accept([False] * 100, at=START - timedelta(days=3))
    stage.watch()
    [alert] = stage.rows("SELECT rule, series, opened_at, resolved_at FROM alerts")
    assert alert[0] == "stage-gate"
    [firing] = preview(stage, "stage_gate")["berlin-line-3"]
    assert (firing["series"], firing["fired_at"], firing["cleared_at"]) == alert[1:]
