"""`/settings/quarantine`: records that were refused, each with a plain explanation of what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gapwatch.pages.frame import View, Visit
from gapwatch.store.write.name_budget import SpentBudget, spent_budgets
from gapwatch.store.write.quarantine import (
    MOST_BYTES,
    MOST_BYTES_A_MINUTE,
    MOST_RECORDS,
    OLDEST_DAYS,
    rejected_page,
)

PAGE = 50
LONGEST_SHOWN = 4000

# What a code means to the person who has to mend the sender.
EXPLAINED = {
    "bad-id": "The id has characters that an id cannot have, or invisible ones.",
    "bad-length": "A text is too long or too short.",
    "bad-link": "A link is not an https address.",
    "bad-name": "A name has characters that a name cannot have, or invisible ones.",
    "bad-time": "A time is not written as 2026-11-02T09:14:03Z, or lies before the year 2000.",
    "clock-skew": "The robot's clock is more than a day ahead. Set its clock, then send again.",
    "duplicate-key": "A key stands twice in one object; it is not clear which is meant.",
    "malformed-json": "The record is not valid JSON. It may have been cut off on the way.",
    "missing": "A required field is not there.",
    "missing-field": "A required field is not there.",
    "not-finite": "A number is NaN or infinite. Leave the field out instead.",
    "nul-character": "A text holds the character U+0000, which cannot be stored.",
    "offset-required": "A time has no offset, so its zone is unknown. Write it as 2026-11-02T09:14:03Z.",
    "out-of-range": "A number is larger or smaller than it can be.",
    "record-too-large": "The record is larger than 1 MiB. Keep raw data outside and send a link to it.",
    "too-deep": "The record is nested too deeply.",
    "too-many-items": "A list or object has more entries than its limit.",
    "too-many-names": "The key brought more new names in a day than it may. Often a number that changes with "
    "every episode stands where a name should. If the names are meant, raise GAPWATCH_NEW_NAMES_A_DAY.",
    "unknown-category": "The failure's category is none of the gap categories.",
    "unknown-field": "The record has a field that does not exist, often a typing error. It is refused so that a "
    "typo does not vanish silently.",
    "unknown-value": "A field has a word that it cannot have, such as an outcome that does not exist.",
    "wrong-type": "A field has the wrong type, for example a number written as text.",
}
OTHERWISE = "The record breaks a rule of the episode record; the lines below say which."


@dataclass(frozen=True)
class RefusedRecord:
    id: int
    received_at: str
    key_prefix: str
    code: str
    explanation: str
    errors: list[dict[str, Any]]
    record: str
    is_cut: bool


@dataclass(frozen=True)
class QuarantinePage:
    records: list[RefusedRecord]
    code: str | None
    older: str | None
    most: int
    days: int
    # Keys that brought more new names than they may.
    spent: list[SpentBudget]
    most_mb: int
    most_mb_a_minute: int


def show_quarantine(visit: Visit) -> View:
    query = visit.request.query_params
    before = query.get("after", "")
    before_id = int(before) if before.isascii() and before.isdecimal() and len(before) < 10 else None  # noqa: PLR2004
    code = query.get("code", "")[:64].replace("\0", "") or None
    rows = rejected_page(visit.transaction, visit.project_id, code, before_id, PAGE + 1)
    links = visit.frame.links
    older = None
    if len(rows) > PAGE:
        older = links.to("settings", "quarantine", code=code, after=rows[PAGE - 1]["id"])
    page = QuarantinePage(
        records=[_refused(row) for row in rows[:PAGE]],
        code=code,
        older=older,
        most=MOST_RECORDS,
        days=OLDEST_DAYS,
        spent=spent_budgets(visit.transaction, visit.project_id),
        most_mb=MOST_BYTES // 2**20,
        most_mb_a_minute=MOST_BYTES_A_MINUTE // 2**20,
    )
    return View("settings_quarantine.html", page)


def _refused(row: dict[str, Any]) -> RefusedRecord:
    return RefusedRecord(
        id=row["id"],
        received_at=row["received_at"],
        key_prefix=row["key_prefix"],
        code=row["code"],
        explanation=EXPLAINED.get(row["code"], OTHERWISE),
        errors=row["errors"],
        record=row["record"][:LONGEST_SHOWN],
        is_cut=len(row["record"]) > LONGEST_SHOWN,
    )
