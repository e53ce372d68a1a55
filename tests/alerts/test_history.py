"""Imports of history: the same alerts and incidents in any order, with their true times, and hardly a word."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from gapwatch.incidents import alert_actions
from gapwatch.notation import count
from gapwatch.store.alerting import alert_list, history_rows

NOW = datetime.now(UTC).replace(microsecond=0)
ALERTS = """
SELECT d.slug, a.rule, a.series, a.state, a.opened_at, a.changed_at, a.resolved_at, a.regressed, a.evidence
FROM alerts a JOIN deployments d ON d.project_id = a.project_id AND d.id = a.deployment_id
ORDER BY d.slug, a.opened_at, a.rule, a.series
"""
INCIDENTS = """
SELECT d.slug, i.state, i.severity, i.opened_at, i.changed_at, i.resolved_at,
       (SELECT array_agg(a.rule || ' ' || a.series || ' ' || a.opened_at ORDER BY a.opened_at, a.rule, a.series)
        FROM alerts a WHERE a.project_id = i.project_id AND a.incident_id = i.id)
FROM incidents i JOIN deployments d ON d.project_id = i.project_id AND d.id = i.deployment_id
ORDER BY d.slug, i.opened_at
"""
EMPTIED = (
    "alert_transitions, alerts, delivery_attempts, deliveries, notified_reasons, incident_history, incidents, episodes,"
    " work, watch_due, watches, detectors, presence, rewatches, backfills"
)


def past(*stretches, days=40, a_day=24, deployment=1, seed=1, until=NOW):
    """Episodes of two robots until now; each stretch is a success rate and the day before the end it begins at."""
    generator = np.random.default_rng([seed, deployment])
    episodes = []
    for number in range(days * a_day):
        before_end = days - (number + 0.5) / a_day
        rate = next(rate for rate, begins in reversed(stretches) if before_end <= begins)
        episodes.append(
            {
                "id": f"{deployment}-{number:06}",
                "d": deployment,
                "at": until - timedelta(days=before_end),
                "success": bool(generator.random() < rate),
                "robot_id": 1 + int(generator.integers(2)),
                "reward": float(generator.normal(rate, 0.1)),
                "interventions": int(generator.random() < 0.05),
            }
        )
    return episodes


def bring(stage, episodes, batch=200, watch_every=1):
    """Import in this order, with a watch now and then, and at last when everything is in."""
    for number, first in enumerate(range(0, len(episodes), batch)):
        stage.accept_rows(episodes[first : first + batch])
        if number % watch_every == 0:
            stage.watch()
    stage.watch()
    let_history_settle(stage)


def let_history_settle(stage):
    stage.run("UPDATE rewatches SET due_at = now() WHERE due_at IS NOT NULL")
    stage.watch()


def tell(stage):
    """The import is over; its line goes out."""
    stage.back_date("backfills", "last_at", timedelta(minutes=1))
    stage.keep_time()
    stage.send()
    return [got.json for got in stage.receiver.got]


def shuffled(episodes, seed=5):
    return [episodes[i] for i in np.random.default_rng(seed).permutation(len(episodes))]


ORDERS = {
    "by time": lambda episodes: sorted(episodes, key=lambda e: e["at"]),
    "by robot": lambda episodes: sorted(episodes, key=lambda e: (e["robot_id"], e["at"])),
    "by deployment": lambda episodes: sorted(episodes, key=lambda e: (e["d"], e["at"])),
    "reversed": lambda episodes: sorted(episodes, key=lambda e: e["at"], reverse=True),
    "random": shuffled,
}


def test_the_same_alerts_and_incidents_with_the_same_times_in_any_order_and_batches_of_any_size(stage):
    stage.add_channel()
    episodes = past((0.92, 40), (0.5, 25), (0.92, 20), (0.4, 6)) + past((0.9, 40), deployment=2)
    seen = {}
    for (name, order), (batch, every) in zip(
        ORDERS.items(), [(500, 1), (130, 2), (97, 3), (333, 1), (211, 4)], strict=True
    ):
        stage.run(f"TRUNCATE {EMPTIED}")
        bring(stage, order(episodes), batch, every)
        seen[name] = (stage.rows(ALERTS), stage.rows(INCIDENTS))
        assert stage.rows("SELECT sum(episodes) FROM watches") == [(len(episodes),)]
        assert len(stage.rows("SELECT 1 FROM deliveries")) == 0, name
    first = seen["by time"]
    for name, result in seen.items():
        assert result == first, name
    alerts, incidents = first
    assert {alert[0] for alert in alerts} == {"berlin-line-3"}
    fell, fell_again = (NOW - timedelta(days=days) for days in (25, 6))
    over, open_ = [incident for incident in incidents if incident[2] != "info"]
    assert over[1] == "resolved" and open_[1] == "firing"
    assert abs(over[4] - fell) < timedelta(days=2) and over[3] >= over[4]
    assert NOW - timedelta(days=20) < over[5] < NOW - timedelta(days=12)
    assert abs(open_[4] - fell_again) < timedelta(days=1) and open_[3] < NOW - timedelta(days=3)


def test_what_is_over_tells_nobody(stage):
    stage.add_channel()
    bring(stage, past((0.92, 40), (0.4, 25), (0.92, 20)))
    assert set(stage.alerts().values()) == {"resolved"}
    assert tell(stage) == []
    assert stage.deliveries() == []
    [(opened, resolved, changed)] = stage.rows("SELECT opened_at, resolved_at, changed_at FROM incidents")
    assert changed <= opened < resolved < NOW - timedelta(days=10)


def add_sims(stage):
    stage.run(
        "INSERT INTO simulators (project_id, name, version) VALUES (1, 'mujoco', '3');"
        "INSERT INTO rollup_counts (project_id, domain, source_id, policy_id, task_id, tier, bucket_at, successes,"
        " failures, aborted, abandoned) VALUES (1, 'sim', 1, 1, 1, 'month', '2026-11-01', 1900, 100, 0, 0)"
    )


@pytest.mark.parametrize("order", ["by time", "by robot", "random"])
def test_what_was_so_from_the_first_day_pages_nobody(stage, order):
    add_sims(stage)
    stage.add_channel()
    stage.add_channel("/log", min_severity="info")
    bring(stage, ORDERS[order](past((0.7, 40))))
    assert stage.alerts()["success-below-sim success"] == "firing"
    [line] = tell(stage)
    # Only who wants to know everything.
    assert line["severity"] == "info"
    assert line["import"]["from_the_first_day"] == ["berlin-line-3"]
    assert stage.receiver.got[0].path == "/log"
    # It stays told: more of the same is no news.
    stage.happen(0.7, 60, at=NOW)
    stage.send()
    assert len(stage.receiver.got) == 1


def test_one_line_a_project_tells_what_is_wrong_now(stage):
    stage.add_channel()
    both = past((0.92, 40), (0.4, 6)) + past((0.92, 40), (0.3, 4), deployment=2)
    bring(stage, ORDERS["by robot"](both))
    [line] = tell(stage)
    assert line["action"] == "trigger" and line["severity"] == "warning"
    assert line["headline"].startswith(
        f"Import of {count(len(both))} episodes: 2 deployments are wrong now: oslo-1, berl"
    )
    assert line["link"] == "https://gapwatch.example.com/alerts"
    assert "berlin-line-3: success 9" in line["text"] and "since" in line["text"]
    assert line["import"]["changed"] == ["oslo-1", "berlin-line-3"]
    # Told once: neither the clock nor more of the same tells again.
    assert len(tell(stage)) == 1
    stage.happen(0.4, 40, at=NOW)
    stage.send()
    assert len(stage.receiver.got) == 1
    told = stage.rows(
        "SELECT paged_at IS NOT NULL, paged_severity, told_reasons FROM incidents WHERE state = 'firing'"
    )
    assert [row[:2] for row in told] == [(True, "warning")] * 2
    assert all("performance" in row[2] for row in told)
    # Each of them was told so, and says it; one that was over before was not.
    for (incident,) in stage.rows("SELECT id FROM incidents WHERE state = 'firing'"):
        [delivery] = deliveries_of(stage, incident)
        assert (delivery["reason"], delivery["state"], delivery["incident"]) == ("import", "sent", None)
        assert delivery["headline"] == line["headline"]
    stage.run("UPDATE incidents SET state = 'resolved', resolved_at = now() - interval '1 day'")
    assert [deliveries_of(stage, number) for (number,) in stage.rows("SELECT id FROM incidents")] == [[], []]


def deliveries_of(stage, incident):
    with stage.database.transaction() as connection:
        return alert_list.deliveries_page(
            connection, 1, incident=incident, channel=None, state=None, before_id=None, limit=10
        )


def test_simulation_that_comes_after_its_reality_is_what_it_is_compared_with(stage):
    stage.add_channel()
    bring(stage, past((0.7, 40)))
    assert "success-below-sim success" not in stage.alerts()
    stage.run("INSERT INTO simulators (project_id, name, version) VALUES (1, 'mujoco', '3')")
    stage.run(
        "INSERT INTO episodes (project_id, id, started_at, policy_id, task_id, simulator_id, domain, outcome,"
        " content_hash) SELECT 1, 's' || n, now() - interval '50 days', 1, 1, 1, 'sim',"
        " CASE WHEN n % 20 = 0 THEN 'failure' ELSE 'success' END, '' FROM generate_series(1, 2000) n;"
        "INSERT INTO work (project_id, kind, episode_ids)"
        " SELECT 1, 'fold', array_agg(id) FROM episodes WHERE domain = 'sim'"
    )
    stage.watch()
    let_history_settle(stage)
    assert stage.alerts()["success-below-sim success"] == "firing"
    assert tell(stage) == []


def test_what_an_import_opened_gets_worse_and_ends_as_usual(stage):
    stage.add_channel()
    bring(stage, past((0.92, 40), (0.4, 6)))
    [line] = tell(stage)
    # More severe than what the line told.
    stage.accept([False], at=NOW, violations=1)
    stage.watch()
    stage.send()
    _, page = stage.receiver.webhooks()
    assert page["severity"] == "critical" and page["dedup_key"] != line["dedup_key"]


def test_the_line_ends_when_all_of_it_is_over_and_only_where_it_arrived(stage):
    stage.only("success-drift", "drift")
    stage.add_channel()
    start, end = (f"{NOW + timedelta(hours=hours):%H:%M}" for hours in (-2, 2))
    stage.add_channel("/asleep", quiet_hours={"start": start, "end": end})
    bring(stage, past((0.92, 40), (0.4, 6)))
    tell(stage)
    stage.happen(0.97, 200, at=NOW)
    assert stage.rows("SELECT state FROM incidents") == [("resolved",)]
    stage.keep_time()
    stage.send()
    by_path = {}
    for got in stage.receiver.taken:
        by_path.setdefault(got.path, []).append((got.json["action"], got.json["dedup_key"]))
    assert by_path == {"/hook": [("trigger", "gapwatch/fleet/import-1"), ("resolve", "gapwatch/fleet/import-1")]}


def test_a_channel_hears_only_of_deployments_that_are_its_own(stage):
    stage.add_channel("/oslo", match={"deployment": ["oslo-1"]})
    bring(stage, past((0.92, 40), (0.4, 6)) + past((0.92, 40), (0.3, 4), deployment=2))
    [line] = tell(stage)
    assert line["import"]["changed"] == ["oslo-1"]


def test_data_that_ended_long_ago_leaves_nothing_open_and_is_found_again_if_it_goes_on(stage):
    stage.add_channel()
    bring(stage, past((0.92, 40), (0.4, 6), until=NOW - timedelta(days=30)))
    assert set(stage.alerts().values()) == {"resolved"}
    assert tell(stage) == []
    [(comment,)] = stage.rows("SELECT DISTINCT comment FROM alert_transitions WHERE comment IS NOT NULL")
    assert comment == "history ends here"
    # The robot is switched on again and is as bad as it was.
    stage.happen(0.3, 80, at=NOW)
    assert "firing" in stage.alerts().values()
    stage.send()
    assert len(stage.receiver.webhooks("trigger")) == 1


def test_a_live_page_goes_out_while_an_import_is_under_way(stage):
    stage.add_channel()
    stage.happen(0.95, 300)
    stage.accept_rows(past((0.9, 60), days=60, until=NOW - timedelta(days=20))[:400])
    stage.watch()
    stage.accept_rows(past((0.9, 60), days=60, seed=2, until=NOW - timedelta(days=25))[400:401])
    stage.happen(0.1, 40, seed=2)
    stage.send()
    [page] = stage.receiver.webhooks("trigger")
    assert page["deployment"] == "berlin-line-3" and "import" not in page
    # And is neither withdrawn nor told again when all of the history is in order.
    let_history_settle(stage)
    stage.send()
    assert [body["action"] for body in stage.receiver.webhooks()] == ["trigger"]
    assert stage.rows("SELECT count(*) FROM incidents WHERE state = 'firing'") == [(1,)]


def test_history_before_the_past_of_a_deployment_that_is_watched_pages_nobody(stage):
    stage.add_channel()
    stage.happen(0.95, 300)
    bring(stage, ORDERS["random"](past((0.5, 40), (0.95, 10), until=NOW - timedelta(days=2))))
    assert "firing" not in stage.alerts().values()
    assert tell(stage) == []
    # Live data afterwards pages as usual. Days of that past differ, so that it takes more than a few episodes,
    # and how many depends on how the hour of this run cuts it into days.
    stage.happen(0.1, 150, seed=2)
    stage.send()
    [page] = stage.receiver.webhooks("trigger")
    assert page["deployment"] == "berlin-line-3"


def two_days_later(stage):
    """What was live is what was live two days ago."""
    stage.back_date("episodes", "started_at", timedelta(days=2))
    stage.back_date("episodes", "received_at", timedelta(days=2))
    stage.back_date("watches", "newest_started_at", timedelta(days=2))


def off_line(rate, n, seed=3):
    """What one robot kept while it was off line for two days until now."""
    outcomes = np.random.default_rng(seed).random(n) < rate
    return [
        {
            "id": f"spool-{number:05}",
            "at": NOW - timedelta(days=2) + number * timedelta(days=2) / n,
            "success": bool(success),
            "robot_id": 2,
        }
        for number, success in enumerate(outcomes)
    ]


def test_a_robot_that_was_off_line_for_two_days_is_judged_with_all_its_episodes_and_paged(stage):
    stage.add_channel()
    stage.happen(0.95, 300)
    two_days_later(stage)
    stage.accept_rows(off_line(0.2, 80))
    stage.watch()
    let_history_settle(stage)
    assert stage.rows("SELECT episodes FROM watches") == [(380,)]
    stage.send()
    [page] = stage.receiver.webhooks("trigger")
    assert page["deployment"] == "berlin-line-3" and "import" not in page


def test_a_robot_that_was_off_line_and_is_well_again_is_recorded_and_not_paged(stage):
    stage.add_channel()
    stage.happen(0.95, 300)
    two_days_later(stage)
    spool = off_line(0.2, 200)
    for episode in spool[60:]:
        episode["success"] = True
    stage.accept_rows(spool)
    stage.watch()
    let_history_settle(stage)
    assert set(stage.alerts().values()) == {"resolved"}
    stage.send()
    assert stage.receiver.got == []


def test_late_data_that_show_what_the_line_has_told_are_no_news(stage):
    stage.add_channel()
    bring(stage, past((0.92, 40), (0.4, 6)))
    tell(stage)
    for column in ("last_at", "last_import_at", "done_at"):
        stage.back_date("rewatches", column, timedelta(hours=3))
    stage.accept_rows(off_line(0.4, 60))
    stage.watch()
    let_history_settle(stage)
    assert stage.rows("SELECT is_import FROM rewatches") == [(False,)]
    stage.send()
    assert len(stage.receiver.got) == 1
    assert stage.rows("SELECT count(*) FROM incidents WHERE state = 'firing'") == [(1,)]


def test_what_people_took_on_stays_theirs_when_more_history_comes(stage):
    stage.add_channel()
    episodes = past((0.92, 40), (0.4, 6))
    even, odd = episodes[::2], episodes[1::2]
    bring(stage, even)
    [(alert_id, incident_id)] = stage.rows(
        "SELECT id, incident_id FROM alerts WHERE rule = 'success-drift' AND state = 'firing'"
    )
    with stage.database.transaction() as connection:
        assert alert_actions.acknowledge(connection, 1, alert_id, "anna", "looking")
    bring(stage, odd)
    assert stage.rows("SELECT state, acknowledged_by FROM alerts WHERE id = :id", id=alert_id) == [
        ("acknowledged", "anna")
    ]
    assert stage.rows("SELECT id, acknowledged_by FROM incidents WHERE state <> 'resolved'") == [
        (incident_id, "anna")
    ]
    open_ = stage.rows("SELECT rule, series, count(*) FROM alerts WHERE state <> 'resolved' GROUP BY 1, 2")
    assert all(count == 1 for _, _, count in open_)


def test_what_was_taken_on_in_the_time_of_a_story_has_its_times(stage):
    stage.add_channel()
    bring(stage, past((0.92, 40), (0.4, 6)))
    tell(stage)
    [(incident,)] = stage.rows("SELECT id FROM incidents WHERE state = 'firing'")
    [(alert,)] = stage.rows("SELECT min(id) FROM alerts WHERE incident_id = :i", i=incident)
    with stage.database.transaction() as connection:
        assert alert_actions.acknowledge(connection, 1, alert, "anna", "on it")
        history_rows.date_acknowledgement(connection, 1, incident, timedelta(minutes=40))
    [(opened, taken, state)] = stage.rows("SELECT opened_at, acknowledged_at, state FROM incidents")
    assert taken - opened == timedelta(minutes=40) and state == "acknowledged"
    times = stage.rows("SELECT acknowledged_at, state_since, opened_at FROM alerts WHERE state = 'acknowledged'")
    assert times and all(at == since and opened <= at < NOW - timedelta(days=1) for at, since, opened in times)
    lines = stage.rows("SELECT at FROM alert_transitions WHERE input = 'acknowledge'")
    assert lines and all(at < NOW - timedelta(days=1) for (at,) in lines)


def test_what_a_person_resolved_is_not_opened_by_late_episodes(stage):
    stage.only("success-drift", "drift")
    stage.happen(0.95, 300)
    stage.happen(0.1, 30, seed=2)
    [(alert_id,)] = stage.rows("SELECT id FROM alerts")
    with stage.database.transaction() as connection:
        assert alert_actions.resolve(connection, 1, alert_id, "anna", "known")
    stage.accept([True] * 5, at=NOW - timedelta(days=2))
    stage.watch()
    let_history_settle(stage)
    assert stage.rows("SELECT id, state FROM alerts") == [(alert_id, "resolved")]
    # It is still so: a restarted detector finds it again.
    stage.happen(0.1, 40, seed=3, at=datetime.now(UTC))
    assert [state for _, state in stage.rows("SELECT id, state FROM alerts ORDER BY id")] == ["resolved", "firing"]


def test_a_trickle_of_late_episodes_is_put_in_order_ever_more_seldom(stage):
    stage.happen(0.95, 300)
    due = []
    for _ in range(6):
        stage.accept([True], at=NOW - timedelta(days=2))
        stage.watch()
        [(waits,)] = stage.rows("SELECT extract(epoch FROM due_at - now()) FROM rewatches")
        due.append(0.0 if waits is None else float(waits))
        let_history_settle(stage)
    assert due[0] == 0 and due[1] > 0
    assert due[-1] > 8 * due[1]
    assert stage.rows("SELECT times, episodes, due_at FROM rewatches") == [(6, 0, None)]
    # After an hour of calm it is prompt again.
    stage.back_date("rewatches", "last_at", timedelta(hours=2))
    stage.accept([True], at=NOW - timedelta(days=2))
    stage.watch()
    assert stage.rows("SELECT times, due_at FROM rewatches") == [(1, None)]
