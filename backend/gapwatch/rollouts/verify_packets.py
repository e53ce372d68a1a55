"""Proving packets: hashes, chain, and every figure computed again from the episodes that are still stored."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from gapwatch.rollouts.gate import judge
from gapwatch.rollouts.packets import rests_on, row_set_hash
from gapwatch.rollouts.stage_record import StageRecord
from gapwatch.store.core.database import Connection, Database
from gapwatch.store.rollout.evidence import (
    Evidenced,
    StageContracts,
    Surrounding,
    arrived_just_before,
    changed_since,
    condition_levels,
    number_names,
    stage_episodes,
)
from gapwatch.store.rollout.rollouts import (
    DecisionRow,
    PolicyVersion,
    Rollout,
    chain_of,
    hash_of_packet,
)


@dataclass(frozen=True)
class VerifiedPackets:
    """`faults`: what does not hold, each in a sentence. `aged`: what cannot be computed any more, and why."""

    project: str
    packets: int
    reproduced: int
    faults: list[str]
    aged: list[str]


def verify_packets(database: Database, project_id: int, slug: str) -> VerifiedPackets:
    with database.snapshot() as connection:
        faults: list[str] = []
        aged: list[str] = []
        last: dict[int, str] = {}
        reproduced = 0
        chain = chain_of(connection, project_id)
        for row, packet in chain:
            name = f"decision {row.id} ({row.kind} of {row.deployment})"
            if hash_of_packet(packet) != row.packet_hash:
                faults.append(f"{name}: the packet is not the one that was written; its hash differs.")
                continue
            if (
                packet["previous_hash"] != last.get(row.deployment_id)
                or row.previous_hash != packet["previous_hash"]
            ):
                faults.append(f"{name}: the chain is broken; the packet before it is not the one it names.")
            last[row.deployment_id] = row.packet_hash
            if packet.get("gate") is None:
                reproduced += 1
                continue
            found = _reproduce(connection, project_id, row, packet)
            if found is None:
                reproduced += 1
            elif found.startswith("aged"):
                aged.append(f"{name}: {found.removeprefix('aged ')}")
            else:
                faults.append(f"{name}: {found}")
    return VerifiedPackets(slug, len(chain), reproduced, faults, aged)


def _reproduce(connection: Connection, project_id: int, row: DecisionRow, packet: dict[str, Any]) -> str | None:
    """None if every figure comes out again; else what does not, or, beginning with `aged`, what is gone."""
    evidence = packet["evidence"]
    asked = evidence["parameters"]
    meant = Evidenced(
        row.deployment_id,
        asked["stage"],
        asked["policy"],
        asked["version"],
        datetime.fromisoformat(asked["since"]),
        datetime.fromisoformat(asked["until"]),
        asked["last_seq"],
        asked["limit"],
    )
    rows = stage_episodes(connection, project_id, meant)
    if row_set_hash(rows) != evidence["row_set_hash"]:
        corrected, deleted = changed_since(connection, project_id, meant, row.at)
        gone = evidence["rows"] - len(rows)
        if corrected or deleted or gone > 0:
            return (
                f"aged of {evidence['rows']} episodes {max(gone, deleted)} are gone and {corrected} were "
                "corrected since; the figures that rest on them cannot be computed again."
            )
        if 0 < -gone <= arrived_just_before(connection, project_id, meant):
            return f"aged {-gone} more were being stored while it was decided; they were not judged."
        return "the episodes are not those that were judged; their hash differs."
    record = StageRecord(
        _rollout_of(row, packet),
        rows,
        _around_of(evidence["around"]),
        StageContracts(
            packet["versions"]["contract"]["sim"],
            packet["versions"]["contract"]["real"],
            packet["versions"]["simulator"],
            packet["versions"]["calibration"],
        ),
        condition_levels(connection, project_id, rows),
        number_names(connection, project_id, rows),
        asked["limit"],
    )
    at = datetime.fromisoformat(packet["decision"]["at"])
    again = rests_on(record, judge(record), at, is_override=packet["approved_by"]["override"])
    # As it is read back: JSON knows no tuples.
    again = json.loads(json.dumps(again))
    differing = [name for name, value in again.items() if name != "evidence" and value != packet[name]]
    return f"{', '.join(differing)} do not come out again." if differing else None


def _rollout_of(row: DecisionRow, packet: dict[str, Any]) -> Rollout:
    """The rollout as it was when it was judged."""
    decision = packet["decision"]
    frozen_at, entered_at = (
        datetime.fromisoformat(packet["frozen_at"]),
        datetime.fromisoformat(packet["entered_at"]),
    )
    fallback = packet["fallback"]
    blank = Rollout(
        row.deployment_id,
        row.deployment,
        decision["from"],
        entered_at,
        "go",
        PolicyVersion(**packet["policy"]),
        None if fallback is None else PolicyVersion(**fallback),
        row.at,
        None,
        row.revision,
        packet["plan"],
        frozen_at,
        {},
        *(None,) * 6,
    )
    return replace(blank, revision=row.revision - 1)


def _around_of(stored: dict[str, Any]) -> Surrounding:
    changed = stored["changed_at"]
    return Surrounding(
        **stored
        | {
            "now": datetime.fromisoformat(stored["now"]),
            "changed_at": None if changed is None else datetime.fromisoformat(changed),
        }
    )
