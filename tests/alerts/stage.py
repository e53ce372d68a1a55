"""A project in a database of its own, with the stage run in this process: time and order are the test's."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
from sqlalchemy import text

from gapwatch.access.sealing import Sealer
from gapwatch.alerts import timed_rounds
from gapwatch.alerts.address_confirmation import confirm_link
from gapwatch.alerts.outbox import Sender
from gapwatch.alerts.silence_watch import watch_silence
from gapwatch.alerts.watch import watch_due_episodes
from gapwatch.channels.egress import Egress
from gapwatch.channels.kinds import split_secrets
from gapwatch.rollup.fold import fold_due_work
from gapwatch.store.alerting import alert_settings, mail_addresses
from gapwatch.store.core.database import Database
from gapwatch.watching.kinds import DEFAULT_RULES, read_params
from gapwatch.watching.matchers import Match
from gapwatch.watching.routing import Routing
from gapwatch.watching.rules import Rule

LINK = "https://gapwatch.example.com"
SECRET = b"a secret of the tests"
# Six to twelve hours ago, at 0, 6, 12 or 18 o'clock: a story of up to a thousand episodes is over before the next of
# these, so it lies within one day (days are what detectors take for clusters) at whatever hour the tests run.
QUARTER = timedelta(hours=6)
EVERY = timedelta(seconds=20)
NOW = datetime.now(UTC)
START = NOW - (NOW - datetime.min.replace(tzinfo=UTC)) % QUARTER - QUARTER


@dataclass
class Stage:
    database: Database
    receiver: Any
    project_id: int = 1
    numbers: Any = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.run(
            "INSERT INTO projects (slug, name) VALUES ('fleet', 'fleet');"
            "INSERT INTO policies (project_id, name, version) VALUES (1, 'bin-pick', '1.4.0'), (1, 'bin-pick', '1.5.0');"
            "INSERT INTO tasks (project_id, name) VALUES (1, 'pick-mug');"
            "INSERT INTO sites (project_id, name) VALUES (1, 'berlin');"
            "INSERT INTO robots (project_id, name) VALUES (1, 'ur5e-1'), (1, 'ur5e-2');"
            "INSERT INTO deployments (project_id, slug, policy_id, task_id, site_id, stage, described_at)"
            " SELECT 1, slug, 1, 1, 1, 'full', now() FROM unnest(ARRAY['berlin-line-3', 'oslo-1']) slug"
        )

    def run(self, statement: str, **parameters: Any) -> None:
        with self.database.transaction() as connection:
            connection.execute(text(statement), parameters)

    def rows(self, statement: str, **parameters: Any) -> list[tuple[Any, ...]]:
        with self.database.transaction() as connection:
            return [tuple(row) for row in connection.execute(text(statement), parameters)]

    def add_channel(self, path: str = "/hook", *, kind: str = "webhook", name: str = "", **routing: Any) -> int:
        config: dict[str, Any] = {"url": f"{self.receiver.url}{path}"}
        if kind == "pagerduty":
            config["routing_key"] = "R" * 32
        return self._put_channel(kind, config, name or path, routing)

    def add_mail_channel(self, mail_server: Any, *to: str, name: str = "mail", **routing: Any) -> int:
        """Its addresses are asked and have not confirmed."""
        config = {"to": list(to), "sender": "gapwatch@example.com", "host": "127.0.0.1", "port": mail_server.port}
        return self._put_channel("email", config | {"security": "none"}, name, routing)

    def confirm(self, address: str) -> None:
        """What pressing the button of its page does."""
        with self.database.transaction() as connection:
            [one] = mail_addresses.addresses_of(connection, 1, {"to": [address]})
            mail_addresses.confirm(connection, one)

    def _put_channel(self, kind: Any, config: dict[str, Any], name: str, routing: dict[str, Any]) -> int:
        shown, hidden = split_secrets(kind, config)
        with self.database.transaction() as connection:
            channel_id = alert_settings.put_channel(
                connection,
                1,
                channel_id=None,
                name=name,
                kind=kind,
                config=shown,
                sealed=Sealer(SECRET).seal(hidden),
                routing=Routing.model_validate(routing),
                enabled=True,
                actor="test",
            )
        assert channel_id is not None
        return channel_id

    def put_rule(
        self,
        name: str,
        kind: str,
        severity: str = "warning",
        *,
        enabled=True,
        dry_run=False,
        channels=(),
        **params,
    ):
        self._put_rules(
            [Rule(name, kind, read_params(kind, params), severity, Match(), channels, dry_run, enabled)]
        )

    def _put_rules(self, rules: list[Rule]) -> None:
        with self.database.transaction() as connection:
            for rule in rules:
                alert_settings.put_rule(connection, 1, rule, "test")

    def only(self, name: str, kind: str, severity: str = "warning", **more: Any) -> None:
        """This rule and no default one."""
        self._put_rules([replace(rule, enabled=False) for rule in DEFAULT_RULES if rule.name != name])
        self.put_rule(name, kind, severity, **more)

    def accept(
        self, outcomes: list[bool], *, deployment: int = 1, at: datetime | None = None, **columns: Any
    ) -> None:
        """One accepted batch, as ingest leaves it: episodes and their work row in one transaction."""
        self.accept_rows([{"success": success, "at": at, "d": deployment, **columns} for success in outcomes])

    def accept_rows(self, episodes: list[dict[str, Any]]) -> None:
        """One accepted batch of episodes that each have columns of their own."""
        with self.database.transaction() as connection:
            rows: list[dict[str, Any]] = []
            for columns in episodes:
                number = next(self.numbers)
                row = {
                    "id": f"e{number:06}",
                    "d": 1,
                    "outcome": "success" if columns["success"] else "failure",
                    "robot_id": 1,
                    "policy_id": 1,
                    "stage": "full",
                    "violations": None,
                    "interventions": None,
                    "reward": None,
                    "session": None,
                }
                rows.append(row | columns | {"at": columns["at"] or START + number * EVERY})
            connection.execute(
                text(
                    "INSERT INTO episodes (project_id, id, started_at, policy_id, task_id, deployment_id, domain,"
                    " outcome, content_hash, robot_id, stage, violations, interventions, reward, session)"
                    " VALUES (1, :id, :at, :policy_id, 1, :d, 'real', :outcome, '', :robot_id, :stage, :violations,"
                    " :interventions, :reward, :session)"
                ),
                rows,
            )
            ids = [row["id"] for row in rows]
            connection.execute(
                text("INSERT INTO work (project_id, kind, episode_ids) VALUES (1, 'fold', :ids)"), {"ids": ids}
            )

    def watch(self) -> None:
        fold_due_work(self.database)
        watch_due_episodes(self.database, LINK)

    def happen(self, rate: float, n: int, *, seed: int = 1, **more: Any) -> None:
        """So many episodes at a success rate: accepted, folded and watched."""
        self.accept([bool(x) for x in np.random.default_rng(seed).random(n) < rate], **more)
        self.watch()

    def fall(self) -> None:
        """A deployment that was good and is bad now."""
        self.happen(0.95, 300)
        self.happen(0.1, 30, seed=2)

    def recover(self) -> None:
        self.happen(0.97, 150, seed=3)

    def send(self, *, secret: bytes = SECRET, allow_private: bool = True) -> int:
        link = partial(confirm_link, SECRET, LINK)
        return Sender(self.database, Sealer(secret), Egress(allow_private=allow_private), link).send_due()

    def keep_time(self) -> None:
        timed_rounds.keep_time(self.database, LINK, None)

    def listen_for_silence(self) -> int:
        return watch_silence(self.database, LINK)

    def back_date(self, table: str, column: str, by: timedelta) -> None:
        """Let time pass for what is stored: clocks are columns, so this is what a restart an hour later finds."""
        self.run(f"UPDATE {table} SET {column} = {column} - CAST(:by AS interval)", by=by)

    def alerts(self) -> dict[str, str]:
        return dict(self.rows("SELECT rule || ' ' || series, state FROM alerts ORDER BY id"))

    def deliveries(self) -> list[tuple[str, str, str]]:
        return self.rows("SELECT action, state, reason FROM deliveries ORDER BY id")
