"""Leading categories after folding, and presents that are missing: a few a round, so that a large fleet cannot
hold up the worker.
"""

from __future__ import annotations

from dataclasses import asdict

import structlog

from gapwatch.answers.leading_categories import kept_now
from gapwatch.errors import ServiceUnavailable
from gapwatch.step_sizes import Turn
from gapwatch.store.core.database import Database
from gapwatch.store.fold import leads, presents

log = structlog.get_logger()

# A ledger takes some hundredths of a second.
AT_ONCE = 5


def fill_missing_presents(database: Database, turn: Turn) -> None:
    """Make the presents of what was stored before these were kept; a new deployment's comes with its fold."""
    while not turn.is_over() and database.run(presents.fill_missing):
        pass


def refresh_leads(database: Database) -> int:
    """Make those anew that are due, each in its own transaction; returns how many."""
    due = database.run(lambda connection: leads.due_leads(connection, AT_ONCE))
    for one in due:
        try:
            with database.transaction() as connection:
                kept = kept_now(connection, one.project_id, one.slug, one.asked_at)
                lead = None if kept.lead is None else asdict(kept.lead)
                leads.put_lead(connection, one, lead, (kept.sim_effect, kept.real_effect))
        except ServiceUnavailable:
            raise
        except Exception as error:
            # A list without its category is better than a worker that stumbles over it again and again.
            log.warning("no leading category", project_id=one.project_id, error=type(error).__name__)
            with database.transaction() as connection:
                leads.put_lead(connection, one, None)
    return len(due)
