"""`/settings/audit`: who changed what, from what to what; filtered, and as CSV."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from gapwatch.csv_cells import safe_cell
from gapwatch.pages.frame import View, Visit
from gapwatch.store.core.audit import AuditEntry, AuditFilter, audit, audit_actions, audit_page

PAGE = 100
# One file; the next begins below its last id. By bytes too: an entry may be long, and the file is in memory.
MOST_EXPORTED, MOST_EXPORTED_BYTES, EXPORTED_AT_ONCE = 50_000, 16 * 2**20, 500
LONGEST_WORD, LONGEST_NUMBER = 200, 10


@dataclass(frozen=True)
class AuditedChange:
    """One line of an entry: what was changed, from and to. Other facts of it have no `before`."""

    what: str
    before: str | None
    after: str


@dataclass(frozen=True)
class ShownEntry:
    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    changes: list[AuditedChange]


@dataclass(frozen=True)
class AuditPage:
    entries: list[ShownEntry]
    actions: list[str]
    wanted: AuditFilter
    older: str | None
    csv: str


def show_audit(visit: Visit) -> View | Response:
    query = visit.request.query_params

    def word(name: str) -> str:
        return query.get(name, "")[:LONGEST_WORD].replace("\0", "")

    wanted = AuditFilter(word("actor"), word("action"), word("subject"))
    mark = query.get("after", "")
    before_id = int(mark) if mark.isascii() and mark.isdecimal() and len(mark) < LONGEST_NUMBER else None
    if query.get("format") == "csv":
        return _csv(visit, wanted, before_id)
    entries = audit_page(visit.transaction, visit.project_id, wanted, before_id, PAGE + 1)
    links, asked = visit.frame.links, {name: value or None for name, value in asdict(wanted).items()}
    page = AuditPage(
        entries=[shown_entry(entry) for entry in entries[:PAGE]],
        actions=audit_actions(visit.transaction, visit.project_id),
        wanted=wanted,
        older=links.to("settings", "audit", **asked, after=entries[PAGE - 1].id) if len(entries) > PAGE else None,
        csv=links.to("settings", "audit", **asked, format="csv"),
    )
    return View("settings_audit.html", page)


def shown_entry(entry: AuditEntry) -> ShownEntry:
    changes: list[AuditedChange] = []
    for name, value in entry.details.items():
        if name == "changes" and isinstance(value, dict):
            changes += [
                AuditedChange(what, _words(both.get("from")), _words(both.get("to")))
                for what, both in value.items()
                if isinstance(both, dict)
            ]
        elif value not in (None, {}, []):
            changes.append(AuditedChange(name, None, _words(value)))
    return ShownEntry(entry.id, entry.at, entry.actor, entry.action, entry.subject, changes)


def _words(value: Any) -> str:
    if value is None:
        return "nothing"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _csv(visit: Visit, wanted: AuditFilter, before_id: int | None) -> Response:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["id", "at", "actor", "action", "subject", "details"])
    for _ in range(MOST_EXPORTED // EXPORTED_AT_ONCE):
        entries = audit_page(visit.transaction, visit.project_id, wanted, before_id, EXPORTED_AT_ONCE)
        for entry in entries:
            details = json.dumps(entry.details, ensure_ascii=False)
            row = [entry.id, entry.at.isoformat(), entry.actor, entry.action, entry.subject, details]
            writer.writerow([safe_cell(value) for value in row])
        if len(entries) < EXPORTED_AT_ONCE or buffer.tell() > MOST_EXPORTED_BYTES:
            break
        before_id = entries[-1].id
    audit(visit.transaction, visit.project_id, visit.actor, "audit.exported", "audit", filter=asdict(wanted))
    headers = {"Content-Disposition": f'attachment; filename="audit-{datetime.now(UTC):%Y-%m-%d}.csv"'}
    return Response(buffer.getvalue().encode(), 200, headers, "text/csv; charset=utf-8")
