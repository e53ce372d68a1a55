"""Queues that all projects share: one that has much to do keeps no other waiting."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from gapwatch.rollup.fold import fold_due_work
from gapwatch.step_sizes import Turn
from gapwatch.store.alerting import rewatches
from gapwatch.store.core.database import Database
from gapwatch.store.fold import episode_rows, leads


@pytest.fixture
def noisy_and_quiet(database: Database) -> Database:
    """Project 1 with sixty deployments, and project 2 with one that came later."""
    with database.transaction() as connection:
        for statement in (
            "INSERT INTO projects (slug, name) VALUES ('noisy', 'noisy'), ('quiet', 'quiet')",
            "INSERT INTO policies (project_id, name, version) VALUES (1, 'pick', '1'), (2, 'pick', '1')",
            "INSERT INTO tasks (project_id, name) VALUES (1, 'mug'), (2, 'mug')",
            "INSERT INTO deployments (project_id, slug, policy_id, task_id, described_at)"
            " SELECT 1, 'made-up-' || n, 1, 1, now() FROM generate_series(1, 60) n",
            "INSERT INTO deployments (project_id, slug, policy_id, task_id, described_at) VALUES (2, 'line', 1, 1, now())",
            "INSERT INTO presents (project_id, deployment_id, policy_id, since, body, led_at, computed_at)"
            " SELECT project_id, id, 1, now(), '{}', CASE project_id WHEN 2 THEN now() - interval '1 hour' END, now()"
            " FROM deployments",
            "INSERT INTO rewatches (project_id, deployment_id, due_at, last_at) SELECT project_id, id,"
            " now() - (3 - project_id) * interval '1 hour', now() FROM deployments",
        ):
            connection.exec_driver_sql(statement)
    return database


def test_leads_are_made_of_projects_in_turn(noisy_and_quiet):
    with noisy_and_quiet.transaction() as connection:
        assert [lead.project_id for lead in leads.due_leads(connection, 5)] == [1, 2, 1, 1, 1]


def test_histories_are_taken_in_order_of_projects_in_turn(noisy_and_quiet):
    with noisy_and_quiet.transaction() as connection:
        assert [place.project_id for place in rewatches.due_rewatches(connection)][:4] == [1, 2, 1, 1]


def test_a_batch_of_some_hundred_has_a_transaction_of_its_own(database):
    """Nobody knows what it costs before it is read: each of its episodes may be of a deployment of its own."""
    with database.transaction() as connection:
        connection.exec_driver_sql(
            "INSERT INTO projects (slug, name) VALUES ('noisy', 'noisy'), ('quiet', 'quiet')"
        )
        for project_id, episodes in ((1, 500), (2, 20)):
            connection.execute(
                text(
                    "INSERT INTO work (project_id, kind, episode_ids)"
                    " SELECT :p, 'fold', array_agg(gen_random_uuid()::text) FROM generate_series(1, :n)"
                ),
                {"p": project_id, "n": episodes},
            )
        assert episode_rows.lock_projects(connection, "fold", large=False) == [2]
        assert episode_rows.lock_projects(connection, "fold", large=True) == [1]


def test_a_fold_ends_with_its_turn_and_says_so(database):
    with database.transaction() as connection:
        connection.exec_driver_sql("INSERT INTO projects (slug, name) VALUES ('p', 'p')")
        connection.exec_driver_sql(
            "INSERT INTO work (project_id, kind, episode_ids) SELECT 1, 'fold', ARRAY['e' || n] FROM generate_series(1, 600) n"
        )
    over = Turn(-1)
    assert fold_due_work(database, over) == 250
    assert over.was_cut
    unbounded = Turn()
    assert fold_due_work(database, unbounded) == 350
    assert not unbounded.was_cut
