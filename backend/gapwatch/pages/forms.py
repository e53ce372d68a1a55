"""Small HTML forms: read within bounds, last value of a repeated field wins."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request

from gapwatch.errors import BodyTooLarge, MalformedBody, UnsupportedMediaType

LARGEST_FORM = 64 * 1024


async def read_form(request: Request) -> dict[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise UnsupportedMediaType("Send the form as application/x-www-form-urlencoded.")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_FORM:
            raise BodyTooLarge("The form is too large.")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=100, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise MalformedBody("The form cannot be read.") from None
    if any("\0" in part for pair in pairs for part in pair):
        raise MalformedBody("The form cannot be read.")
    return dict(pairs)
