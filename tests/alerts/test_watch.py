"""The watch: one transaction from folded episodes to alerts, in the order of arrival, each episode once."""

from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from alerts.stage import EVERY, START
from sqlalchemy import text

from gapwatch.alerts import watch
from gapwatch.alerts.watch import watch_due_episodes
from gapwatch.answers.sides import clustering_caution
from gapwatch.errors import Conflict
from gapwatch.incidents import alert_actions
from gapwatch.rollup.fold import fold_due_work
from gapwatch.store.alerting import watch_queue
from gapwatch.store.core.database import Database
from gapwatch.store.read import directory


def test_a_fall_opens_one_incident_with_one_notification_and_recovery_closes_it(stage):
    stage.add_channel()
    stage.fall()
    assert stage.alerts() == {"success-drift success": "firing", "stage-gate success@full": "firing"}
    stage.send()
    [notification] = stage.receiver.webhooks("trigger")
    assert notification["link"].startswith("https://gapwatch.example.com/incidents/")
    stage.recover()
    assert set(stage.alerts().values()) == {"resolved"}
    stage.send()
    assert [body["action"] for body in stage.receiver.webhooks()] == ["trigger", "resolve"]
    assert stage.rows("SELECT state FROM incidents") == [("resolved",)]


def test_a_history_that_fell_and_recovered_in_one_step_is_recorded_and_tells_nobody(stage):
    stage.add_channel()
    stage.accept([True] * 300 + [False] * 20 + [True] * 150)
    stage.watch()
    assert set(stage.alerts().values()) == {"resolved"}
    assert stage.deliveries() == []


def test_alerts_and_incidents_carry_the_time_of_the_change(stage):
    stage.fall()
    changed = dict(stage.rows("SELECT rule, changed_at FROM alerts"))
    fell_at = START + 300 * EVERY
    assert all(abs(at - fell_at) < 30 * EVERY for at in changed.values())
    [(incident_changed_at, opened_at)] = stage.rows("SELECT changed_at, opened_at FROM incidents")
    assert incident_changed_at == min(changed.values()) < opened_at


def test_watching_twice_or_at_the_same_time_changes_nothing(stage):
    stage.fall()
    before = stage.rows("SELECT rule, series, state, evidence FROM alerts ORDER BY id")
    states = stage.rows("SELECT rule, series, state FROM detectors ORDER BY 1, 2")
    assert watch_due_episodes(stage.database, "x") == 0
    assert stage.rows("SELECT rule, series, state, evidence FROM alerts ORDER BY id") == before
    assert stage.rows("SELECT rule, series, state FROM detectors ORDER BY 1, 2") == states


