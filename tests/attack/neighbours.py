"""A tenant with one of everything, and every route that the application serves."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from people import somebody
from sqlalchemy import FetchedValue, Identity, text

from gapwatch.app import make_app
from gapwatch.settings import Settings
from gapwatch.store.core.database import Database
from gapwatch.store.tables.schema import Base
from parts import Project, Service, episode, make_project, wait_until

TENANTS_TABLES = sorted(table.name for table in Base.metadata.tables.values() if "project_id" in table.c)
# Tables whose rows a project counts for itself.
COUNTED = [
    name
    for name in TENANTS_TABLES
    if "id" in (columns := Base.metadata.tables[name].c) and isinstance(columns.id.server_default, FetchedValue)
    and not isinstance(columns.id.server_default, Identity)
]  # fmt: skip
MARK = "neighboursown"
# A plan as it is stored, with the least that its page needs.
PLAN_BODY = {
    "cells": [
        {
            "conditions": {"light": MARK},
            "episodes": 5,
            "why": MARK,
            "pilot": {"successes": 1, "n": 2},
            "sim": {"successes": 8, "n": 9},
            "weight": 1.0,
            "empty": False,
        }
    ],
    "background": [],
    "budget": {
        "episodes": 5,
        "robot_hours": None,
        "setup_minutes": 0.0,
        "planned_episodes": 5,
        "planned_hours": 0.1,
    },
    "predicted": {
        "interval_width": 0.5,
        "between": [0.4, 0.6],
        "probability": 0.8,
        "of": "the drop",
        "reaches_goal": 0.5,
        "evidence": [],
    },
    "design_effect": 1.0,
    "left_out": 0,
    "simulate": [],
    "paired": False,
    "reason": None,
    "method": MARK,
}


@dataclass
class Neighbour:
    """Another tenant with one of everything, each named so that a trace of it is found."""

    project: Project
    episode_id: str
    numbers: dict[str, int]

    def fingerprint(self) -> dict[str, Any]:
        """Every row of the tenant, but for what the worker keeps beside it in its own time."""
        row = "(to_jsonb(t) - '{lead,lead_version,led_at}'::text[])::text"
        return {
            table: self.project.value(
                f"SELECT md5(coalesce(string_agg({row}, '|' ORDER BY {row}), '')) FROM {table} t WHERE project_id = :p"
            )
            for table in TENANTS_TABLES
        }


def make_neighbour(service: Service, database: Database) -> Neighbour:
    project = make_project(service, database)
    # Numbers that nobody else has.
    with database.transaction() as connection:
        for table in COUNTED:
            connection.execute(text(f"CREATE SEQUENCE IF NOT EXISTS {table}_of_{project.id} AS int"))
            connection.execute(text(f"SELECT setval('{table}_of_{project.id}', 700000)"))
    record = episode(
        deployment=f"{MARK}-line", task=f"{MARK}-task", robot=f"{MARK}-robot", site=f"{MARK}-site",
        policy={"name": f"{MARK}-policy", "version": f"{MARK}-1"}, outcome="failure",
    )  # fmt: skip
    with project.client() as client:
        assert client.post("/episodes", json=record).is_success
        client.post("/episodes/batch", json=[{"id": f"{MARK}-junk"}])
    wait_until(
        lambda: project.value("SELECT count(*) FROM rollup_counts WHERE project_id = :p"), what="the counts"
    )
    with project.client("admin") as client:
        hook = {"url": f"https://example.com/{MARK}"}
        numbers = {
            "channel_id": client.post(
                "/channels", json={"name": f"{MARK}-hook", "kind": "webhook", "config": hook}
            ).json()["id"],
            "silence_id": client.post("/silences", json={"reason": MARK, "minutes": 60}).json()["id"],
            "event_id": client.post("/events", json={"kind": "other", "title": MARK}).json()["id"],
            "fix_id": client.post("/events", json={"kind": "mitigation", "title": MARK}).json()["id"],
            "key_id": client.post("/keys", json={"name": MARK, "scope": "read"}).json()["id"],
        }
        assert client.post("/rules", json={"name": f"{MARK}-rule", "kind": "drop"}).is_success
    numbers["incident_id"] = project.value(
        "INSERT INTO incidents (project_id, deployment_id, state, severity, content)"
        " SELECT :p, id, 'firing', 'warning', jsonb_build_object('headline', CAST(:mark AS text)) FROM deployments WHERE project_id = :p RETURNING id",
        mark=MARK,
    )
    numbers["alert_id"] = project.value(
        "INSERT INTO alerts (project_id, series, state, severity, rule, kind, deployment_id, incident_id)"
        " SELECT :p, 'success', 'firing', 'warning', :rule, 'drop', id, :incident FROM deployments WHERE project_id = :p RETURNING id",
        rule=f"{MARK}-rule",
        incident=numbers["incident_id"],
    )
    numbers["decision_id"] = project.value(
        "INSERT INTO decisions (project_id, deployment_id, kind, from_stage, to_stage, state, revision, who, reason, packet, packet_hash)"
        " SELECT :p, id, 'hold', 'full', 'full', 'go', 1, :mark, :mark, '{}', :mark FROM deployments WHERE project_id = :p RETURNING id",
        mark=MARK,
    )
    numbers["plan_id"] = project.value(
        "INSERT INTO trial_plans (project_id, deployment_id, policy_id, goal, body, created_by)"
        " SELECT :p, id, policy_id, 'verdict', CAST(:body AS jsonb), :mark FROM deployments WHERE project_id = :p RETURNING id",
        body=json.dumps(PLAN_BODY),
        mark=MARK,
    )
    somebody(project, "admin")
    numbers["user_id"] = project.value("SELECT user_id FROM members WHERE project_id = :p")
    numbers["invitation_id"] = project.value(
        "INSERT INTO invitations (project_id, token_hash, email, role, invited_by, expires_at)"
        " VALUES (:p, decode(md5(CAST(:mark AS text) || CAST(:p AS text)), 'hex'), :mark, 'viewer', :mark, now() + interval '1 hour') RETURNING id",
        mark=MARK,
    )
    wait_until(
        lambda: not project.value("SELECT count(*) FROM work WHERE project_id = :p"), what="the end of the work"
    )
    return Neighbour(project, record["id"], numbers)


def served_routes(service):
    """Method, path and an example of the body of everything that the application serves."""
    settings = Settings(data_dir=service.data_dir, database_url=service.database_url, redis_url="unix:///nowhere")
    app = make_app(settings)._app._app._app
    found = []

    def walk(routes, prefix=""):
        for route in routes:
            if hasattr(route, "original_router"):
                walk(route.original_router.routes)
            elif hasattr(route, "methods"):
                found.extend((method, route.path) for method in sorted(route.methods - {"HEAD"}))

    walk(app.router.routes)
    bodies = {}
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            examples = list(content.get("examples", {}).values())
            bodies[method.upper(), path] = examples[0]["value"] if examples else content.get("example", {})
    return sorted(set(found)), bodies


def foreign_values(neighbour):
    """What a path's names stand for, as the neighbour has it."""
    return {
        **{name: str(number) for name, number in neighbour.numbers.items()},
        "episode_id": neighbour.episode_id,
        "slug": f"{MARK}-line",
        "deployment": f"{MARK}-line",
        "robot": f"{MARK}-robot",
        "policy": f"{MARK}-policy",
        "simulator": f"{MARK}-simulator",
        "version": f"{MARK}-1",
        "action": "acknowledge",
        "baseline_id": "1",
        "delivery_id": "1",
        "rejected_id": "1",
    }


# Names that stand for different things by what comes before them.
BY_PLACE = {
    "/rules/": f"{MARK}-rule",
    "/robots/": f"{MARK}-robot",
    "/policies/": f"{MARK}-policy",
    "/simulators/": f"{MARK}-simulator",
}


def addressed(path, values):
    def value(found):
        name = found[1]
        place = next((word for start, word in BY_PLACE.items() if start in path), None)
        assert name in values or place, f"{path}: say in `foreign_values` what {name} of a neighbour would be"
        return values.get(name) if name in values else place

    return re.sub(r"{(\w+)(?::\w+)?}", value, path)
