"""Channels: made, changed, removed and tried; what is secret in them is never shown again."""

from __future__ import annotations

import time
from collections.abc import Set
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from gapwatch.access.keys import KeyHolder
from gapwatch.access.sealing import Sealer
from gapwatch.api import alert_bodies as bodies
from gapwatch.api.alert_bodies import READ, WRITE, actor_of, as_json, example, fault, refuse
from gapwatch.api.parameters import refuse_repeated
from gapwatch.api.problems import problems
from gapwatch.channels.kinds import CHANNEL_KINDS, StoredConfig, secrets_that_stay, split_secrets
from gapwatch.channels.retired import problem_of
from gapwatch.errors import Conflict, Fault, Invalid, NotFound, ServiceUnavailable
from gapwatch.keyring import Keyring
from gapwatch.pipeline import Nudger
from gapwatch.store.alerting import (
    alert_list,
    alert_settings,
    mail_addresses,
)
from gapwatch.store.core.database import Connection, Database
from gapwatch.watching.notification import test_content

TEST_WITHIN_S = 20.0


def channel_routes(database: Database, keyring: Keyring, sealer: Sealer, nudger: Nudger) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["alerting"])
    reader, admin, once = Depends(keyring.needs("read")), Depends(keyring.needs("admin")), Depends(refuse_repeated)

    def stored_config(connection: Connection, project_id: int, channel_id: int) -> StoredConfig | None:
        channels = alert_settings.channels(connection, project_id, channel_id)
        if not channels:
            raise NotFound("There is no channel with this id.")
        secrets = sealer.open(alert_settings.sealed_secret(connection, project_id, channel_id))
        return None if secrets is None else StoredConfig(channels[0].kind, dict(channels[0].config), secrets)

    def save(wanted: bodies.ChannelBody, holder: KeyHolder, channel_id: int | None) -> dict[str, Any]:
        if wanted.routing.digest is not None and not CHANNEL_KINDS[wanted.kind].takes_digest:
            message = f"A channel of kind {wanted.kind} wakes people up; give the digest to another."
            raise fault("/body/routing/digest", "no-digest", message)
        with database.transaction(holder.project_id) as connection:
            # Secrets that are left out stay, nobody can read them back to send them again; but only while they go
            # to whom they were given for.
            stored = None if channel_id is None else stored_config(connection, holder.project_id, channel_id)
            kept, dropped = secrets_that_stay(wanted.kind, wanted.config, stored)
            try:
                shown, secrets = split_secrets(wanted.kind, {**kept, **wanted.config})
            except ValidationError as error:
                raise _refuse_config(error, dropped) from None
            fate = alert_settings.SecretFate(
                set=sorted(secrets.keys() - kept.keys()), kept=sorted(kept), dropped=sorted(dropped)
            )
            other = alert_settings.channel_named(connection, holder.project_id, wanted.name)
            if other not in {None, channel_id}:
                raise Conflict("There is a channel with this name.")
            saved_id = alert_settings.put_channel(
                connection,
                holder.project_id,
                channel_id=channel_id,
                name=wanted.name,
                kind=wanted.kind,
                config=shown,
                sealed=sealer.seal(secrets),
                routing=wanted.routing,
                enabled=wanted.enabled,
                actor=actor_of(holder),
                secrets=fate,
            )
            if saved_id is None:
                raise NotFound("There is no channel with this id.")
            [channel] = alert_settings.channels(connection, holder.project_id, saved_id)
            answer = _channel(connection, holder.project_id, channel)
            if dropped:
                answer["dropped_secrets"] = sorted(dropped)
        nudger.nudge("send")
        return answer

    @router.get("/channels", dependencies=[once], summary="List channels", responses=problems(*READ))
    def list_channels(holder: KeyHolder = reader) -> Any:
        """Where alerts go, without anything secret."""
        with database.transaction(holder.project_id) as connection:
            channels = alert_settings.channels(connection, holder.project_id)
            shown = [_channel(connection, holder.project_id, channel) for channel in channels]
        return JSONResponse({"channels": shown})

    @router.post("/channels", status_code=201, summary="Make a channel", responses=problems(*WRITE, 409))
    def make_channel(
        wanted: Annotated[bodies.ChannelBody, Body(openapi_examples=example(bodies.CHANNEL))],
        holder: KeyHolder = admin,
    ) -> Any:
        """With no routing set, every alert from `warning` up goes to every channel of the project.

        Each address of a channel of kind `email` is sent a link. Until it has confirmed that it wants alerts, its
        `state` is `waiting for confirmation` and it gets none.
        """
        return JSONResponse(save(wanted, holder, None), 201)

    @router.put("/channels/{channel_id}", summary="Change a channel", responses=problems(*WRITE, 404, 409))
    def change_channel(
        channel_id: Annotated[int, Path(ge=1, le=2**31 - 1)],
        wanted: Annotated[bodies.ChannelBody, Body(openapi_examples=example(bodies.CHANNEL))],
        holder: KeyHolder = admin,
    ) -> Any:
        """The whole channel again. Secrets that are left out stay as they are while the kind, the host and the
        user they were given for do; otherwise they are dropped, and `dropped_secrets` names them.
        """
        return JSONResponse(save(wanted, holder, channel_id))

    @router.delete(
        "/channels/{channel_id}", status_code=204, summary="Remove a channel", responses=problems(*READ, 404)
    )
    def remove_channel(
        channel_id: Annotated[int, Path(ge=1, le=2**31 - 1)], holder: KeyHolder = admin
    ) -> Response:
        """Nothing goes there any more and its secrets are gone; its deliveries stay in the log."""
        with database.transaction(holder.project_id) as connection:
            if not alert_settings.disable_channel(connection, holder.project_id, channel_id, actor_of(holder)):
                raise NotFound("There is no channel with this id.")
        return Response(status_code=204)

    _test_route(router, database, keyring, nudger)
    return router


