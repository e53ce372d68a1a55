"""People's categories and notes on episodes. Former versions are kept, and the numbers follow.

The content hash stays that of the sender's record, so a late retry of it is a duplicate and no conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, insert, text

from gapwatch.store.tables.access import AuditEntryTable
from gapwatch.store.tables.episodes import EpisodeTable

Refusal = Literal["not stored", "did not fail", "same already", "changed since"]

_COLUMNS = ", ".join(column.name for column in EpisodeTable.__table__.columns)
# The same lock as a correction by the sender takes; in one order, so that two people never wait for each other.
_LOCK = text("""
SELECT pg_advisory_xact_lock(:p, key) FROM (
    SELECT DISTINCT hashtext(id) AS key FROM unnest(CAST(:ids AS text[])) AS id ORDER BY 1) AS keys
""")
_READ = text("""
SELECT id, outcome, revision, failure_category AS category, failure_note AS note FROM episodes
WHERE project_id = :p AND id = ANY(:ids)
""")
_KEEP = text(f"""
INSERT INTO episode_revisions ({_COLUMNS}, ended_by, actor)
SELECT {_COLUMNS}, 'correction', :actor FROM episodes WHERE project_id = :p AND id = ANY(:ids)
""")  # noqa: S608 - made of our own column names
_LABEL = text("""
UPDATE episodes SET revision = revision + 1, failure_category = changed.category, failure_note = changed.note
FROM unnest(CAST(:ids AS text[]), CAST(:categories AS text[]), CAST(:notes AS text[]))
    AS changed (id, category, note)
WHERE episodes.project_id = :p AND episodes.id = changed.id
""")
_FOLLOW = text("""
INSERT INTO work (project_id, kind, episode_ids, revision, sign)
SELECT :p, 'fold', ARRAY[moved.id], moved.revision + step.later, step.sign
FROM unnest(CAST(:ids AS text[]), CAST(:revisions AS int[])) AS moved (id, revision),
     (VALUES (0, -1), (1, 1)) AS step (later, sign)
