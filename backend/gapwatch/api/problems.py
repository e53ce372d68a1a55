"""The errors of an operation, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

PROBLEM_JSON = "application/problem+json"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "instance", "errors"],
    "properties": {
        "type": {"type": "string", "description": "A stable name of the kind of error."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What happened and what to do."},
        "instance": {"type": "string", "description": "The id under which the request was logged."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "code", "message"],
                "properties": {
                    "pointer": {"type": "string", "description": "Where: a JSON pointer."},
                    "code": {"type": "string", "description": "What: a stable word."},
                    "message": {"type": "string", "description": "What to do."},
                    "index": {"type": "integer", "description": "Which record of the batch."},
                },
            },
        },
    },
}

WORDS = {
    400: "The body is not readable JSON.",
    401: "No valid API key: absent, wrong, revoked and expired look the same.",
    403: "The key has another scope.",
    404: "There is no such thing in this project.",
    408: "The body did not arrive in time.",
    409: "An episode with this id and other content is stored, or it was deleted.",
    413: "The body or the batch is too large.",
    414: "The address is too long.",
    415: "The Content-Type or Content-Encoding is not taken here.",
    422: "Something in the request is not valid; `errors` says what.",
    429: "This key sends too fast; wait for Retry-After seconds.",
    431: "The headers are too large.",
    503: "The database is not answering; wait for Retry-After seconds and send again.",
    507: "The database has no space left; nothing was stored.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": WORDS[status], "content": content} for status in statuses}
