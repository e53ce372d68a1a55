"""Rows of what people set: rules, channels and silences. Secrets of channels stay sealed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from gapwatch.store.alerting import incidents, mail_addresses
from gapwatch.store.alerting.outbox import REACHABLE
from gapwatch.store.alerting.silence_windows import holding_silences
from gapwatch.store.core.audit import audit, changes
from gapwatch.watching.kinds import RULE_KINDS, read_params, rules_in_force
from gapwatch.watching.matchers import Match
from gapwatch.watching.recurrence import Recurrence
from gapwatch.watching.routing import ChannelTarget, Routing
from gapwatch.watching.rules import Rule


def own_rules(connection: Connection, project_id: int) -> list[Rule]:
    """The project's own rules, without those of a kind that this release does not know."""
    rows = connection.execute(
        text("""
        SELECT name, kind, params, match, severity, channel_ids, dry_run, disabled_at IS NULL AS enabled,
               runbook_url
        FROM rules WHERE project_id = :p ORDER BY name
        """),
        {"p": project_id},
    )
    return [
        Rule(
            row.name,
            row.kind,
            read_params(row.kind, row.params),
            row.severity,
            Match.model_validate(row.match),
            tuple(row.channel_ids),
            row.dry_run,
            row.enabled,
            row.runbook_url,
        )
        for row in rows
        if row.kind in RULE_KINDS
    ]


def rules(connection: Connection, project_id: int) -> list[Rule]:
    """Return every rule of a project, default rules and disabled ones included."""
    return rules_in_force(own_rules(connection, project_id))


def runbooks(connection: Connection, project_id: int) -> dict[str, str]:
    """Return the runbook of each rule that has one."""
    rows = connection.execute(
        text("SELECT name, runbook_url FROM rules WHERE project_id = :p AND runbook_url IS NOT NULL"),
        {"p": project_id},
    )
    return {row.name: row.runbook_url for row in rows}


def put_rule(connection: Connection, project_id: int, rule: Rule, actor: str) -> bool:
    """Create a rule or replace the one with its name; return whether it is new."""
    before = _rule_for_audit(connection, project_id, rule.name)
    made = connection.execute(
        text("""
        INSERT INTO rules (project_id, name, kind, params, match, severity, channel_ids, dry_run, disabled_at,
                           runbook_url)
        VALUES (:p, :name, :kind, CAST(:params AS jsonb), CAST(:match AS jsonb), :severity, :channels, :dry_run,
                CASE WHEN :enabled THEN NULL ELSE now() END, :runbook_url)
        ON CONFLICT (project_id, name) DO UPDATE SET kind = excluded.kind, params = excluded.params,
            match = excluded.match, severity = excluded.severity, channel_ids = excluded.channel_ids,
            dry_run = excluded.dry_run, disabled_at = excluded.disabled_at, runbook_url = excluded.runbook_url
        RETURNING xmax = 0
        """),
        {
            "p": project_id,
            "name": rule.name,
            "kind": rule.kind,
            "params": rule.params.model_dump_json(),
            "match": rule.match.model_dump_json(exclude_defaults=True),
            "severity": rule.severity,
            "channels": list(rule.channels),
            "dry_run": rule.dry_run,
            "enabled": rule.enabled,
            "runbook_url": rule.runbook_url,
        },
    ).scalar_one()
    after = _rule_for_audit(connection, project_id, rule.name)
    audit(connection, project_id, actor, "rule.put", f"rule/{rule.name}", changes=changes(before, after))
    return bool(made)


def _rule_for_audit(connection: Connection, project_id: int, name: str) -> dict[str, Any]:
    row = connection.execute(
        text("""
        SELECT kind, params, match, severity, channel_ids AS channels, dry_run, disabled_at IS NULL AS enabled,
               runbook_url
        FROM rules WHERE project_id = :p AND name = :name
        """),
        {"p": project_id, "name": name},
    ).one_or_none()
    if row is None:
        return {}
    whole = dict(row._mapping)
    return {**whole, **{f"params.{name}": value for name, value in whole.pop("params").items()}}