def _test_route(router: APIRouter, database: Database, keyring: Keyring, nudger: Nudger) -> None:
    admin = Depends(keyring.needs("admin"))

    @router.post("/channels/{channel_id}/test", summary="Send a test", responses=problems(*READ, 404))
    def test_channel(channel_id: Annotated[int, Path(ge=1, le=2**31 - 1)], holder: KeyHolder = admin) -> Any:
        """Sends a test message and answers exactly what the other side said.

        A mail address that has not confirmed is sent its link again instead, at most once a minute; `sent` says
        which of the two the answer is of, and `waiting_for_confirmation` names such addresses.
        """
        with database.transaction(holder.project_id) as connection:
            channels = alert_settings.channels(connection, holder.project_id, channel_id)
            if not channels:
                raise NotFound("There is no channel with this id.")
            content, config = test_content(channels[0].name), channels[0].config
            deliveries = mail_addresses.try_channel(connection, holder.project_id, channel_id, config, content)
            known = mail_addresses.addresses_of(connection, holder.project_id, config)
        waiting = [address.address for address in known if address.confirmed_at is None]
        sent = "test" if len(waiting) < len(known) or not known else "confirmation"
        result: dict[str, Any] = {"sent": sent, "waiting_for_confirmation": waiting}
        if not deliveries:
            answer = "The link was sent less than a minute ago; the address has not confirmed yet."
            nothing = {"delivery": None, "at": None, "status": None, "outcome": "waiting", "took_ms": None}
            return JSONResponse({**result, **nothing, "answer": answer})
        nudger.nudge("send")
        until = time.monotonic() + TEST_WITHIN_S
        while time.monotonic() < until:
            with database.transaction(holder.project_id) as connection:
                attempt = alert_list.attempt_of(connection, holder.project_id, deliveries[0])
            if attempt is not None:
                return JSONResponse(as_json({**result, "delivery": deliveries[0], **attempt}))
            time.sleep(0.1)
        raise ServiceUnavailable("No worker has sent the test yet; the delivery log will tell.")


def _refuse_config(error: ValidationError, dropped: Set[str]) -> Invalid:
    refused = refuse(error, "config")
    given_again = "must be given again: the stored one was given for another kind, host or user"
    faults = [
        Fault(pointer=fault["pointer"], code=fault["code"], message=given_again)
        if fault["code"] == "missing" and fault["pointer"].rpartition("/")[2] in dropped
        else fault
        for fault in refused.errors
    ]
    return Invalid(refused.detail, errors=faults)


def _channel(connection: Connection, project_id: int, channel: alert_settings.Channel) -> dict[str, Any]:
    shown = {
        "id": channel.id,
        "name": channel.name,
        "kind": channel.kind,
        "config": dict(channel.config),
        "routing": channel.routing.model_dump(mode="json", exclude_none=True),
        "enabled": channel.enabled,
        "created_at": as_json(channel.created_at),
    }
    if problem := problem_of(channel.kind):
        shown["problem"] = problem
    if channel.resent_at is not None or channel.resend_failures:
        shown["resending"] = {
            "at": as_json(channel.resent_at),
            "failures": channel.resend_failures,
            "answer": channel.resend_answer,
        }
    if channel.kind == "email":
        shown["addresses"] = [
            {
                "address": known.address,
                "state": known.state,
                "asked_at": as_json(known.asked_at),
                "confirmed_at": as_json(known.confirmed_at),
            }
            for known in mail_addresses.addresses_of(connection, project_id, channel.config)
        ]
    return shown
