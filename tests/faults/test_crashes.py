"""Every part is killed at random while robots send: nothing acknowledged is lost, nothing counted twice."""

import os
from collections import Counter

import pytest
from faults.harness import (
    KINDS,
    WEB_PROCESSES,
    compare,
    internal_errors,
    killing,
    recoveries,
    sending,
    settle,
    stop,
    worst_gap,
)

from gapwatch.store.core.database import Database
from parts import make_project, reachable, start_service

SECONDS = float(os.environ.get("GAPWATCH_FAULT_SECONDS", "30"))
SEED = int(os.environ.get("GAPWATCH_FAULT_SEED", "20261116"))
LEAST_KILLS = max(14, round(SECONDS / 3))


# The last kill may leave what was sent for most of the time.
@pytest.mark.timeout(2 * SECONDS + 120)
def test_nothing_acknowledged_is_lost_or_counted_twice_whatever_is_killed(tmp_path, capsys):
    service = start_service(reachable(tmp_path) / "data", GAPWATCH_WEB_PROCESSES=str(WEB_PROCESSES))
    database = Database(service.database_url)
    try:
        project = make_project(service, database)
        with (
            sending(project, tmp_path / "ledger", senders=5, seed=SEED) as (ledger, tally),
            killing(service, seed=SEED, seconds=SECONDS, least=LEAST_KILLS) as killer,
        ):
            killer.join()
        folded_s = settle(service, project)
        acknowledged = ledger.read()
        found = compare(project, acknowledged, tally.sent)
        kills = Counter(kind for _, kind in killer.kills)
        measured = recoveries(killer, tally.acknowledged_at)
        down_s = max((recovery.down_s for recovery in measured), default=0.0)
        waiting_s = max((recovery.waiting_s for recovery in measured), default=0.0)
        with capsys.disabled():
            print(
                f"\n{kills.total()} kills ({', '.join(f'{n} {kind}' for kind, n in sorted(kills.items()))})"
                f" in {SECONDS:.0f} s: {len(acknowledged)} episodes acknowledged in {len(tally.acknowledged_at)} requests,"
                f" {tally.retried} retried ({tally.already_stored} of them stored before), {tally.repeated} repeated,"
                f" {tally.corrected} corrected, {tally.deleted} deleted;"
                f" {len(found.lost)} lost, {found.doubled} doubled, {len(found.rollups)} rollups differ;"
                f" all folded {folded_s:.0f} s after the last kill; worst gap {worst_gap(tally.acknowledged_at):.1f} s; {len(measured)} kills of Postgres measured:"
                f" down {down_s:.1f} s, acknowledging {waiting_s:.1f} s later at worst;"
                f" statuses {dict(tally.statuses)}, broken {dict(tally.broken)}"
            )
        # A harness that kills nothing proves nothing.
        assert set(kills) == set(KINDS)
        assert kills.total() >= LEAST_KILLS
        assert tally.retried > 0
        assert tally.repeated > 0
        assert tally.corrected > 0
        assert found.is_clean, found
        assert tally.surprises == []
        assert set(tally.statuses) <= {200, 201, 204, 404, 429, 503}
        assert internal_errors(service.log) == []
        assert waiting_s <= 5
        assert project.value("SELECT count(*) FROM rejected_records WHERE project_id = :p") == 0
    finally:
        database.close()
        code = stop(service)
    assert code == 0, service.log[-4000:]