def delete_rule(connection: Connection, project_id: int, name: str, actor: str) -> bool:
    """Delete a project's own rule, which brings back a default one of that name; return whether it existed."""
    before = _rule_for_audit(connection, project_id, name)
    done = connection.execute(
        text("DELETE FROM rules WHERE project_id = :p AND name = :name"), {"p": project_id, "name": name}
    )
    if done.rowcount:
        audit(connection, project_id, actor, "rule.delete", f"rule/{name}", changes=changes(before, {}))
    return bool(done.rowcount)


@dataclass(frozen=True)
class Channel:
    """A channel without its secrets."""

    id: int
    name: str
    kind: str
    config: Mapping[str, Any]
    routing: Routing
    enabled: bool
    created_at: datetime
    # How sending again what is open went, of a kind that needs it.
    resent_at: datetime | None
    resend_failures: int
    resend_answer: str | None


@dataclass(frozen=True)
class SecretFate:
    """The names of secrets that a change set, left as they were, or dropped."""

    set: Sequence[str] = ()
    kept: Sequence[str] = ()
    dropped: Sequence[str] = ()


NO_SECRETS = SecretFate()


def channels(connection: Connection, project_id: int, channel_id: int | None = None) -> list[Channel]:
    rows = connection.execute(
        text("""
        SELECT id, name, kind, config, routing, disabled_at IS NULL AS enabled, created_at, resent_at,
               resend_failures, resend_answer
        FROM channels
        WHERE project_id = :p AND (CAST(:id AS int) IS NULL OR id = :id) ORDER BY name
        """),
        {"p": project_id, "id": channel_id},
    )
    return [
        Channel(
            row.id,
            row.name,
            row.kind,
            row.config,
            Routing.model_validate(row.routing),
            row.enabled,
            row.created_at,
            row.resent_at,
            row.resend_failures,
            row.resend_answer,
        )
        for row in rows
    ]


def targets(connection: Connection, project_id: int) -> list[ChannelTarget]:
    """Return the enabled channels that have somebody to tell."""
    rows = connection.execute(
        text(f"""
        SELECT c.id, c.routing FROM channels c
        WHERE c.project_id = :p AND c.disabled_at IS NULL AND {REACHABLE} ORDER BY c.name
        """),  # noqa: S608
        {"p": project_id},
    )
    return [ChannelTarget(row.id, Routing.model_validate(row.routing)) for row in rows]


def channel_named(connection: Connection, project_id: int, name: str) -> int | None:
    statement = text("SELECT id FROM channels WHERE project_id = :p AND name = :name")
    return connection.execute(statement, {"p": project_id, "name": name}).scalar()


def put_channel(
    connection: Connection,
    project_id: int,
    *,
    channel_id: int | None,
    name: str,
    kind: str,
    config: Mapping[str, Any],
    sealed: bytes | None,
    routing: Routing,
    enabled: bool,
    actor: str,
    secrets: SecretFate = NO_SECRETS,
) -> int | None:
    """Create a channel, or change the one with this id; return its id, None if there is no such channel.

    `sealed` is all that is secret in it from now on; `secrets` says what became of what was.
    """
    before = {} if channel_id is None else _channel_for_audit(connection, project_id, channel_id)
    values = {
        "p": project_id,
        "id": channel_id,
        "name": name,
        "kind": kind,
        "config": json.dumps(config),
        "secret": sealed,
        "routing": routing.model_dump_json(exclude_defaults=True),
        "enabled": enabled,
    }
    if channel_id is None:
        statement = """
        INSERT INTO channels (project_id, name, kind, config, secret, routing, disabled_at)
        VALUES (:p, :name, :kind, CAST(:config AS jsonb), :secret, CAST(:routing AS jsonb),
                CASE WHEN :enabled THEN NULL ELSE now() END) RETURNING id
        """
    else:
        statement = """
        UPDATE channels SET name = :name, kind = :kind, config = CAST(:config AS jsonb),
            secret = :secret, routing = CAST(:routing AS jsonb),
            disabled_at = CASE WHEN :enabled THEN NULL ELSE coalesce(disabled_at, now()) END
        WHERE project_id = :p AND id = :id RETURNING id
        """
    put_id = connection.execute(text(statement), values).scalar()
    if put_id is not None:
        incidents.reconsider_untold(connection, project_id)
        mail_addresses.forget_unused(connection, project_id)
        if kind == "email" and enabled:
            mail_addresses.ask(connection, project_id, put_id, config["to"])
        action = "channel.create" if channel_id is None else "channel.change"
        audit(
            connection,
            project_id,
            actor,
            action,
            f"channel/{put_id}",
            name=name,
            changes=changes(before, _channel_for_audit(connection, project_id, put_id)),
            secrets=asdict(secrets),
        )
    return put_id


