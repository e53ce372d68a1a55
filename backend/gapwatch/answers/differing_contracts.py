"""Whose contract differs from that of sim since a change, in a sentence for incidents and messages."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from gapwatch.answers.answer import Caution
from gapwatch.answers.contract_pairs import READ_ON
from gapwatch.answers.load_sides import load_sides
from gapwatch.answers.needs import Need
from gapwatch.answers.question import Question
from gapwatch.answers.subjects import deployment_subject
from gapwatch.store.core.database import Connection
from gapwatch.store.read.sides import Window


def contract_sentence(
    connection: Connection, project_id: int, slug: str, window: Window, now: datetime
) -> str | None:
    """None where the contracts agree, or nothing is known of them."""
    subject = deployment_subject(connection, project_id, slug)
    sides = load_sides(connection, project_id, subject, Question(now, window), Need.CONTRACTS)
    return differing_words(sides.contract.cautions())


def differing_words(cautions: Iterable[Caution]) -> str | None:
    """What a caution says of contracts that differ, without what it asks of a reader of numbers."""
    said = next((one.message for one in cautions if one.code == "contract-differs"), None)
    return None if said is None else said.removesuffix(READ_ON).strip()
