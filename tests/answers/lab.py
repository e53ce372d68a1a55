"""Episodes sent through the API, folded by the real worker, and asked about through the API."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import text

from gapwatch.store.people.baselines import pin_baseline
from gapwatch.store.read import directory
from parts import Project, wait_until

NOON = datetime(2026, 10, 5, 12, tzinfo=UTC)
LATER = NOON + timedelta(days=3)
MUJOCO = {"name": "mujoco", "version": "3.3.0"}


def real(outcome: str = "success", **fields: Any) -> dict[str, Any]:
    return _record("real", outcome, {"deployment": "berlin-line-3"} | fields)


def sim(outcome: str = "success", **fields: Any) -> dict[str, Any]:
    return _record("sim", outcome, {"simulator": MUJOCO} | fields)


def _record(domain: str, outcome: str, fields: dict[str, Any]) -> dict[str, Any]:
    at = fields.pop("at", NOON)
    return {
        "id": str(uuid.uuid4()),
        "domain": domain,
        "policy": {"name": "bin-pick", "version": "1.4.0"},
        "task": "pick-mug",
        "started_at": at.isoformat(),
        "outcome": outcome,
    } | {name: value for name, value in fields.items() if value is not None}


def attempts(make: Any, successes: int, failures: int, **fields: Any) -> list[dict[str, Any]]:
    return [make("success", **fields) for _ in range(successes)] + [
        make("failure", **fields) for _ in range(failures)
    ]


def days(count: int) -> list[datetime]:
    return [NOON + timedelta(days=n) for n in range(count)]


@dataclass
class Lab:
    """A project of its own: send, wait until it is folded, ask."""

    project: Project

    def send(self, records: Iterable[dict[str, Any]]) -> None:
        listed = list(records)
        with self.project.client("ingest") as client:
            for start in range(0, len(listed), 5000):
                answer = client.post("/episodes/batch", json=listed[start : start + 5000])
                assert answer.json()["accepted"] == len(listed[start : start + 5000]), answer.text[:2000]
        self.wait()

    def wait(self) -> None:
        due = "SELECT count(*) FROM work WHERE project_id = :p"
        wait_until(lambda: self.project.value(due) == 0, 30, what="the fold")

    def ask(self, path: str, **parameters: Any) -> dict[str, Any]:
        answer = self.get(path, **parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def get(self, path: str, **parameters: Any) -> Any:
        with self.project.client("read") as client:
            return client.get(path, params=parameters)

    def pin(self, deployment: str, simulator: str) -> None:
        with self.project.database.transaction() as connection:
            [mine] = directory.deployments(connection, self.project.id, None, 1)
            assert mine.slug == deployment
            found = directory.simulators(connection, self.project.id)
            [simulator_id] = [i for i, (name, _) in found.items() if name == simulator]
            assert pin_baseline(connection, self.project.id, mine.id, simulator_id, "somebody@example.com")

    def options(self, options: dict[str, Any]) -> None:
        statement = text("UPDATE projects SET options = CAST(:options AS jsonb) WHERE id = :p")
        with self.project.database.transaction() as connection:
            connection.execute(statement, {"p": self.project.id, "options": json.dumps(options)})

    def event(self, kind: str, at: datetime, title: str, **scope: Any) -> None:
        """`scope`: the deployment, site or robots that it names."""
        with self.project.client("ingest") as client:
            body = {"kind": kind, "at": at.isoformat(), "title": title} | scope
            assert client.post("/events", json=body).status_code == 201
