"""Rules: listed with the defaults, made, removed, and tried on what is stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, cast

from fastapi import APIRouter, Body, Depends, Path
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from gapwatch.access.keys import KeyHolder
from gapwatch.answers.rule_preview import try_rule
from gapwatch.api import alert_bodies as bodies
from gapwatch.api.alert_bodies import READ, WRITE, actor_of, as_json, example, fault, refuse
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.doors.costly_reads import CostlyReads, costly_route
from gapwatch.errors import NotFound
from gapwatch.keyring import Keyring
from gapwatch.store.alerting import alert_settings, detectors
from gapwatch.store.core.database import Connection, Database
from gapwatch.watching.kinds import DEFAULT_RULES, read_params
from gapwatch.watching.rules import Rule


def rule_routes(database: Database, keyring: Keyring, costly: CostlyReads) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["alerting"])
    previews = APIRouter(route_class=costly_route(costly, keyring.of_request, aside=True))
    reader, admin, once = Depends(keyring.needs("read")), Depends(keyring.needs("admin")), Depends(refuse_repeated)

    @router.get("/rules", dependencies=[once], summary="List rules", responses=problems(*READ))
    def list_rules(holder: KeyHolder = reader) -> Any:
        """Every rule in force. Those with `default` true every project has; a rule of the same name replaces
        one.
        """
        with database.transaction(holder.project_id) as connection:
            rules = alert_settings.rules(connection, holder.project_id)
            names = {
                channel.id: channel.name for channel in alert_settings.channels(connection, holder.project_id)
            }
        return JSONResponse({"rules": [_rule(rule, names) for rule in rules]})

    @router.post("/rules", status_code=201, summary="Make or replace a rule", responses=problems(*WRITE))
    def put_rule(
        wanted: Annotated[bodies.RuleBody, Body(openapi_examples=example(bodies.RULE))], holder: KeyHolder = admin
    ) -> Any:
        """Replaces the rule of this name, also a default one. Its detectors begin anew if parameters changed."""
        with database.transaction(holder.project_id) as connection:
            rule = _read_rule(connection, holder.project_id, wanted)
            alert_settings.put_rule(connection, holder.project_id, rule, actor_of(holder))
            names = {
                channel.id: channel.name for channel in alert_settings.channels(connection, holder.project_id)
            }
        return JSONResponse(_rule(rule, names), 201)

    @router.delete(
        "/rules/{name}", status_code=204, summary="Remove a rule", responses=problems(401, 403, 404, 422, 503)
    )
    def delete_rule(name: Annotated[str, Path(max_length=128)], holder: KeyHolder = admin) -> Response:
        """A default rule of that name is in force again; to switch one off, post it with `enabled` false."""
        with database.transaction(holder.project_id) as connection:
            known = "\0" not in name and alert_settings.delete_rule(
                connection, holder.project_id, name, actor_of(holder)
            )
            if not known:
                raise NotFound("This project has no rule of its own with this name.")
            detectors.drop(connection, holder.project_id, name)
        return Response(status_code=204)

    @previews.post("/rules/preview", summary="Try a rule on what is stored", responses=problems(*WRITE, 429))
    def preview_rule(
        wanted: Annotated[bodies.PreviewBody, Body(openapi_examples=example(bodies.PREVIEW))],
        holder: KeyHolder = reader,
    ) -> Any:
        """When the rule would have fired and cleared, deployment by deployment, by the code that watches live.

        Nothing is stored and nobody is told. Of each deployment the newest 20,000 episodes are taken, for
        `no_data` the newest 200,000 of the project. `category` asks the ledger while the project's own drop rules
        would have been firing, at most 20 times a deployment. One preview of a project runs at a
        time, seven more wait.
        """
        try:
            params = read_params(wanted.kind, wanted.params)
        except ValidationError as error:
            raise refuse(error, "params") from None
        rule = Rule("preview", wanted.kind, params, "info", wanted.match)
        with database.reading(holder.project_id) as connection:
            preview = try_rule(connection, holder.project_id, rule, wanted.days, datetime.now(UTC))
        return JSONResponse(as_json(preview))

    router.include_router(previews)
    return router


def _read_rule(connection: Connection, project_id: int, wanted: bodies.RuleBody) -> Rule:
    try:
        params = read_params(wanted.kind, wanted.params)
    except ValidationError as error:
        raise refuse(error, "params") from None
    known = {channel.name: channel.id for channel in alert_settings.channels(connection, project_id)}
    channels = []
    for index, named in enumerate(wanted.channels):
        channel_id = known.get(named) if isinstance(named, str) else named
        if channel_id not in known.values():
            raise fault(f"/body/channels/{index}", "unknown-channel", "There is no such channel.")
        channels.append(cast(int, channel_id))
    default = next((rule for rule in DEFAULT_RULES if rule.name == wanted.name), None)
    if default is not None and default.kind != wanted.kind:
        raise fault("/body/kind", "kind-of-default", f"The default rule of this name is of kind {default.kind}.")
    return Rule(
        wanted.name,
        wanted.kind,
        params,
        wanted.severity,
        wanted.match,
        tuple(channels),
        wanted.dry_run,
        wanted.enabled,
        wanted.runbook_url,
    )


def _rule(rule: Rule, channel_names: dict[int, str]) -> dict[str, Any]:
    return {
        "name": rule.name,
        "kind": rule.kind,
        "params": rule.params.model_dump(mode="json"),
        "match": rule.match.model_dump(exclude_defaults=True),
        "severity": rule.severity,
        "channels": [channel_names.get(channel_id, str(channel_id)) for channel_id in rule.channels],
        "dry_run": rule.dry_run,
        "enabled": rule.enabled,
        "runbook_url": rule.runbook_url,
        "default": rule.is_default,
    }
