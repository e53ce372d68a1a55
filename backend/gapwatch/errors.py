"""One error base and one error shape: RFC 9457 problem+json, never echoing the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypedDict


class Fault(TypedDict, total=False):
    """One thing that is wrong: where (JSON pointer), what (a stable word), and what to do."""

    pointer: str
    code: str
    message: str
    index: int


class GapwatchError(Exception):
    """Anything the service answers with an error. Subclasses set the status and the stable code."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal-error"
    title: ClassVar[str] = "Something went wrong on our side"

    def __init__(
        self,
        detail: str | None = None,
        *,
        errors: Sequence[Fault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail or self.title)
        self.detail = detail or self.title
        self.errors = list(errors)
        self.headers = dict(headers or {})

    def problem(self, instance: str) -> dict[str, Any]:
        return problem(self.status, self.code, self.title, self.detail, instance, self.errors)


class MalformedBody(GapwatchError):
    status, code, title = 400, "malformed-body", "The body cannot be read"


class NotSignedIn(GapwatchError):
    status, code, title = 401, "unauthorized", "A valid key is needed"


class Forbidden(GapwatchError):
    status, code, title = 403, "forbidden", "Not allowed"


class NotFound(GapwatchError):
    status, code, title = 404, "not-found", "Not found"


class RequestTimeout(GapwatchError):
    status, code, title = 408, "request-timeout", "The body did not arrive in time"


class Conflict(GapwatchError):
    status, code, title = 409, "conflict", "Conflicts with what is stored"


class BodyTooLarge(GapwatchError):
    status, code, title = 413, "body-too-large", "The body is too large"


class UnsupportedMediaType(GapwatchError):
    status, code, title = 415, "unsupported-media-type", "The body has a type this call does not take"


class BadHost(GapwatchError):
    status, code = 400, "bad-host"
    title = "This service does not answer to that name; see GAPWATCH_BASE_URL and GAPWATCH_ALLOWED_HOSTS"


class Invalid(GapwatchError):
    status, code, title = 422, "invalid", "The request is not valid"


class TooManyRequests(GapwatchError):
    status, code, title = 429, "too-many-requests", "Too many requests"


class ServiceUnavailable(GapwatchError):
    status, code, title = 503, "unavailable", "Not available right now"

    def __init__(self, detail: str | None = None, *, retry_after_s: int = 2) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after_s)})


class UnsafeServer(ServiceUnavailable):
    """Acknowledged means on disk, so a server without fsync is not one to promise on."""

    code, title = "unsafe-database", "Postgres runs with fsync=off: acknowledged episodes could be lost"


class DiskFull(ServiceUnavailable):
    status, code, title = 507, "disk-full", "The database has no space left"

    def __init__(self) -> None:
        super().__init__("Nothing was stored; free disk space, then send again.", retry_after_s=30)


def problem(
    status: int, code: str, title: str, detail: str, instance: str, errors: Sequence[Fault] = ()
) -> dict[str, Any]:
    return {
        "type": f"/problems/{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": instance,
        "errors": list(errors),
    }
