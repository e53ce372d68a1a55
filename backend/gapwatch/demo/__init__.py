"""The demo fleet: a handful of deployments sent through the service's own API, and a sign-in printed."""

from __future__ import annotations

import random
import secrets
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import httpx

from gapwatch.accounts import make_key, put_person
from gapwatch.settings import Settings
from gapwatch.store import access, fleet
from gapwatch.store.database import Database

PROJECT = "demo"
EMAIL = "demo@example.com"
SEED = 7
DAYS = 30

# Deployment, policy, version, task, site, stage, success in sim, success in real (first and last day),
# and how many episodes of each.
FLEET = (
    ("zurich-sort-2", "parcel-sort", "4.2.0", "sort-parcel", "zurich", "full", 0.95, (0.94, 0.94), 400, 300),
    ("berlin-line-3", "bin-pick", "1.4.0", "pick-mug", "berlin", "supervised", 0.95, (0.80, 0.55), 400, 240),
    ("lyon-dock-3", "box-stack", "0.9.2", "palletise", "lyon", "shadow", 0.95, (0.75, 0.75), 200, 12),
)


def load_demo(settings: Settings) -> None:
    """Called when the service answers. The password is new at every start; the episodes are sent once."""
    assert settings.database_url is not None  # noqa: S101 - the supervisor set it
    password = "-".join(secrets.token_hex(3) for _ in range(3))
    database = Database(settings.database_url)
    put_person(database, EMAIL, password, PROJECT, "engineer")
    key = make_key(
        database,
        settings.server_secret(),
        project=PROJECT,
        scope="ingest",
        name="demo fleet",
        expires_at=datetime.now(UTC) + timedelta(hours=1),
    )
    with database.transaction() as connection:
        there = fleet.deployments(connection, access.ensure_project(connection, PROJECT))
    database.close()
    if len(there) < len(FLEET):
        send(settings, key, demo_episodes(datetime.now(UTC)))
    click.echo(
        f"\n  Gapwatch is ready: {settings.public_url}\n"
        f"  Sign in with       {EMAIL}\n"
        f"  password           {password}\n\n"
        "  Ctrl-C stops it.\n"
    )


def send(settings: Settings, key: str, episodes: list[dict[str, Any]]) -> None:
    with httpx.Client(base_url=settings.local_url, trust_env=False, timeout=30) as client:
        for start in range(0, len(episodes), 500):
            answer = client.post(
                "/api/v1/episodes/batch",
                json=episodes[start : start + 500],
                headers={"Authorization": f"Bearer {key}"},
            )
            answer.raise_for_status()
            click.echo(f"\r  demo fleet: {min(start + 500, len(episodes))} of {len(episodes)} episodes", nl=False)
    click.echo()


def demo_episodes(now: datetime) -> list[dict[str, Any]]:
    """The same episodes whenever it is called on the same day: the ids are made from what they stand for."""
    chance = random.Random(SEED)  # noqa: S311 - a repeatable demo
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    start = midnight - timedelta(days=DAYS)
    episodes = []
    for slug, policy, version, task, site, stage, sim_rate, (first, last), n_sim, n_real in FLEET:
        shared = {"policy": {"name": policy, "version": version}, "task": task}
        for number in range(n_sim + n_real):
            is_real = number >= n_sim
            progress = (number - n_sim) / n_real if is_real else number / n_sim
            rate = first + (last - first) * progress if is_real else sim_rate
            name = f"{start:%Y-%m-%d}/{slug}/{number}"
            episode = shared | {
                "id": str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
                "domain": "real" if is_real else "sim",
                "started_at": (start + timedelta(days=DAYS * progress)).isoformat(),
                "outcome": "success" if chance.random() < rate else "failure",
                "duration_s": round(chance.gauss(12, 2), 2),
                "conditions": {"lighting": chance.choice(["bright", "dim"])},
            }
            if is_real:
                episode |= {"deployment": slug, "site": site, "stage": stage, "robot": f"{site}-{number % 3}"}
            else:
                episode |= {"simulator": {"name": "mujoco", "version": "3.3.0"}}
            episodes.append(episode)
    return episodes
