"""Called when the service is up: makes the demo's sign-in, sends the stories' history, then live episodes."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from pathlib import Path
from typing import Any

import click
import httpx
import numpy as np
from gapwatch_client import Gapwatch

from gapwatch.accounts import make_key, put_person
from gapwatch.demo.deciders import decide_stories
from gapwatch.demo.history import live_record, story_records
from gapwatch.demo.oncall import take_on_stories
from gapwatch.demo.pager import is_local, put_channel, start_pager
from gapwatch.demo.planners import plan_stories, send_ranges
from gapwatch.demo.stories import STORIES
from gapwatch.settings import Settings
from gapwatch.store.alerting.events import date_mitigations
from gapwatch.store.core.database import Database
from gapwatch.store.people import access
from gapwatch.store.read import fleet

PROJECT = "demo"
EMAIL = "demo@example.com"
# Every story is split into this many parts. All first parts are sent before the second ones: no page is empty.
PARTS = 40
# Long enough to look at a demo; a live episode arrives every few seconds.
KEY_LASTS, SET_UP_LASTS, PAUSE_S = timedelta(days=30), timedelta(minutes=10), 2.5
FIRST_PART_S, ALL_S = 15.0, 600.0
FOLDER, MEMORY = "demo", "told.json"


def load_demo(settings: Settings) -> None:
    """Make a new password at every start and send the history once. The sign-in is printed as soon as pages have
    something to show; the rest of the history and live episodes are sent in the background.
    """
    assert settings.database_url is not None  # noqa: S101 - the supervisor set it
    password = "-".join(secrets.token_hex(3) for _ in range(3))
    database = Database(settings.database_url)
    put_person(database, EMAIL, password, PROJECT, "engineer")
    key, admin = (
        make_key(
            database,
            settings.server_secret(),
            project=PROJECT,
            scope=scope,
            name=name,
            expires_at=datetime.now(UTC) + lasts,
        )
        for scope, name, lasts in (("ingest", "demo fleet", KEY_LASTS), ("admin", "demo set-up", SET_UP_LASTS))
    )
    with database.transaction() as connection:
        slugs = fleet.deployment_slugs(connection, access.ensure_project(connection, PROJECT))
    database.close()
    demo_fleet = DemoFleet(
        settings.data_dir / FOLDER, settings.local_url, key, has_all={s.slug for s in STORIES} <= set(slugs)
    )
    with api_client(settings.local_url, admin) as client:
        if is_local(settings):
            put_channel(client, start_pager(settings.data_dir / FOLDER))
        demo_fleet.begin(client)
    database = Database(settings.database_url)
    with database.transaction() as connection:
        # What was expected of a fix was written when it was begun.
        date_mitigations(connection, access.ensure_project(connection, PROJECT))
    database.close()
    click.echo(
        f"\n  Gapwatch is ready: {settings.public_url}\n"
        f"  Sign in with       {EMAIL}\n"
        f"  password           {password}\n\n"
        "  Ctrl-C stops it.\n"
    )
    # Daemons, so that they do not delay shutdown. Unsent episodes wait in the client's spool.
    threading.Thread(target=demo_fleet.send_rest_and_live, name="demo", daemon=True).start()
    if not demo_fleet.is_sent:
        people = (settings.database_url, PROJECT, EMAIL)
        threading.Thread(target=take_on_stories, args=people, name="demo people", daemon=True).start()
        deciding = (settings.database_url, PROJECT, EMAIL, settings.public_url, demo_fleet.sent)
        threading.Thread(target=decide_stories, args=deciding, name="demo deciders", daemon=True).start()
        planning = (settings.database_url, PROJECT, EMAIL, demo_fleet.send_trial, demo_fleet.sent)
        threading.Thread(target=plan_stories, args=planning, name="demo planners", daemon=True).start()


class DemoFleet:
    """Sends the demo through two clients, as in a real fleet: the robots' and the simulation farm's."""

    def __init__(self, folder: Path, url: str, key: str, *, has_all: bool) -> None:
        self._memory = folder / MEMORY
        self._robots = Gapwatch(url, key, folder / "robots")
        self._farm = Gapwatch(url, key, folder / "farm")
        self._is_sent, self._anchor = has_all, datetime.now(UTC).date()
        if self._memory.exists():
            # An interrupted start is repeated with the same day, and so with the same ids.
            memory = json.loads(self._memory.read_text())
            self._is_sent, self._anchor = bool(memory["is_told"]), date.fromisoformat(memory["anchor"])
        self._parts: Iterator[list[dict[str, Any]]] = iter(())
        self._total = 0
        # Set when the whole history is stored.
        self.sent = threading.Event()

    @property
    def is_sent(self) -> bool:
        return self._is_sent

    def begin(self, client: httpx.Client) -> None:
        """Send the first part of every story, wait until it is stored, and send the stories' events."""
        if self._is_sent:
            return
        is_new = not self._memory.exists()
        self._remember(is_told=False)
        stories = demo_episodes(datetime.now(UTC), self._anchor)
        self._total = sum(len(story) for story in stories)
        self._parts = iter(in_turns(stories, PARTS))
        self._send(next(self._parts))
        for sender in (self._robots, self._farm):
            sender.flush(FIRST_PART_S)
        if is_new:
            send_events(client, self._anchor)
            send_ranges(client, self._anchor)

    def send_trial(self, record: dict[str, Any]) -> None:
        """A trial of a plan, by the robots."""
        self._robots.send(record)

    def send_rest_and_live(self) -> None:
        if not self._is_sent:
            started = time.monotonic()
            for part in self._parts:
                self._send(part)
            self._show_progress()
            if not all(client.flush(ALL_S) for client in (self._robots, self._farm)):
                return
            self._remember(is_told=True)
            self.sent.set()
            click.echo(f"  demo fleet: {self._total} episodes in {time.monotonic() - started:.0f} s")
        generator = np.random.default_rng()
        living = [story for story in STORIES if story.lives]
        while True:
            story = living[int(generator.integers(len(living)))]
            self._robots.send(live_record(story, datetime.now(UTC), generator))
            time.sleep(PAUSE_S)

    def _send(self, records: list[dict[str, Any]]) -> None:
        for record in records:
            (self._robots if record["domain"] == "real" else self._farm).send(record)

    def _show_progress(self) -> None:
        with click.progressbar(length=self._total, label="  demo fleet", width=30) as bar:
            done = 0
            while done < self._total:
                time.sleep(0.2)
                waiting = sum(sum(client.status()["pending"].values()) for client in (self._robots, self._farm))
                bar.update(self._total - waiting - done)
                done = self._total - waiting

    def _remember(self, *, is_told: bool) -> None:
        self._memory.parent.mkdir(parents=True, exist_ok=True)
        self._memory.write_text(json.dumps({"anchor": self._anchor.isoformat(), "is_told": is_told}))