""")
_FIND = text("""
SELECT actor, details FROM audit_entries
WHERE project_id = :p AND id = :id AND action IN ('episodes.labelled', 'episodes.unlabelled')
""")
_BEFORE = text("""
SELECT r.id, r.failure_category AS category, r.failure_note AS note
FROM unnest(CAST(:ids AS text[]), CAST(:revisions AS int[])) AS was (id, revision)
JOIN episode_revisions r ON r.project_id = :p AND r.id = was.id AND r.revision = was.revision
""")


@dataclass(frozen=True)
class Label:
    category: str | None
    note: str | None


@dataclass(frozen=True)
class Labelling:
    """What one save did, as it was written down: enough to tell of it later, and to take it back.

    `changed` are episodes with their revision before; `category` is what they were given, None if taken off.
    """

    id: int
    actor: str
    category: str | None
    is_undo: bool
    # Whether categories changed, or notes only.
    is_category: bool
    changed: Mapping[str, int]
    refused: Mapping[str, Refusal]


@dataclass(frozen=True)
class _LabelledEpisode:
    id: str
    outcome: str
    revision: int
    label: Label


def label_episode(
    connection: Connection, project_id: int, episode_id: str, *, category: str | None, note: str | None, actor: str
) -> int:
    """Set the category and the note of one episode, and return the number of the labelling."""
    stored = _lock_and_read(connection, project_id, [episode_id])
    changes = {episode_id: Label(category, note)}
    return _save(connection, project_id, stored, changes, actor=actor, category=category)


def label_episodes(
    connection: Connection, project_id: int, episode_ids: Iterable[str], *, category: str | None, actor: str
) -> int:
    """Give failures a category and leave their notes; return the number of the labelling, which says the rest."""
    asked = list(dict.fromkeys(episode_ids))
    stored = _lock_and_read(connection, project_id, asked)
    refused: dict[str, Refusal] = {}
    changes: dict[str, Label] = {}
    for episode_id in asked:
        if episode_id in stored and stored[episode_id].outcome != "failure":
            refused[episode_id] = "did not fail"
        else:
            note = stored[episode_id].label.note if episode_id in stored else None
            changes[episode_id] = Label(category, note)
    return _save(connection, project_id, stored, changes, actor=actor, category=category, refused=refused)


def find_labelling(connection: Connection, project_id: int, number: int) -> Labelling | None:
    row = connection.execute(_FIND, {"p": project_id, "id": number}).first()
    return None if row is None else Labelling(id=number, actor=row.actor, **row.details)


def undo_labelling(connection: Connection, project_id: int, labelling: Labelling, *, actor: str) -> int:
    """Give every episode back what it had, unless somebody has changed it since; return the new labelling."""
    ids = list(labelling.changed)
    stored = _lock_and_read(connection, project_id, ids)
    rows = connection.execute(
        _BEFORE, {"p": project_id, "ids": ids, "revisions": [labelling.changed[episode_id] for episode_id in ids]}
    )
    before = {row.id: Label(row.category, row.note) for row in rows}
    refused: dict[str, Refusal] = {}
    changes: dict[str, Label] = {}
    for episode_id, revision in labelling.changed.items():
        if episode_id in stored and (stored[episode_id].revision != revision + 1 or episode_id not in before):
            refused[episode_id] = "changed since"
        else:
            changes[episode_id] = before.get(episode_id, Label(None, None))
    return _save(
        connection, project_id, stored, changes, actor=actor, category=labelling.category, refused=refused,
        is_undo=True,
    )  # fmt: skip


def _lock_and_read(connection: Connection, project_id: int, ids: Sequence[str]) -> dict[str, _LabelledEpisode]:
    key = {"p": project_id, "ids": list(ids)}
    connection.execute(_LOCK, key)
    return {
        row.id: _LabelledEpisode(row.id, row.outcome, row.revision, Label(row.category, row.note))
        for row in connection.execute(_READ, key)
    }


def _save(
    connection: Connection,
    project_id: int,
    stored: Mapping[str, _LabelledEpisode],
    changes: Mapping[str, Label],
    *,
    actor: str,
    category: str | None,
    refused: Mapping[str, Refusal] | None = None,
    is_undo: bool = False,
) -> int:
    """Write down what differs from what is stored. Repeating what is stored changes no episode."""
    reasons: dict[str, Refusal] = dict(refused or {})
    changed: list[tuple[_LabelledEpisode, Label]] = []
    for episode_id, label in changes.items():
        if episode_id not in stored:
            reasons[episode_id] = "not stored"
        elif stored[episode_id].label == label:
            reasons[episode_id] = "same already"
        else:
            changed.append((stored[episode_id], label))
    moved = [one for one, label in changed if one.label.category != label.category]
    if changed:
        ids = [one.id for one, _ in changed]
        connection.execute(_KEEP, {"p": project_id, "ids": ids, "actor": actor})
        categories, notes = ([label.category for _, label in changed], [label.note for _, label in changed])
        connection.execute(_LABEL, {"p": project_id, "ids": ids, "categories": categories, "notes": notes})
    if moved:
        revisions = [one.revision for one in moved]
        connection.execute(_FOLLOW, {"p": project_id, "ids": [one.id for one in moved], "revisions": revisions})
    about = {
        "category": category,
        "is_undo": is_undo,
        "is_category": bool(moved),
        "changed": {one.id: one.revision for one, _ in changed},
        "refused": reasons,
    }
    action = "episodes.unlabelled" if is_undo else "episodes.labelled"
    entries = [_entry(project_id, actor, action, "episodes", about)]
    entries += [
        _entry(
            project_id,
            actor,
            "episode.labelled",
            f"episode/{one.id}",
            {"revision": one.revision, "category": label.category, "was": one.label.category},
        )
        for one, label in changed
    ]
    numbers = connection.execute(
        insert(AuditEntryTable).returning(AuditEntryTable.id, sort_by_parameter_order=True), entries
    )
    return int(next(iter(numbers.scalars())))


def _entry(project_id: int, actor: str, action: str, subject: str, details: dict[str, Any]) -> dict[str, Any]:
    return {"project_id": project_id, "actor": actor, "action": action, "subject": subject, "details": details}