def _channel_for_audit(connection: Connection, project_id: int, channel_id: int) -> dict[str, Any]:
    """All of a channel that is not secret."""
    row = connection.execute(
        text("""
        SELECT name, kind, disabled_at IS NULL AS enabled, routing, config FROM channels
        WHERE project_id = :p AND id = :id FOR UPDATE
        """),
        {"p": project_id, "id": channel_id},
    ).one_or_none()
    if row is None:
        return {}
    flat = {f"config.{name}": value for name, value in row.config.items()}
    return {"name": row.name, "kind": row.kind, "enabled": row.enabled, "routing": row.routing, **flat}


def sealed_secret(connection: Connection, project_id: int, channel_id: int) -> bytes | None:
    statement = text("SELECT secret FROM channels WHERE project_id = :p AND id = :id")
    secret = connection.execute(statement, {"p": project_id, "id": channel_id}).scalar()
    return None if secret is None else bytes(secret)


@dataclass(frozen=True)
class RetiredChannel:
    """A channel in use whose kind is gone."""

    project_id: int
    id: int
    name: str
    sealed: bytes | None
    routing: Routing


def lock_channels_of_kind(connection: Connection, kind: str) -> list[RetiredChannel]:
    """Every enabled channel of a kind, of all projects; what another process is at is left to it."""
    rows = connection.execute(
        text("""
        SELECT project_id, id, name, secret, routing FROM channels
        WHERE kind = :kind AND disabled_at IS NULL ORDER BY project_id, id FOR UPDATE SKIP LOCKED
        """),
        {"kind": kind},
    )
    return [
        RetiredChannel(
            row.project_id,
            row.id,
            row.name,
            None if row.secret is None else bytes(row.secret),
            Routing.model_validate(row.routing),
        )
        for row in rows
    ]


def add_to_rules(connection: Connection, project_id: int, channel_id: int, beside: int) -> None:
    """Name a channel in every rule that names the other one."""
    connection.execute(
        text("""
        UPDATE rules SET channel_ids = channel_ids || CAST(:id AS int)
        WHERE project_id = :p AND :beside = ANY(channel_ids) AND NOT :id = ANY(channel_ids)
        """),
        {"p": project_id, "id": channel_id, "beside": beside},
    )


def disable_channel(connection: Connection, project_id: int, channel_id: int, actor: str) -> bool:
    """Disable a channel and delete its secrets; return whether it existed. Deliveries still refer to its row."""
    before = _channel_for_audit(connection, project_id, channel_id)
    done = connection.execute(
        text("""
        UPDATE channels SET disabled_at = coalesce(disabled_at, now()), secret = NULL, config = '{}',
            name = name || ' (removed ' || id || ')'
        WHERE project_id = :p AND id = :id AND name NOT LIKE '%(removed %)'
        """),
        {"p": project_id, "id": channel_id},
    )
    if done.rowcount:
        mail_addresses.forget_unused(connection, project_id)
        audit(
            connection, project_id, actor, "channel.remove", f"channel/{channel_id}", changes=changes(before, {})
        )
    return bool(done.rowcount)


