"""The OpenAPI document: FastAPI's, plus the ingest routes that are plain ASGI, plus keys and one error shape."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from gapwatch.api import examples
from gapwatch.api.answer_schemas import answer_schemas, give_examples
from gapwatch.api.problems import SCHEMA, problems
from gapwatch.record import EpisodeRecord

DESCRIPTION = """
Robots and simulators push episode records; people and programs read what follows from them.

Authenticate with `Authorization: Bearer gw_…`. Errors are `application/problem+json` and name the field.
The `id` of an episode is made by the sender and is the retry key for ever: sending the same episode again is
safe and answers `duplicate`, so on a time-out or a 503 simply send it again.
"""

# Where episodes say what others say under other ids: how many, and what to do.
_REPEATED: dict[str, Any] = {
    "repeated": {"type": "integer"},
    "warnings": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        },
    },
}
_STATUS = {
    "type": "object",
    "required": ["id", "status"],
    "properties": {
        "id": {"type": "string"},
        "status": {"type": "string", "enum": ["accepted", "duplicate"]},
        "clock_skew_s": {"type": "number"},
        **_REPEATED,
    },
}
_COUNTS = {
    "type": "object",
    "required": ["sent", "accepted", "duplicates", "conflicts", "rejected", "errors"],
    "properties": {
        **{name: {"type": "integer"} for name in ("sent", "accepted", "duplicates", "conflicts", "rejected")},
        "errors": SCHEMA["properties"]["errors"],
        "clock_skew_s": {"type": "number"},
        **_REPEATED,
    },
}
_CHANGE = {
    "type": "object",
    "required": ["id", "status", "revision"],
    "properties": {
        "id": {"type": "string"},
        "status": {"type": "string", "enum": ["corrected", "unchanged"]},
        "revision": {"type": "integer"},
    },
}
_RECORD = {"$ref": "#/components/schemas/EpisodeRecord"}
_SENT_AT = {
    "name": "Gapwatch-Sent-At",
    "in": "header",
    "description": "When the sender sent this, by its own clock. A minute or more off, and times are corrected.",
    "schema": {"type": "string", "format": "date-time"},
}
_SPOOL_AGE = {
    "name": "Gapwatch-Spool-Age-S",
    "in": "header",
    "description": "Age in seconds of the oldest record that the sender still has: it is behind, not silent.",
    "schema": {"type": "string"},
}
_PREFER = {
    "name": "Prefer",
    "in": "header",
    "description": "`handling=strict` stores all records or none.",
    "schema": {"type": "string", "enum": ["handling=strict", "handling=lenient"]},
}
_ID = {"name": "episode_id", "in": "path", "required": True, "schema": {"type": "string"}}


def openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        document = get_openapi(title="Gapwatch", version="1", description=DESCRIPTION, routes=app.routes)
        _drop_frameworks_errors(document)
        components = document.setdefault("components", {})
        [_], schemas = msgspec.json.schema_components([EpisodeRecord], ref_template="#/components/schemas/{name}")
        schemas["EpisodeRecord"]["examples"] = [examples.REAL]
        components["schemas"] = components.get("schemas", {}) | schemas | answer_schemas() | {"Problem": SCHEMA}
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"key": []}]
        _describe_ingest(document["paths"])
        give_examples(document["paths"])
        # What the protocol refuses before there is a request can happen to any of them.
        for operations in document["paths"].values():
            for operation in operations.values():
                operation["responses"] |= _named(problems(408, 414, 431))
        app.openapi_schema = document
    return app.openapi_schema


def _describe_ingest(paths: dict[str, Any]) -> None:
    everywhere = (400, 401, 403, 408, 413, 415, 422, 429, 503, 507)
    paths["/api/v1/episodes"]["post"] = {
        "tags": ["episodes"],
        "operationId": "post_episode",
        "summary": "Send one episode",
        "description": "Stored durably before the answer. The same id again answers `duplicate`, "
        "the same id with other content 409.",
        "parameters": [_SENT_AT, _SPOOL_AGE],
        "requestBody": _body({"application/json": (_RECORD, examples.REAL)}),
        "responses": {
            "201": _json("Stored.", _STATUS, {"id": examples.REAL["id"], "status": "accepted"}),
            "200": _json("Was stored before.", _STATUS, {"id": examples.REAL["id"], "status": "duplicate"}),
            **_named(problems(*everywhere, 409)),
        },
    }
    batch = [examples.REAL, examples.SIM]
    lines = "\n".join(msgspec.json.encode(record).decode() for record in batch)
    paths["/api/v1/episodes/batch"] = {
        "post": {
            "tags": ["episodes"],
            "operationId": "post_batch",
            "summary": "Send many episodes",
            "description": "A JSON array, or one record a line (NDJSON); identity, gzip or zstd; at most 10,000 "
            "records and 20 MiB unpacked. Each refused record is named by its index; the others are stored.",
            "parameters": [_SENT_AT, _SPOOL_AGE, _PREFER],
            "requestBody": _body(
                {
                    "application/json": ({"type": "array", "items": _RECORD, "minItems": 1}, batch),
                    "application/x-ndjson": ({"type": "string"}, lines),
                }
            ),
            "responses": {
                "200": _json(
                    "At least one record is stored.",
                    _COUNTS,
                    {"sent": 2, "accepted": 1, "duplicates": 1, "conflicts": 0, "rejected": 0, "errors": []},
                ),
                **_named(problems(*everywhere)),
            },
        }
    }
    paths["/api/v1/episodes/{episode_id}"] |= {
        "put": {
            "tags": ["episodes"],
            "operationId": "put_episode",
            "summary": "Correct one episode",
            "description": "The whole record again, under the same id. The numbers follow within seconds and the "
            "audit trail keeps what it was. Needs a key of scope admin.",
            "parameters": [_ID],
            "requestBody": _body({"application/json": (_RECORD, examples.REAL)}),
            "responses": {
                "200": _json(
                    "What became of it.",
                    _CHANGE,
                    {"id": examples.REAL["id"], "status": "corrected", "revision": 2},
                ),
                **_named(problems(*everywhere, 404)),
            },
        },
        "delete": {
            "tags": ["episodes"],
            "operationId": "delete_episode",
            "summary": "Delete one episode",
            "description": "Takes it out of every number. Its id stays taken, so that a late retry does not bring "
            "it back. Needs a key of scope admin.",
            "parameters": [_ID],
            "responses": {
                "204": {"description": "Deleted."},
                **_named(problems(401, 403, 404, 422, 429, 503)),
            },
        },
    }


def _drop_frameworks_errors(document: dict[str, Any]) -> None:
    """FastAPI documents its own shape of 422; ours is another."""
    schemas = document.get("components", {}).get("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)


def _body(content: dict[str, tuple[dict[str, Any], Any]]) -> dict[str, Any]:
    return {
        "required": True,
        "content": {kind: {"schema": schema, "example": example} for kind, (schema, example) in content.items()},
    }


def _json(words: str, schema: dict[str, Any], example: Any) -> dict[str, Any]:
    return {"description": words, "content": {"application/json": {"schema": schema, "example": example}}}


def _named(responses: dict[int | str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {str(status): response for status, response in responses.items()}