def test_a_step_that_dies_before_its_commit_leaves_nothing_and_is_done_again(stage):
    stage.happen(0.95, 300)
    stage.accept([False] * 30)
    fold_due_work(stage.database)
    stage.run(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;"
        "CREATE TRIGGER refuse BEFORE DELETE ON watch_due FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    assert watch_due_episodes(stage.database, "x") == 0
    assert stage.alerts() == {}
    assert stage.rows("SELECT episodes FROM watches") == [(300,)]
    stage.run("DROP TRIGGER refuse ON watch_due")
    watch_due_episodes(stage.database, "x")
    assert stage.alerts()["success-drift success"] == "firing"
    assert stage.rows("SELECT episodes FROM watches") == [(330,)]


def test_two_watchers_of_one_project_do_not_wait_for_each_other(stage):
    stage.accept([True] * 10)
    fold_due_work(stage.database)
    with stage.database.engine.connect() as first, stage.database.engine.connect() as second:
        assert watch_queue.try_lock_project(first, 1)
        assert not watch_queue.try_lock_project(second, 1)


def test_one_open_alert_a_series_whatever_two_workers_do(stage):
    stage.fall()
    with pytest.raises(Conflict, match="stored the same") as refused:
        stage.run(
            "INSERT INTO alerts (project_id, deployment_id, rule, kind, series, state, severity)"
            " VALUES (1, 1, 'success-drift', 'drift', 'success', 'firing', 'warning')"
        )
    assert "alerts_one_open_per_series" in str(refused.value.__cause__)
    with pytest.raises(Conflict, match="stored the same") as refused:
        stage.run(
            "INSERT INTO incidents (project_id, deployment_id, state, severity) VALUES (1, 1, 'firing', 'info')"
        )
    assert "incidents_one_open_per_deployment" in str(refused.value.__cause__)


def test_the_order_of_arrival_counts_also_when_folding_was_out_of_order(stage):
    """The second batch is folded first; the watch waits for the first one."""
    stage.accept([True] * 5)
    stage.accept([True] * 7)
    stage.run("UPDATE work SET due_at = now() + interval '1 hour' WHERE id = (SELECT min(id) FROM work)")
    stage.watch()
    assert stage.rows("SELECT count(*) FROM watch_due") == [(1,)]
    assert stage.rows("SELECT * FROM watches") == []
    stage.run("UPDATE work SET due_at = now()")
    stage.watch()
    assert stage.rows("SELECT episodes FROM watches") == [(12,)]


def test_a_batch_that_cannot_be_folded_does_not_hold_up_the_watch(stage):
    stage.accept([True] * 5)
    stage.accept([True] * 7)
    stage.run(
        "UPDATE work SET due_at = now() + interval '1 hour', attempts = 3 WHERE id = (SELECT min(id) FROM work)"
    )
    stage.watch()
    assert stage.rows("SELECT episodes FROM watches") == [(7,)]


def test_a_batch_of_many_deployments_is_watched_in_steps_and_none_of_them_waits_for_ever(stage):
    """Other projects wait for a step, however many deployments somebody makes up."""
    stage.run(
        "INSERT INTO deployments (project_id, slug, policy_id, task_id, described_at)"
        " SELECT 1, 'made-up-' || n, 1, 1, now() FROM generate_series(3, 12) n"
    )
    stage.accept_rows([{"success": True, "at": None, "d": d} for d in range(1, 13) for _ in range(3)])
    fold_due_work(stage.database)
    step = watch._step(1, 4 * watch.EPISODES_A_DEPLOYMENT, "x")
    assert stage.database.run(step)
    assert stage.rows("SELECT deployment_id, episodes FROM watches ORDER BY 1") == [(d, 3) for d in range(1, 5)]
    # Those that had their turn go on sending, and stand behind the others.
    stage.accept([True] * 5, deployment=1)
    fold_due_work(stage.database)
    assert stage.database.run(step)
    assert stage.database.run(step)
    assert stage.rows("SELECT deployment_id, episodes FROM watches ORDER BY 1") == [(d, 3) for d in range(1, 13)]
    assert stage.database.run(step)
    assert not stage.database.run(step)
    assert stage.rows("SELECT episodes FROM watches WHERE deployment_id = 1") == [(8,)]


def test_late_episodes_are_counted_and_judged_in_their_place(stage):
    stage.add_channel()
    stage.happen(0.95, 300)
    stage.accept([False] * 100, at=START - timedelta(days=3))
    stage.watch()
    assert stage.rows("SELECT episodes, late FROM watches") == [(400, 100)]
    # They were bad, and it was over before the first that was live: on record, and nobody is told.
    assert set(stage.alerts().values()) == {"resolved"}
    assert stage.deliveries() == []
    # A little out of order is how fleets send.
    stage.accept([True] * 10, at=START)
    stage.watch()
    assert stage.rows("SELECT episodes, late FROM watches") == [(410, 100)]


def test_folding_everything_anew_is_no_news(stage):
    stage.fall()
    states = stage.rows("SELECT rule, series, state FROM detectors ORDER BY 1, 2")
    stage.run("INSERT INTO work (project_id, kind, episode_ids) SELECT 1, 'fold', array_agg(id) FROM episodes")
    stage.watch()
    assert stage.rows("SELECT episodes FROM watches") == [(330,)]
    assert stage.rows("SELECT rule, series, state FROM detectors ORDER BY 1, 2") == states


def test_corrections_and_deletions_leave_detectors_alone(stage):
    stage.happen(0.95, 120)
    states = stage.rows("SELECT rule, series, state FROM detectors ORDER BY 1, 2")
    stage.run(
        "INSERT INTO work (project_id, kind, episode_ids, revision, sign) VALUES (1, 'fold', '{e000001}', 2, 1)"
    )
    stage.run(
        "INSERT INTO work (project_id, kind, episode_ids, revision, sign) VALUES (1, 'fold', '{e000001}', 1, -1)"
    )
    with stage.database.transaction() as connection:
        ids = list(connection.scalars(text("SELECT id FROM work")))
        watch_queue.hand_over(connection, ids)
    watch_due_episodes(stage.database, "x")
    assert stage.rows("SELECT rule, series, state FROM detectors ORDER BY 1, 2") == states
    assert stage.rows("SELECT count(*) FROM watch_due") == [(0,)]


def test_episodes_in_sessions_are_judged_by_session_and_a_restart_loses_none(stage):
    stage.add_channel()
    add_sims(stage)
    for number in range(40):
        stage.happen(0.95 if number < 25 else 0.1, 10, seed=number, session=f"s{number}")
    assert stage.alerts() == {
        "success-below-sim success": "firing",
        "success-drift success": "firing",
        "stage-gate success@full": "firing",
    }
    evidence = dict(stage.rows("SELECT rule, evidence FROM alerts"))
    assert evidence["success-drift"]["statistic"] == "e-detector over sessions"
    assert evidence["success-below-sim"]["statistic"] == "e-process over sessions"
    for one in evidence.values():
        assert one["sessions"]["n"] >= 5
        assert datetime.fromisoformat(one["change_point"]["at"]) > START + 230 * EVERY
    stage.send()
    told = [{tell["kind"] for tell in body["tells"]} for body in stage.receiver.webhooks("trigger")]
    # That the gate is missed too is the same fall.
    assert told == [{"performance"}]


def test_deployments_are_watched_apart(stage):
    stage.add_channel()
    stage.happen(0.95, 300, deployment=1)
    stage.happen(0.95, 300, deployment=2)
    stage.happen(0.1, 30, deployment=2)
    assert stage.rows("SELECT DISTINCT deployment_id FROM alerts") == [(2,)]
    stage.send()
    [notification] = stage.receiver.webhooks()
    assert notification["deployment"] == "oslo-1"


def test_a_violation_is_told_at_once_and_again_over_an_open_incident_because_it_is_more_severe(stage):
    stage.add_channel()
    stage.fall()
    stage.send()
    stage.accept([False], violations=1)
    stage.watch()
    stage.send()
    first, second = stage.receiver.webhooks("trigger")
    assert (first["severity"], second["severity"]) == ("warning", "critical")
    assert first["dedup_key"] == second["dedup_key"]
    assert "violations in one episode" in second["headline"]
    assert {reason["rule"] for reason in second["reasons"]} >= {"safety-violation", "success-drift"}


def test_what_joins_later_is_told_if_it_is_of_another_kind(stage):
    stage.add_channel()
    stage.happen(0.95, 300, interventions=0)
    stage.happen(0.1, 30, interventions=0)
    stage.send()
    stage.happen(0.1, 60, interventions=1)
    assert "interventions-drift interventions" in stage.alerts()
    stage.send()
    first, second = stage.receiver.webhooks("trigger")
    assert "interventions" in second["headline"]
    assert second["headline"].endswith("; it did worse before")
    assert second["incident"] == first["incident"]
    assert [tell["kind"] for tell in second["tells"]] == ["safety"]
    assert second["reasons"][0]["rule"] == "interventions-drift"
    assert stage.rows("SELECT count(DISTINCT incident_id) FROM alerts") == [(1,)]


def test_signals_alone_are_recorded_and_told_to_nobody(stage):
    stage.add_channel()
    stage.run(
        "INSERT INTO name_sets (project_id, content_hash, kind, names) VALUES (1, 'x', 'signal', ARRAY['force'])"
    )
    stage.accept([True] * 400)
    stage.run(
        "UPDATE episodes SET signal_names_id = 1, signals = ARRAY[CASE WHEN id < 'e000300' THEN 1.0 ELSE 5.0 END"
        " + 0.1 * (('x' || substr(md5(id), 1, 4))::bit(16)::int % 100) / 100]"
    )
    stage.watch()
    assert stage.alerts() == {"signal-drift signal:force": "firing"}
    assert stage.deliveries() == []
    stage.happen(0.05, 40)
    stage.send()
    [notification] = stage.receiver.webhooks()
    assert "signal-drift" in {reason["rule"] for reason in notification["reasons"]}


def test_a_signal_that_is_still_odd_does_not_keep_an_incident_open(stage):
    stage.add_channel()
    stage.fall()
    stage.send()
    stage.run(
        "INSERT INTO alerts (project_id, deployment_id, rule, kind, series, state, severity)"
        " VALUES (1, 1, 'signal-drift', 'drift', 'signal:force', 'firing', 'info')"
    )
    stage.recover()
    stage.send()
    assert [body["action"] for body in stage.receiver.webhooks()] == ["trigger", "resolve"]
    assert stage.alerts()["signal-drift signal:force"] == "firing"


def test_a_dry_run_records_and_tells_nobody(stage):
    stage.add_channel()
    stage.only("success-drift", "drift", dry_run=True)
    stage.fall()
    assert stage.alerts() == {"success-drift success": "firing"}
    assert stage.rows("SELECT dry_run, incident_id FROM alerts") == [(True, None)]
    assert stage.deliveries() == []


def test_a_rule_that_is_switched_off_ends_its_alerts(stage):
    stage.add_channel()
    stage.only("success-drift", "drift")
    stage.fall()
    stage.put_rule("success-drift", "drift", enabled=False)
    stage.happen(0.1, 5)
    assert stage.alerts() == {"success-drift success": "resolved"}


def test_a_breach_that_must_last_is_pending_first(stage):
    stage.add_channel()
    stage.only("success-drift", "drift", for_episodes=40)
    stage.fall()
    assert stage.alerts() == {"success-drift success": "pending"}
    assert stage.deliveries() == []
    # Everything is restarted: the count is in the database.
    again = Database(stage.database.url)
    stage.database = again
    stage.happen(0.1, 40)
    assert stage.alerts() == {"success-drift success": "firing"}
    again.close()


def test_the_same_trouble_again_has_regressed_and_getting_worse_is_escalating(stage):
    stage.only("success-drift", "drift")
    stage.happen(0.95, 300)
    stage.happen(0.5, 80)
    assert stage.rows("SELECT regressed, escalating FROM alerts") == [(False, False)]
    stage.happen(0.0, 120)
    assert stage.rows("SELECT regressed, escalating FROM alerts") == [(False, True)]
    [(evidence,)] = stage.rows("SELECT evidence FROM alerts")
    assert evidence["now"]["n"] > 120
    stage.happen(1.0, 300)
    stage.happen(0.1, 40)
    assert stage.rows("SELECT regressed FROM alerts ORDER BY id") == [(False,), (True,)]


def test_a_notification_tells_which_robots_which_conditions_and_what_happened_before(stage):
    stage.add_channel()
    stage.run(
        "INSERT INTO condition_sets (project_id, content_hash, levels) VALUES (1, 'a', '{\"lighting\": \"dim\"}')"
    )
    stage.run(
        "INSERT INTO condition_sets (project_id, content_hash, levels) VALUES (1, 'b', '{\"lighting\": \"day\"}')"
    )
    stage.happen(0.95, 300)
    change = START + 300 * EVERY
    stage.run(
        "INSERT INTO events (project_id, kind, at, title, deployment_id) VALUES (1, 'calibration', :at, 'camera 2', 1)",
        at=change - 5 * EVERY,
    )
    stage.accept([False] * 15, robot_id=1)
    stage.accept([True] * 6, robot_id=2)
    stage.accept([False] * 30, robot_id=1)
    # Day has 21 episodes, those of the second robot among them, and dim the 30 that all failed.
    stage.run(
        "UPDATE episodes SET condition_set_id = CASE WHEN id < 'e000321' THEN 2 ELSE 1 END WHERE id >= 'e000300'"
    )
    stage.watch()
    stage.send()
    [notification] = stage.receiver.webhooks()
    assert notification["robots"] == {"affected": ["ur5e-1"], "unaffected": ["ur5e-2"], "verdict": "alone"}
    assert notification["changes"][0]["title"] == "camera 2"
    assert notification["worst_slices"][0]["level"] == "dim"
    assert "Robots affected: ur5e-1; not: ur5e-2." in notification["text"]
    # Six episodes of the second robot are too few to hold the first against.
    assert notification["odd_one"] is None


def test_a_new_policy_version_is_named_as_what_changed(stage):
    stage.add_channel()
    stage.happen(0.95, 300)
    stage.accept([False] * 40, policy_id=2)
    stage.watch()
    stage.send()
    [notification] = stage.receiver.webhooks()
    assert notification["changes"][0]["title"] == "bin-pick 1.5.0 first seen"


def ledger_of(monkeypatch, certain, doubtful):
    """The ledger's answer, played: what it computes is tested where it is made."""
    parts = [
        SimpleNamespace(category=certain, contribution=0.3, unsure=0.0, interval=(0.1, 0.5)),
        SimpleNamespace(category=doubtful, contribution=0.2, unsure=0.0, interval=(-0.1, 0.5)),
    ]
    ledger = SimpleNamespace(categories=parts, unattributed=SimpleNamespace(contribution=0.1), warnings=())
    monkeypatch.setattr("gapwatch.answers.category_costs.answer_ledger", lambda _: ledger)


def add_sims(stage):
    """A thousand sim episodes of the first policy version, as the rollup has them."""
    stage.run(
        "INSERT INTO simulators (project_id, name, version) VALUES (1, 'mujoco', '3');"
        "INSERT INTO rollup_counts (project_id, domain, source_id, policy_id, task_id, tier, bucket_at, successes,"
        " failures, aborted, abandoned) VALUES (1, 'sim', 1, 1, 1, 'month', '2026-11-01', 950, 50, 0, 0)"
    )


def test_a_category_that_costs_too_much_is_named_and_ends_with_the_drop(stage, monkeypatch):
    ledger_of(monkeypatch, "visual", "latency_timing")
    add_sims(stage)
    stage.add_channel()
    stage.happen(0.95, 300)
    stage.happen(0.1, 60)
    assert stage.alerts()["gap-category visual"] == "firing"
    assert "gap-category latency_timing" not in stage.alerts()
    stage.send()
    [notification] = stage.receiver.webhooks()
    assert notification["category"]["category"] == "visual"
    assert "gap-category" in {reason["rule"] for reason in notification["reasons"]}
    stage.recover()
    assert stage.alerts()["gap-category visual"] == "resolved"


def test_a_ledger_that_fails_does_not_keep_back_the_notification(stage, monkeypatch):
    def broken(_):
        raise ZeroDivisionError

    monkeypatch.setattr("gapwatch.answers.category_costs.answer_ledger", broken)
    stage.add_channel()
    stage.fall()
    stage.send()
    [notification] = stage.receiver.webhooks()
    assert notification["category"] is None


def test_a_person_who_resolves_too_early_is_told_again(stage):
    stage.add_channel()
    stage.only("success-drift", "drift", flap_minutes=0)
    stage.fall()
    stage.send()
    [(alert_id,)] = stage.rows("SELECT id FROM alerts")
    with stage.database.transaction() as connection:
        assert alert_actions.resolve(connection, 1, alert_id, "anna", "fixed")
    stage.send()
    stage.happen(0.1, 40)
    stage.send()
    assert [body["action"] for body in stage.receiver.webhooks()] == ["trigger", "resolve", "trigger"]
    keys = [body["dedup_key"] for body in stage.receiver.webhooks()]
    assert keys[0] == keys[1] != keys[2]


def test_a_deployment_whose_successes_come_in_runs_says_so_and_how_to_mend_it(stage):
    # Runs of thirty without a failure and of ten with five: far more alike than chance has them.
    stage.accept(([True] * 30 + [True, False] * 5) * 12)
    stage.watch()
    [(slug, deployment_id, policy_id)] = stage.rows(
        "SELECT d.slug, d.id, d.policy_id FROM deployments d JOIN watches w ON w.deployment_id = d.id"
    )
    with stage.database.engine.connect() as connection:
        found = directory.find_subject(connection, 1, slug)
        assert watch_queue.sim_cells(connection, 1, deployment_id, policy_id) == []
    assert found is not None
    between, effect = found[1].clusters
    assert between == "runs of 10 episodes"
    assert effect > 2
    [caution] = clustering_caution(found[1].clusters)
    assert caution.code == "successes-in-runs"
    assert "Name a `session`" in caution.message