def api_client(url: str, key: str) -> httpx.Client:
    return httpx.Client(base_url=url, trust_env=False, timeout=30, headers={"Authorization": f"Bearer {key}"})


def send_events(client: httpx.Client, anchor: date) -> None:
    """Send releases, calibrations and mitigations, as a release pipeline would."""
    for story in STORIES:
        for event in story.events:
            at = datetime.combine(anchor, clock_time(5), UTC) + timedelta(days=event.day)
            body: dict[str, Any] = {
                "kind": event.kind,
                "title": event.name,
                "at": at.isoformat(),
                "deployment": story.slug,
            }
            if event.fix is not None:
                body["fix"] = event.fix
            client.post("/api/v1/events", json=body).raise_for_status()


def demo_episodes(now: datetime, anchor: date | None = None) -> list[list[dict[str, Any]]]:
    """Each story's episodes until now, by time. Later calls on the same day add episodes, never change them."""
    moment = now.astimezone(UTC).isoformat(timespec="milliseconds")
    stories = [story_records(story, anchor or now.date()) for story in STORIES]
    return [[record for record in records if str(record["started_at"]) <= moment] for records in stories]


def in_turns(stories: list[list[dict[str, Any]]], parts: int) -> list[list[dict[str, Any]]]:
    """Split into parts with a share of both sides of every story, in order; the first has at least one of each."""
    sides = [
        [record for record in story if record["domain"] == domain]
        for story in stories
        for domain in ("real", "sim")
    ]
    cuts = [[-(-len(side) * k // parts) for k in range(parts + 1)] for side in sides]
    return [
        [record for side, cut in zip(sides, cuts, strict=True) for record in side[cut[k] : cut[k + 1]]]
        for k in range(parts)
    ]