def silences(connection: Connection, project_id: int, *, all_of_them: bool = False) -> list[dict[str, Any]]:
    """Return silences and maintenance windows that hold or will hold; or all."""
    rows = connection.execute(
        text("""
        SELECT id, kind, match, owner, reason, starts_at, ends_at, recurrence, created_at FROM silences
        WHERE project_id = :p AND (:all OR ends_at IS NULL OR ends_at > now())
        ORDER BY ends_at DESC, id LIMIT 1000
        """),
        {"p": project_id, "all": all_of_them},
    ).mappings()
    return [dict(row) for row in rows]


def add_silence(
    connection: Connection,
    project_id: int,
    *,
    match: Match,
    owner: str,
    reason: str,
    starts_at: datetime,
    ends_at: datetime | None,
    kind: str = "silence",
    recurrence: Recurrence | None = None,
) -> int:
    """Silence matching alerts: they are recorded, and nobody is notified until it ends.

    With `recurrence` it comes again every week, and the times are those of the whole series.
    """
    silence_id = connection.execute(
        text("""
        INSERT INTO silences (project_id, match, owner, reason, starts_at, ends_at, kind, recurrence)
        VALUES (:p, CAST(:match AS jsonb), :owner, :reason, :starts, :ends, :kind, CAST(:recurrence AS jsonb))
        RETURNING id
        """),
        {
            "p": project_id,
            "match": match.model_dump_json(exclude_defaults=True),
            "owner": owner,
            "reason": reason,
            "starts": starts_at,
            "ends": ends_at,
            "kind": kind,
            "recurrence": None if recurrence is None else recurrence.model_dump_json(by_alias=True),
        },
    ).scalar_one()
    after = _silence_for_audit(connection, project_id, silence_id)
    audit(connection, project_id, owner, f"{kind}.create", f"silence/{silence_id}", changes=changes({}, after))
    return int(silence_id)


def _silence_for_audit(connection: Connection, project_id: int, silence_id: int) -> dict[str, Any]:
    row = connection.execute(
        text("""
        SELECT kind, match, owner, reason, to_json(starts_at) #>> '{}' AS starts_at,
               to_json(ends_at) #>> '{}' AS ends_at, recurrence
        FROM silences WHERE project_id = :p AND id = :id
        """),
        {"p": project_id, "id": silence_id},
    ).one_or_none()
    return {} if row is None else dict(row._mapping)


def end_silence(connection: Connection, project_id: int, silence_id: int, actor: str) -> bool:
    """End a silence or a whole series now, unless it is over already; return whether it exists."""
    before = _silence_for_audit(connection, project_id, silence_id)
    done = connection.execute(
        text("""
        UPDATE silences SET ends_at = least(ends_at, greatest(now(), starts_at + interval '1 microsecond'))
        WHERE project_id = :p AND id = :id
        """),
        {"p": project_id, "id": silence_id},
    )
    if done.rowcount:
        after = _silence_for_audit(connection, project_id, silence_id)
        audit(
            connection, project_id, actor, "silence.end", f"silence/{silence_id}", changes=changes(before, after)
        )
        incidents.reconsider_postponed(connection, project_id)
    return bool(done.rowcount)


def silencing(connection: Connection, project_id: int, words: Mapping[str, str | None]) -> bool:
    """Return whether a silence or maintenance window that holds now covers these words."""
    return any(silence.match.fits(words) for silence in holding_silences(connection, project_id))


def silence_ends(connection: Connection, project_id: int) -> datetime | None:
    """Return when the first of what holds now ends."""
    ends = [silence.ends_at for silence in holding_silences(connection, project_id)]
    return min(ends, default=None)
