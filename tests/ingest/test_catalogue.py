"""The catalogue of bad input: a hundred lines, each a request with its answer and what is stored after it.

Most lines are rows of the table below. Those that need a connection, a key or a service of their own are
functions of `test_connections.py`; the last test here sees to it that none is missing.

Three rules hold for every case, so the table does not repeat them: what is refused is problem+json; it never
repeats a value of the sender's; and a record that was read and refused (422) is in the quarantine.
"""

import ast
import contextlib
import gzip
import io
import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import zstandard

from gapwatch.accounts import make_key
from gapwatch.settings import Settings
from gapwatch.store.core.database import Database
from parts import Project, Service, episode, reachable, start_service, wait_until

MARKER = "s3cret-7f3a"
HERE = "@here@"
JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}
GZIP = JSON | {"Content-Encoding": "gzip"}
ZSTD = JSON | {"Content-Encoding": "zstd"}
MEMBERS = {"type", "title", "status", "detail", "instance", "errors"}
MIB = 1024 * 1024
ANSWERED_WITHIN_S = 10

LABEL = "SELECT c.levels->>'label' FROM episodes e JOIN condition_sets c USING (project_id) WHERE e.project_id = :p AND c.id = e.condition_set_id"
# The same text at every place that takes free text.
TEXTS = (
    "SELECT jsonb_build_array(c.levels->>'label', e.failure_note, e.failure_labels[1], e.provenance->>'note')"
    " FROM episodes e JOIN condition_sets c USING (project_id) WHERE e.project_id = :p AND c.id = e.condition_set_id"
)
STARTED = "to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24.MI.SS.US')"


@dataclass(frozen=True)
class Case:
    line: int
    words: str
    status: int
    body: bytes | Callable[[], bytes] = b""
    # Among the codes of `errors`, or the last word of the problem's type.
    code: str | None = None
    pointer: str | None = None
    stored: int = 0
    # None: the quarantine is bounded, and this is more than it keeps.
    quarantined: int | None = 0
    path: str = "/episodes"
    method: str = "POST"
    scope: str = "ingest"
    headers: dict[str, str] | Callable[[], dict[str, str]] = field(default_factory=lambda: JSON)
    # Sent before it, to the same address, and accepted.
    first: tuple[bytes, ...] = ()
    # Members of a 2xx answer, and headers of any.
    answer: dict[str, Any] = field(default_factory=dict)
    answer_headers: dict[str, str] = field(default_factory=dict)
    # SQL over the project `:p`, and its value; or a function of the value.
    reads: tuple[str, Any] | None = None
    secrets: tuple[str, ...] = (MARKER,)

    def __str__(self) -> str:
        return f"{self.line:03}-{self.words}".replace(" ", "-")


def record(**fields: Any) -> dict[str, Any]:
    return episode(**({"provenance": {"note": MARKER}} | fields))


def written(**fields: Any) -> bytes:
    return json.dumps(record(**fields)).encode()


def spliced(text: str | bytes, **fields: Any) -> bytes:
    """A record with the given bytes in the place of HERE, whatever a JSON writer would say of them."""
    raw = text.encode() if isinstance(text, str) else text
    return written(**fields).replace(b'"%s"' % HERE.encode(), raw)


def batch_of(*records: dict[str, Any]) -> bytes:
    return json.dumps(records).encode()


def lines_of(*records: dict[str, Any]) -> bytes:
    return b"\n".join(json.dumps(one).encode() for one in records)


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def levels(depth: int) -> str:
    """An object of so many levels, itself the first."""
    return f'{{"a":{nested(depth - 1)}}}'


def ahead(**by: float) -> str:
    return (datetime.now(UTC) + timedelta(**by)).isoformat()


def bomb(size: int) -> bytes:
    """gzip of so many spaces, made without holding them."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb") as packer:
        for _ in range(size // MIB):
            packer.write(b" " * MIB)
    return out.getvalue()


def zstd_bomb(size: int) -> bytes:
    packer = zstandard.ZstdCompressor().compressobj()
    return b"".join(packer.compress(b" " * MIB) for _ in range(size // MIB)) + packer.flush()


def column(expression: str, value: Any) -> tuple[str, Any]:
    """What the one episode of the project has in a column."""
    return f"SELECT {expression} FROM episodes WHERE project_id = :p", value


def malformed(line: int, words: str, body: Any, code: str | None = "malformed-json", **more: Any) -> Case:
    return Case(line, words, 400, body, code or "malformed-body", **more)


def refused(
    line: int, words: str, body: Any, code: str | None = None, pointer: str | None = None, **more: Any
) -> Case:
    return Case(line, words, 422, body, code, pointer, **({"quarantined": 1} | more))


def accepted(line: int, words: str, body: Any, **more: Any) -> Case:
    return Case(line, words, 201, body, **({"stored": 1} | more))


def batch(line: int, words: str, status: int, body: Any, **more: Any) -> Case:
    return Case(line, words, status, body, **({"path": "/episodes/batch"} | more))


def kept(line: int, words: str, text: str) -> Case:
    """Free text is stored as it is. What pages, exports and messages make of it is tested with them."""
    fields = record(
        conditions={"label": text},
        outcome="failure",
        failure={"note": text, "labels": [text]},
        provenance={"note": text},
    )
    return accepted(line, words, json.dumps(fields).encode(), reads=(TEXTS, [text] * 4))


# A table is read by its rows.
# fmt: off
def first_lines() -> list[Case]:
    """1-12: bodies that are not one JSON document of a type we take."""
    whole = written()
    found = [
        malformed(1, "empty body", b""),
        malformed(1, "empty body to batch", b"", path="/episodes/batch"),
        malformed(1, "blank body", b" \n\t "),
        *(
            refused(2, f"{text} to single", text.encode(), "wrong-type", "")
            for text in ("null", "[]", "42", '"x"', "true", f'["{MARKER}"]')
        ),
        *(
            batch(2, f"{text} to batch", 422, text.encode(), code="wrong-type")
            for text in ("null", "{}", "42", '"x"', f'{{"a":"{MARKER}"}}')
        ),
        batch(2, "a record to batch", 422, whole, code="wrong-type"),
        refused(2, "an array of a record to single", b"[%s]" % whole, "wrong-type", ""),
        malformed(3, "trailing x", whole + b"x"),
        malformed(3, "trailing x in batch", b"[%s]x" % whole, path="/episodes/batch"),
        malformed(3, "trailing comma", whole[:-1] + b",}"),
        malformed(3, "cut off", whole[:-1]),
        malformed(3, "cut off in batch", b"[%s" % whole, path="/episodes/batch"),
        malformed(4, "two documents", whole + b"\n" + written()),
        malformed(4, "two documents to batch", whole + b"\n" + written(), path="/episodes/batch"),
        Case(4, "newline-delimited to single", 415, whole, "unsupported-media-type", headers=NDJSON),
        malformed(5, "byte order mark", b"\xef\xbb\xbf" + whole),
        malformed(5, "byte order mark to batch", b"\xef\xbb\xbf[%s]" % whole, path="/episodes/batch"),
        malformed(6, "UTF-16 with its mark", whole.decode().encode("utf-16"), "not-utf8"),
        malformed(6, "UTF-16 without", whole.decode().encode("utf-16-le"), None),
        malformed(6, "UTF-32", whole.decode().encode("utf-32"), "not-utf8"),
        Case(
            6, "UTF-16 that says so", 415, whole.decode().encode("utf-16"), "unsupported-media-type",
            headers={"Content-Type": "application/json; charset=utf-16"},
        ),
    ]
    for line, words, bad in (
        (7, "invalid UTF-8", b"\xff"),
        (7, "overlong UTF-8", b"\xc0\xaf"),
        (7, "surrogate in UTF-8", b"\xed\xa0\x80"),
        (8, "Latin-1", "Kühlhaus".encode("latin-1")),
    ):
        quoted = b'"%s"' % bad
        found += [
            malformed(line, f"{words} in a name", spliced(quoted, task=HERE), "not-utf8"),
            malformed(line, f"{words} in a condition", spliced(quoted, conditions={"a": HERE}), "not-utf8"),
            malformed(line, f"{words} in a key", spliced(quoted, conditions={HERE: 1}), "not-utf8"),
            malformed(line, f"{words} in a contract", spliced(quoted, contract={"a": HERE}), "not-utf8"),
            malformed(line, f"{words} in an unknown field", spliced(quoted, colour=HERE), "not-utf8"),
        ]
    found += [
        Case(9, "no content type", 415, whole, "unsupported-media-type", headers={}),
        Case(9, "no content type to batch", 415, b"[%s]" % whole, headers={}, path="/episodes/batch"),
        *(
            Case(line, kind, 415, whole, "unsupported-media-type", headers={"Content-Type": kind})
            for line, kind in (
                (10, "text/plain"),
                (10, "application/x-www-form-urlencoded"),
                (10, "application/jsonx"),
                (10, "text/plain; application/json"),
                (10, "application/json; charset=latin-1"),
                (11, "multipart/form-data; boundary=x"),
            )
        ),
        accepted(10, "json with a charset", written(), headers={"Content-Type": "Application/JSON; charset=UTF-8"}),
        *(
            Case(
                12, f"content encoding {encoding}", 415, whole, "unsupported-media-type", headers=JSON | {"Content-Encoding": encoding},
                answer_headers={"accept-encoding": "gzip, zstd"},
            )
            for encoding in ("br", "foo", "gzip, gzip", "deflate", MARKER)
        ),
    ]
    return found


def packed_lines() -> list[Case]:
    """13-18: bodies that are packed. 19 to 25 are functions."""
    whole = written()
    squeezed, dense = gzip.compress(whole), zstandard.compress(whole)
    return [
        accepted(13, "gzip", squeezed, headers=GZIP),
        accepted(13, "zstd", zstandard.compress(written()), headers=ZSTD),
        batch(
            13, "gzip to batch", 200, gzip.compress(batch_of(record(), record())), headers=GZIP, stored=2,
            answer={"sent": 2, "accepted": 2},
        ),
        batch(13, "zstd lines", 200, zstandard.compress(lines_of(record(), record())), headers=NDJSON | ZSTD | NDJSON, stored=2),
        malformed(14, "says gzip and is not", whole, None, headers=GZIP),
        malformed(14, "says zstd and is not", whole, None, headers=ZSTD),
        malformed(14, "says gzip and is empty", b"", None, headers=GZIP),
        malformed(14, "says gzip and is zstd", dense, None, headers=GZIP),
        *(malformed(15, f"gzip without its last {cut} bytes", squeezed[:-cut], None, headers=GZIP) for cut in (1, 8, 9, 40)),
        *(malformed(15, f"zstd without its last {cut} bytes", dense[:-cut], None, headers=ZSTD) for cut in (1, 8, 40)),
        malformed(15, "gzip with a wrong sum", squeezed[:-8] + bytes(8), None, headers=GZIP),
        malformed(16, "two gzip members", squeezed + gzip.compress(b" "), None, headers=GZIP),
        malformed(16, "two zstd frames", dense + zstandard.compress(b" "), None, headers=ZSTD),
        malformed(16, "something behind the gzip", squeezed + b"x", None, headers=GZIP),
        Case(17, "gzip bomb", 413, lambda: bomb(100 * MIB), "body-too-large", headers=GZIP),
        batch(17, "gzip bomb to batch", 413, lambda: bomb(200 * MIB), headers=GZIP, code="body-too-large"),
        Case(17, "zstd bomb", 413, lambda: zstd_bomb(100 * MIB), "body-too-large", headers=ZSTD),
        batch(17, "zstd bomb to batch", 413, lambda: zstd_bomb(200 * MIB), headers=ZSTD, code="body-too-large"),
        malformed(18, "gzip inside gzip", gzip.compress(squeezed), None, headers=GZIP),
        malformed(18, "a bomb inside gzip", lambda: gzip.compress(bomb(100 * MIB)), None, headers=GZIP),
    ]


def address_lines() -> list[Case]:
    """26 and 28; 27 is a function."""
    read = {"scope": "read", "method": "GET", "headers": {}}
    return [
        Case(26, "unknown path", 404, written(), "not-found", path="/nothing"),
        Case(26, "a slash at the end", 404, written(), "not-found", path="/episodes/"),
        Case(26, "wrong method", 405, written(), "method-not-allowed", method="PATCH", answer_headers={"allow": "POST"}),
        Case(
            26, "wrong method to batch", 405, written(), "method-not-allowed", path="/episodes/batch", method="PATCH",
            answer_headers={"allow": "POST"},
        ),
        Case(28, "domain twice", 422, path="/episodes?domain=real&domain=sim", **read),
        Case(28, "domain twice, equal", 422, path="/episodes?domain=real&domain=real", **read),
        Case(28, "outcome unknown", 422, path=f"/episodes?outcome={MARKER}", **read),
        Case(28, "unknown parameter", 422, path=f"/episodes?colour={MARKER}", **read),
        *(
            Case(28, f"{name} twice", 200, path=f"/episodes?{name}={a}&{name}={b}", **read)
            for name, a, b in (("condition", "a:x", "b:y"), ("robot", "a", "b"), ("site", "a", "b"))
        ),
    ]


def batch_lines() -> list[Case]:
    """29-35."""

    def one_bad_of_hundred() -> bytes:
        return batch_of(*(record(**({"outcome": MARKER} if i == 37 else {})) for i in range(100)))

    def all_bad(count: int) -> Callable[[], bytes]:
        return lambda: batch_of(*(record(outcome=MARKER) for _ in range(count)))

    twin = record()
    strict = JSON | {"Prefer": "handling=strict"}
    return [
        batch(29, "empty batch", 422, b"[]", code="empty-batch"),
        batch(29, "empty batch of lines", 422, b"", code="empty-batch", headers=NDJSON),
        batch(29, "blank lines", 422, b"\n\n \n", code="empty-batch", headers=NDJSON),
        batch(30, "10 001 records", 413, lambda: batch_of(*(record() for _ in range(10_001))), code="too-many-items"),
        batch(30, "10 001 lines", 413, lambda: lines_of(*(record() for _ in range(10_001))), code="too-many-items", headers=NDJSON),
        batch(30, "three million numbers", 413, lambda: b"[%s0]" % (b"0," * 3_000_000), code="too-many-items"),
        batch(30, "three million lines", 413, lambda: b"0\n" * 3_000_000, code="too-many-items", headers=NDJSON),
        batch(30, "nearly 20 MiB of brackets", 413, lambda: b"[" + b"[]," * 5_000_000 + b"[]]", code="too-many-items"),
        batch(
            31, "1 bad of 100", 200, one_bad_of_hundred, code="unknown-value", pointer="/outcome", stored=99, quarantined=1,
            answer={"sent": 100, "accepted": 99, "duplicates": 0, "conflicts": 0, "rejected": 1},
        ),
        batch(
            31, "1 bad line of 3", 200, lines_of(record()) + b"\n{\n" + lines_of(record()), code="malformed-json", stored=2, quarantined=1,
            headers=NDJSON, answer={"sent": 3, "accepted": 2, "rejected": 1},
        ),
        batch(32, "1 bad of 100, strict", 422, one_bad_of_hundred, code="unknown-value", pointer="/outcome", headers=strict),
        batch(
            32, "a conflict, strict", 422, batch_of(record(), twin | {"outcome": "failure"}), first=(batch_of(twin),),
            code="episode-conflict", pointer="/id", stored=1, headers=strict,
        ),
        batch(32, "good, strict", 200, batch_of(record(), record()), headers=strict, stored=2, answer={"sent": 2, "accepted": 2}),
        batch(33, "all bad", 422, all_bad(100), code="unknown-value", pointer="/outcome", quarantined=100),
        batch(33, "10 000, all bad", 422, all_bad(10_000), code="unknown-value", quarantined=None),
        batch(33, "10 000, all empty", 422, lambda: b"[%s{}]" % (b"{}," * 9_999), code="missing", quarantined=None),
        batch(
            34, "same id twice, equal", 200, batch_of(twin, dict(reversed(twin.items()))), stored=1,
            answer={"sent": 2, "accepted": 1, "duplicates": 1, "conflicts": 0, "rejected": 0, "errors": []},
        ),
        batch(
            35, "same id twice, different", 200, batch_of(twin, twin | {"task": MARKER}),
            code="episode-conflict",
            pointer="/id",
            stored=1,
            quarantined=1,
            answer={"sent": 2, "accepted": 1, "duplicates": 0, "conflicts": 1, "rejected": 0},
            reads=(
                "SELECT t.name FROM episodes e JOIN tasks t USING (project_id) WHERE e.project_id = :p AND t.id = e.task_id",
                "pick-mug",
            ),
        ),
    ]


NUMBER_PLACES = (
    ("reward", {"reward": HERE}, "/reward"),
    ("duration", {"duration_s": HERE}, "/duration_s"),
    ("metric", {"metrics": {"a": HERE}}, "/metrics/a"),
    ("signal", {"signals": {"a": 1, "b": HERE}}, "/signals/b"),
    ("embedding", {"embedding": [1, HERE]}, "/embedding"),
)
FREE_PLACES = (
    ("condition", {"conditions": {"a": HERE}}, "/conditions/a"),
    ("provenance", {"provenance": {"a": HERE, "note": MARKER}}, "/provenance/a"),
    ("contract", {"contract": {"a": [{"b": HERE}]}}, "/contract/a/0/b"),
)


def number_lines() -> list[Case]:
    """36-52."""
    found = []
    for place, fields, pointer in (*NUMBER_PLACES, *FREE_PLACES):
        free = place in {"condition", "provenance", "contract"}
        within = "/contract" if place == "contract" else pointer
        found += [
            refused(40 if free else 36, f"NaN as {place}", spliced("NaN", **fields), "not-finite", pointer),
            refused(40 if free else 37, f"Infinity as {place}", spliced("Infinity", **fields), "not-finite", pointer),
            refused(40 if free else 37, f"-Infinity as {place}", spliced("-Infinity", **fields), "not-finite", pointer),
            refused(46 if free else 38, f"1e400 as {place}", spliced("1e400", **fields), None, within),
            refused(46 if free else 38, f"-1e400 as {place}", spliced("-1e400", **fields), None, within),
            refused(46, f"1e200000 as {place}", spliced("1e200000", **fields), None, within),
            malformed(44, f"5000 digits as {place}", spliced("7" * 5000, **fields), secrets=(MARKER, "7777")),
            malformed(44, f"4301 digits as {place}", spliced("7" * 4301, **fields), secrets=(MARKER, "7777")),
        ]
        if not free:
            words = "400 digits as " + place
            found.append(refused(45, words, spliced("7" * 400, **fields), None, within, secrets=(MARKER, "7777")))
            for text in ('"nan"', '"NaN"', '"inf"', '"1.0"'):
                found.append(refused(39, f"{text} as {place}", spliced(text, **fields), "wrong-type", pointer))
    # An id and a time without "-0" in them: no part of the record but the number is about zero.
    plain = {"id": "zero", "started_at": "2025-11-12T10:11:12Z"}
    found += [
        refused(
            40, "NaN in a batch of one", b"[%s]" % spliced("NaN", conditions={"a": HERE}), "not-finite", "/conditions/a",
            path="/episodes/batch",
        ),
        batch(
            36, "NaN in one of a batch", 200, b"[%s,%s]" % (written(), spliced("NaN", reward=HERE)), code="not-finite", pointer="/reward",
            stored=1, quarantined=1, answer={"sent": 2, "accepted": 1, "rejected": 1},
        ),
        accepted(41, "1e-400", spliced("1e-400", reward=HERE), reads=column("reward", 0.0)),
        *(
            accepted(42, f"{zero} as a reward", spliced(zero, reward=HERE, **plain), reads=column("CAST(reward AS text)", "0"))
            for zero in ("-0.0", "-0", "-0e7", "-1e-400")
        ),
        *(
            accepted(42, f"{zero} as a duration", spliced(zero, duration_s=HERE, **plain), reads=column("CAST(duration_s AS text)", "0"))
            for zero in ("-0.0", "-1e-400")
        ),
        *(
            accepted(42, f"{zero} in {name}", spliced(zero, **fields, **plain), reads=column(f"CAST({name} AS text)", "{0}"))
            for zero in ("-0.0", "-1e-400")
            for name, fields in (
                ("metrics", {"metrics": {"a": HERE}}),
                ("signals", {"signals": {"a": HERE}}),
                ("numbers", {"conditions": {"a": HERE}}),
                ("embedding", {"embedding": [HERE]}),
            )
        ),
        Case(
            42, "-0.0 is the same record as 0.0", 200, spliced("-0.0", reward=HERE, **plain), first=(spliced("0.0", reward=HERE, **plain),),
            stored=1, answer={"status": "duplicate"},
        ),
        *(
            refused(
                43, f"2^{power} violations", spliced(str(2**power), safety={"violations": HERE}), "out-of-range", "/safety/violations",
                secrets=(MARKER, str(2**power)),
            )
            for power in (31, 63, 64)
        ),
        refused(
            43, "2^63 as provenance", spliced(str(2**63), provenance={"seed": HERE, "note": MARKER}), "out-of-range", "/provenance/seed",
            secrets=(MARKER, str(2**63)),
        ),
        refused(
            43, "-2^63-1 as provenance", spliced(str(-(2**63) - 1), provenance={"seed": HERE, "note": MARKER}), "out-of-range",
            "/provenance/seed",
        ),
        accepted(
            43, "2^63-1 as provenance", spliced(str(2**63 - 1), provenance={"seed": HERE}),
            reads=column("provenance->>'seed'", str(2**63 - 1)),
        ),
        malformed(44, "5000 digits as violations", spliced("7" * 5000, safety={"violations": HERE}), secrets=(MARKER, "7777")),
        Case(
            45, "400 digits as violations", 422, spliced("7" * 400, safety={"violations": HERE}), None, "/safety/violations", quarantined=1,
            secrets=(MARKER, "7777"),
        ),
        # Means and variances of such numbers are tested with the statistics.
        batch(
            47, "a hundred rewards of 1e308", 200, lambda: batch_of(*(record(reward=1e308, metrics={"a": -1e308}) for _ in range(100))),
            stored=100, answer={"accepted": 100}, reads=column("min(reward)", 1e308),
        ),
    ]
    for line, text in (
        *((48, text) for text in ("3.0", "3.5", "3e0")),
        *((49, text) for text in ('"3"', '""', f'"{MARKER}"')),
        *((50, text) for text in ("true", "false")),
    ):
        found += [
            refused(line, f"{text} violations", spliced(text, safety={"violations": HERE}), "wrong-type", "/safety/violations"),
            refused(line, f"{text} interventions", spliced(text, safety={"interventions": HERE}), "wrong-type", "/safety/interventions"),
        ]
    found += [
        refused(50, "true as a reward", spliced("true", reward=HERE), "wrong-type", "/reward"),
        refused(50, "true as a signal", spliced("true", signals={"a": HERE}), "wrong-type", "/signals/a"),
        *(
            refused(51, f"{word} as outcome", written(outcome=word), "unknown-value", "/outcome")
            for word in ("yes", "on", "Success", "", MARKER)
        ),
        *(refused(51, f"{word} as outcome", written(outcome=word), "wrong-type", "/outcome") for word in (1, True, ["success"])),
        refused(51, "word for domain", written(domain=MARKER), "unknown-value", "/domain"),
        refused(51, "word for stage", written(stage=MARKER), "unknown-value", "/stage"),
        refused(51, "word for category", written(failure={"category": MARKER}), "unknown-category", "/failure/category"),
        refused(52, "negative duration", written(duration_s=-1), "out-of-range", "/duration_s"),
        refused(52, "tiny negative duration", written(duration_s=-5e-324), "out-of-range", "/duration_s"),
        *(
            refused(52, f"negative {name}", written(safety={name: -1}), "out-of-range", f"/safety/{name}")
            for name in ("violations", "interventions", "overrides")
        ),
    ]
    return found


def shape_lines() -> list[Case]:
    """53-62."""
    found = [
        accepted(53, "contract of 32 levels", spliced(levels(32), contract=HERE)),
        refused(53, "contract of 33 levels", spliced(levels(33), contract=HERE), "too-deep"),
        refused(53, "contract of 200 levels", spliced(levels(200), contract=HERE), "too-deep"),
        refused(53, "condition of 200 levels", spliced(nested(200), conditions={"a": HERE})),
        refused(53, "200 levels and nothing else", nested(200).encode()),
    ]
    for depth in (990, 100_000):
        found += [
            malformed(54, f"contract of {depth} levels", spliced(levels(depth), contract=HERE)),
            malformed(54, f"condition of {depth} levels", spliced(nested(depth), conditions={"a": HERE})),
            malformed(54, f"task of {depth} levels", spliced(nested(depth), task=HERE)),
            malformed(54, f"unknown field of {depth} levels", spliced(nested(depth), colour=HERE)),
            malformed(54, f"{depth} levels and nothing else", nested(depth).encode()),
            malformed(54, f"{depth} open brackets", b"[" * depth),
            malformed(54, f"{depth} open objects", b'{"a":' * depth),
            malformed(54, f"{depth} open brackets to batch", b"[" * depth, None, path="/episodes/batch"),
        ]
    found += [
        malformed(54, "100 000 levels to batch", nested(100_000).encode(), None, path="/episodes/batch"),
        malformed(54, "nearly 20 MiB of open brackets", lambda: b"[" * (20 * MIB - 1), None, path="/episodes/batch"),
    ]
    whole = written()
    found += [
        malformed(55, "task twice", whole[:-1] + b',"task":"%s"}' % MARKER.encode(), "duplicate-key"),
        malformed(55, "task twice, equal", whole[:-1] + b',"task":"pick-mug"}', "duplicate-key"),
        malformed(55, "task twice, once escaped", whole[:-1] + rb',"t\u0061sk":"pick-mug"}', "duplicate-key"),
        malformed(55, "task twice, with spaces", whole[:-1] + b' , "task" : "pick-mug" }', "duplicate-key"),
        malformed(55, "robot null and given", whole[:-1] + b',"robot":null,"robot":"x"}', "duplicate-key"),
        malformed(55, "policy's name twice", spliced('{"name":"a","version":"1","name":"a"}', policy=HERE), "duplicate-key"),
        malformed(55, "simulator's name twice", spliced('{"name":"a","version":"1","name":"a"}', simulator=HERE), "duplicate-key"),
        malformed(55, "a count twice", spliced('{"violations":1,"violations":0}', safety=HERE), "duplicate-key"),
        malformed(55, "a note twice", spliced('{"note":"a","note":null}', failure=HERE), "duplicate-key"),
        *(
            malformed(55, f"a name of {name} twice", spliced(f'{{"a":{value},"a":{value}}}', **{name: HERE}), "duplicate-key")
            for name, value in (
                ("conditions", "1"),
                ("signals", "1"),
                ("metrics", "1"),
                ("provenance", "1"),
                ("links", '"https://x.example"'),
            )
        ),
        malformed(55, "a name of the contract twice", spliced('{"a":1,"a":2}', contract=HERE), "duplicate-key"),
        malformed(55, "a name deep in the contract twice", spliced('{"b":[{"a":1,"a":2}]}', contract=HERE), "duplicate-key"),
        malformed(
            55, "a name twice, composed and not", spliced('{"caf\u00e9":1,"cafe\u0301":2}', conditions=HERE), "duplicate-key"
        ),
        malformed(55, "a name twice beside a colon in a text", spliced('{"a":1,"a":2}', conditions=HERE, robot='x":y'), "duplicate-key"),
        accepted(55, "no name twice, but colons in texts", written(conditions={"label": 'a":b', 'c":d': "e"}), reads=(LABEL, 'a":b')),
        refused(56, "unknown field", written(colour=MARKER), "unknown-field", "/colour"),
        refused(56, "a field in other case", written(Reward=1), "unknown-field", "/Reward"),
        *(
            refused(56, f"unknown field in {name}", written(**{name: value | {"colour": MARKER}}), "unknown-field")
            for name, value in (
                ("policy", {"name": "a", "version": "1"}),
                ("failure", {}),
                ("safety", {}),
                ("simulator", {"name": "a", "version": "1"}),
            )
        ),
        refused(56, "as many unknown fields as fit", lambda: json.dumps({f"{i:x}": 0 for i in range(90_000)}).encode(), "unknown-field"),
        batch(
            56, "as many unknown fields as fit in a batch", 422,
            lambda: b"[%s]" % b",".join([json.dumps({f"{i:x}": 0 for i in range(80_000)}).encode()] * 20), code="unknown-field",
            quarantined=20,
        ),
    ]
    for name in ("id", "domain", "policy", "task", "started_at", "outcome"):
        without = {key: value for key, value in record().items() if key != name}
        found += [
            refused(57, f"no {name}", json.dumps(without).encode(), "missing", f"/{name}"),
            refused(57, f"{name} null", json.dumps(without | {name: None}).encode(), "missing", f"/{name}"),
        ]
    found += [
        refused(57, "empty object", b"{}", "missing", "/id"),
        refused(57, "no version of the policy", written(policy={"name": MARKER}), "missing"),
        refused(57, "real without deployment", written(deployment=None), "missing", "/deployment"),
        refused(57, "sim without simulator", written(domain="sim"), "missing", "/simulator"),
        accepted(
            57,
            "optional fields null",
            json.dumps(
                record() | dict.fromkeys(("robot", "reward", "conditions", "failure", "contract", "links", "embedding", "stage"))
            ).encode(),
        ),
    ]
    many = {f"k{i}": 1 for i in range(10_000)}
    found += [
        *(
            refused(58, f"10 000 {name}", written(**{name: many}), "bad-length", f"/{name}")
            for name in ("conditions", "metrics", "signals")
        ),
        refused(58, "10 000 provenance", written(provenance=many), "bad-length", "/provenance"),
        refused(58, "10 000 links", written(links=dict.fromkeys(many, "https://x.example")), "bad-length", "/links"),
        refused(58, "10 000 labels", written(failure={"labels": list(many)}), "bad-length", "/failure/labels"),
        refused(58, "10 000 dimensions", written(embedding=[0.5] * 10_000), "bad-length", "/embedding"),
        Case(
            58, "60 000 bad conditions", 422, lambda: written(conditions={f"{i:x}": [] for i in range(60_000)}), None,
            quarantined=1,
        ),
    ]
    large = MARKER + "x" * 1_000_000
    found += [
        refused(59, "condition of 1 MB", written(conditions={"a": large}), "bad-length", "/conditions/a"),
        refused(59, "condition of 1 MB beside many brackets", written(conditions={"a": large}, site="[" * 99), "bad-length", "/conditions/a"),
        refused(59, "provenance of 1 MB", written(provenance={"a": large}), "bad-length", "/provenance/a"),
        refused(59, "note of 1 MB", written(failure={"note": large}), "bad-length", "/failure/note"),
        refused(59, "label of 1 MB", written(failure={"labels": [large]}), "bad-length"),
        refused(59, "contract of 1 MB", written(contract={"a": large}), "too-large", "/contract"),
        refused(59, "name of a condition of 1 MB", written(conditions={"x" * 1_000_000: 1}), "bad-length", secrets=(MARKER, "x" * 100)),
        Case(59, "condition of more than a body", 413, written(conditions={"a": large * 2}), "body-too-large"),
        *(
            refused(59, f"empty name of {name}", written(**{name: {"": 1, "note": 2}}), "bad-length")
            for name in ("conditions", "metrics", "signals", "provenance")
        ),
        refused(59, "empty name of links", written(links={"": "https://x.example"}), "bad-length"),
        *(
            refused(60, f"{name} of 9 kB", written(**{name: MARKER + "x" * 9_000}), "bad-length", f"/{name}")
            for name in ("id", "task", "deployment", "robot", "site", "session", "pair")
        ),
        refused(60, "policy's name of 9 kB", written(policy={"name": MARKER + "x" * 9_000, "version": "1"}), "bad-length", "/policy/name"),
        accepted(60, "id of 128 letters of four bytes", written(id="𝄞" * 128)),
        refused(61, "empty id", written(id=""), "bad-length", "/id"),
        *(
            refused(61, f"id {words}", written(id=text), "bad-id", "/id")
            for words, text in (
                ("blank", "   "),
                ("with a slash", f"{MARKER}/b"),
                ("with a question mark", f"{MARKER}?b"),
                ("with a hash", f"{MARKER}#b"),
                ("with a percent", f"{MARKER}%2Fb"),
                ("with a backslash", f"{MARKER}\\b"),
                ("with a space", f"{MARKER} b"),
                ("with a new line at its end", f"{MARKER}\n"),
                ("with a wide space", f"{MARKER}\u3000b"),
            )
        ),
        *(
            accepted(
                62, f"condition named {name}", written(conditions={name: "x"}),
                reads=("SELECT CAST(levels AS text) FROM condition_sets WHERE project_id = :p", json.dumps({name: "x"})),
            )
            for name in ("__proto__", "constructor", "toString", "hasOwnProperty")
        ),
    ]
    return found


STRING_PLACES = (
    ("id", {"id": HERE}),
    ("task", {"task": HERE}),
    ("deployment", {"deployment": HERE}),
    ("robot", {"robot": HERE}),
    ("site", {"site": HERE}),
    ("session", {"session": HERE}),
    ("pair", {"pair": HERE}),
    ("policy", {"policy": {"name": HERE, "version": "1"}}),
    ("version", {"policy": {"name": "a", "version": HERE}}),
    ("simulator", {"simulator": {"name": HERE, "version": "1"}}),
    ("condition", {"conditions": {"a": HERE}}),
    ("name of a condition", {"conditions": {HERE: "a"}}),
    ("name of a signal", {"signals": {HERE: 1}}),
    ("name of a metric", {"metrics": {HERE: 1}}),
    ("phase", {"failure": {"phase": HERE}}),
    ("label", {"failure": {"labels": [HERE]}}),
    ("note", {"failure": {"note": HERE}}),
    ("name of a link", {"links": {HERE: "https://x.example"}}),
    ("link", {"links": {"video": HERE}}),
    ("provenance", {"provenance": {"a": HERE}}),
    ("name of a provenance", {"provenance": {HERE: "a"}}),
    ("contract", {"contract": {"a": [HERE]}}),
    ("name in a contract", {"contract": {"b": {HERE: 1}}}),
)


def text_lines() -> list[Case]:
    """63-75."""
    found = []
    for place, fields in STRING_PLACES:
        before = "https://x.example/" if place == "link" else ""
        # Names are told, to say where; values are not.
        secret = "name" if place.startswith("name ") else MARKER
        found += [
            refused(63, f"U+0000 as {place}", spliced(rf'"{before}{secret}\u0000x"', **fields)),
            malformed(63, f"a byte of zero as {place}", spliced(b'"%sa\0x"' % before.encode(), **fields)),
            *(
                malformed(64, f"{surrogate} as {place}", spliced(f'"{before}{secret}{surrogate}x"', **fields))
                for surrogate in (r"\ud800", r"\udc00", r"\ud800\u0041", r"\udc00\ud800")
            ),
        ]
    found += [
        *(
            accepted(63, f"other escapes {words}", spliced(r'"\u00fc\u0001"', **fields), reads=(sql, "ü\x01"))
            for words, fields, sql in (
                ("in a label", {"conditions": {"label": HERE}}, LABEL),
                ("beside a contract", {"conditions": {"label": HERE}, "contract": {"a": 1}}, LABEL),
                ("in a contract", {"contract": {"a": HERE}}, "SELECT body->>'a' FROM contracts WHERE project_id = :p"),
            )
        ),
        batch(
            64, "lone surrogate in one of a batch", 200, b"[%s,%s]" % (written(), spliced(r'"\ud800"', task=HERE)), code="malformed-json",
            stored=1, quarantined=1, answer={"sent": 2, "accepted": 1, "rejected": 1},
        ),
        accepted(64, "a pair of surrogates", spliced(r'"\ud83e\udd16"', conditions={"label": HERE}), reads=(LABEL, "🤖")),
    ]
    composed = record(id="caf\u00e9-1")
    decomposed = composed | {"id": "cafe\u0301-1"}
    labelled = record(conditions={"label": "cafe\u0301", "\u00e9": 1, "e\u0301a": 2}, failure={"note": "cafe\u0301"})
    escaped, plain = json.dumps(labelled).encode(), json.dumps(labelled, ensure_ascii=False).encode()
    found += [
        accepted(65, "id in NFD", json.dumps(decomposed).encode(), reads=column("id", "caf\u00e9-1"), answer={"id": "caf\u00e9-1"}),
        *(
            Case(
                65, f"same id, {words}", 200, json.dumps(then).encode(), first=(json.dumps(one).encode(),), stored=1,
                answer={"status": "duplicate", "id": "caf\u00e9-1"},
            )
            for words, one, then in (("NFC then NFD", composed, decomposed), ("NFD then NFC", decomposed, composed))
        ),
        *(
            Case(
                65, f"a label in NFD, {words}", 200, then, first=(one,), stored=1, answer={"status": "duplicate"},
            )
            for words, one, then in (("escaped, then not", escaped, plain), ("not escaped, then so", plain, escaped))
        ),
        batch(
            65, "same id in NFC and NFD in a batch", 200, batch_of(composed, decomposed), stored=1, answer={"accepted": 1, "duplicates": 1}
        ),
    ]
    for words, sign in (("U+202E", "\u202e"), ("U+200B", "\u200b"), ("U+FEFF", "\ufeff"), ("U+2066", "\u2066")):
        found += [
            refused(66, f"{words} in an id", written(id=f"{MARKER}{sign}b"), "bad-id", "/id"),
            refused(66, f"{words} in a deployment", written(deployment=f"{MARKER}{sign}b"), "bad-name", "/deployment"),
            refused(66, f"{words} in a policy", written(policy={"name": f"{MARKER}{sign}b", "version": "1"}), "bad-name", "/policy/name"),
            kept(66, f"{words} in a label", f"a{sign}b"),
        ]
    for words, sign in (("U+0001", "\x01"), ("U+001B", "\x1b"), ("U+007F", "\x7f"), ("U+0085", "\x85"), ("tab", "\t")):
        found += [
            refused(67, f"{words} in an id", written(id=f"{MARKER}{sign}b"), "bad-id", "/id"),
            refused(67, f"{words} in a task", written(task=f"{MARKER}{sign}b"), "bad-name", "/task"),
            kept(67, f"{words} in a label", f"a{sign}b"),
        ]
    found += [
        refused(68, "10 000 combining marks", written(conditions={"label": "a" + "\u0301" * 10_000}), "bad-length", "/conditions/label"),
        refused(68, "an id of 10 000 combining marks", written(id="a" + "\u0301" * 10_000), "bad-length", "/id"),
        kept(68, "a hundred combining marks", "q" + "\u0301" * 100),
        kept(68, "emoji joined", "👩🏽‍🚀👨‍👩‍👧‍👦🏴󠁧󠁢󠁳󠁣󠁴󠁿"),
        kept(69, "script", "<script>alert(1)</script>"),
        kept(70, "end of script", "</script><script>alert(1)</script>"),
        *(kept(71, text, text) for text in ('<a href="javascript:alert(1)">x</a>', "<b>x</b>", r"$\href{javascript:alert(1)}{x}$")),
        *(kept(72, repr(text), text) for text in ("=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1")),
        refused(72, "a leading U+0000", spliced(r'"\u0000=1"', conditions={"label": HERE})),
        *(kept(73, text, text) for text in ("'; DROP TABLE episodes; --", "{{7*7}}", "${7*7}", "%s%n%x", "%(p)s :p $1")),
        accepted(
            73, "SQL as the name of a task", written(task="'); DROP TABLE episodes; --"),
            reads=("SELECT name FROM tasks WHERE project_id = :p", "'); DROP TABLE episodes; --"),
        ),
        *(kept(74, repr(text), text) for text in ("a\r\nBcc: x@example.com", "a\nb", 'a\n{"level":"error"}')),
        refused(74, "new lines in a robot", written(robot=f"{MARKER}\r\nBcc: x@example.com"), "bad-name", "/robot"),
        *(kept(75, text, text) for text in ("<!channel>", "<@U1>", "*x* _y_ `z`", "&amp;<https://x.example|y>")),
    ]
    return found


def link_lines() -> list[Case]:
    """76 and 77. A record has no file names; the names that could become one are those of links and addresses."""
    found = []
    for text in ("../../etc/passwd", "/etc/passwd", "\\\\host\\share", "C:\\x"):
        found += [
            refused(76, f"deployment {text}", written(deployment=text), "bad-name", "/deployment"),
            refused(76, f"id {text}", written(id=text), "bad-id", "/id"),
            refused(76, f"link named {text}", written(links={text: "https://x.example/a"})),
        ]
    for url in (
        f"file:///etc/passwd?{MARKER}",
        f"javascript:alert('{MARKER}')",
        f"data:text/html,{MARKER}",
        f"http://x.example/{MARKER}",
        f"//x.example/{MARKER}",
        f" https://x.example/{MARKER}",
        f"vbscript:{MARKER}",
        MARKER,
    ):
        found.append(refused(77, f"link {url}", written(links={"video": url}), "bad-link", "/links/video"))
    found.append(
        accepted(
            77, "https link", written(links={"video": "https://x.example/a?b=c#d"}),
            reads=column("links->>'video'", "https://x.example/a?b=c#d"),
        )
    )
    return found


def time_lines() -> list[Case]:
    """78-87."""

    def at(value: Any) -> bytes:
        return written(started_at=value)

    def skewed(**by: float) -> tuple[Callable[[], bytes], Callable[[], dict[str, str]]]:
        """An episode that started five minutes ago and is sent now, both by a clock that is wrong."""
        started = {**by, "minutes": by.get("minutes", 0) - 5}
        return lambda: at(ahead(**started)), lambda: JSON | {"Gapwatch-Sent-At": ahead(**by)}

    def corrected(seconds: float) -> tuple[str, Callable[[Any], bool]]:
        sql = "SELECT ARRAY[clock_skew_s, extract(epoch FROM now() - started_at)] FROM episodes WHERE project_id = :p"
        return sql, lambda found: abs(float(found[0]) - seconds) < 10 and abs(float(found[1]) - 300) < 20

    found = [
        refused(78, "naive time", at("2026-01-01T00:00:00"), "offset-required", "/started_at"),
        *(refused(79, f"{value!r}", at(value), "wrong-type", "/started_at") for value in (1767225600, 1767225600000, 1767225600.5, True)),
        *(refused(79, f"{value!r}", at(value), "bad-time", "/started_at") for value in ("1767225600", "1767225600000", "now", MARKER, "")),
        *(
            refused(80, text, at(text), "bad-time", "/started_at")
            for text in (
                *("2026-01-01", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00+25:00", "2026-01-01T00:00:60Z"),
                *("2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01T00:00Z", "2026-01-01T00:00:00+01"),
                *("20260101T000000Z", "2026-W01-1T00:00:00Z", "2026-01-01T00:00:00Z ", "2026-01-01T00:00:00 Europe/Berlin"),
            )
        ),
        *(
            refused(81, text, at(text), "out-of-range", "/started_at")
            for text in ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "1970-01-01T00:00:00Z", "1999-12-31T23:59:59Z")
        ),
        *(refused(81, text, at(text), "clock-skew", "/started_at") for text in ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00")),
        *(
            refused(81, text, at(text), "bad-time", "/started_at")
            for text in ("infinity", "-infinity", "294276-01-01T00:00:00Z", "-0001-01-01T00:00:00Z")
        ),
        accepted(81, "the first instant of 2000", at("2000-01-01T00:00:00Z")),
        accepted(81, "another offset", at("2026-01-01T05:30:00+05:30"), reads=column(STARTED, "2026-01-01 00.00.00.000000")),
    ]
    for words, by, seconds in (
        ("3 h ahead", {"hours": 3}, 10_800),
        ("30 h ahead", {"hours": 30}, 108_000),
        ("3 h behind", {"hours": -3}, -10_800),
        ("90 s ahead", {"seconds": 90}, 90),
    ):
        body, headers = skewed(**by)
        about = pytest.approx(seconds, abs=10)
        found.append(accepted(82, f"clock {words}, told", body, headers=headers, answer={"clock_skew_s": about}, reads=corrected(seconds)))
    body, headers = skewed(hours=3)
    found += [
        batch(
            82, "clock 3 h ahead, told, in a batch", 200, lambda: b"[%s]" % body(), headers=headers, stored=1,
            answer={"accepted": 1, "clock_skew_s": pytest.approx(10_800, abs=10)}, reads=corrected(10_800),
        ),
        accepted(
            82, "clock 20 s ahead is right enough", skewed(seconds=20)[0], headers=skewed(seconds=20)[1],
            reads=column("clock_skew_s IS NULL AND now() - started_at < interval '290 s'", True),
        ),
        accepted(
            82, "clock 3 h ahead, not told", lambda: at(ahead(hours=3)), reads=column("clock_skew_s IS NULL AND started_at > now()", True),
        ),
        refused(83, "clock 25 h ahead", lambda: at(ahead(hours=25)), "clock-skew", "/started_at"),
        batch(
            83, "clock 25 h ahead in one of a batch", 200, lambda: batch_of(record(), record(started_at=ahead(hours=25))),
            code="clock-skew", pointer="/started_at", stored=1, quarantined=1, answer={"accepted": 1, "rejected": 1},
        ),
        accepted(83, "clock 23 h ahead", lambda: at(ahead(hours=23))),
        # A record has a start and a duration, so the end is before the start when the duration is negative.
        refused(84, "end before start", written(duration_s=-0.001), "out-of-range", "/duration_s"),
        refused(84, "an end of its own", written(ended_at="2026-01-01T00:00:00Z"), "unknown-field", "/ended_at"),
    ]
    later, earlier = (record(id="a", started_at="2026-03-01T12:00:00Z"), record(id="b", started_at="2026-03-01T11:00:00Z"))
    found += [
        accepted(
            85, "clock jumps back", json.dumps(earlier).encode(), first=(json.dumps(later).encode(),), stored=2,
            reads=column("array_agg(id ORDER BY seq)", ["a", "b"]),
        ),
        accepted(86, "nanoseconds", at("2026-01-01T00:00:00.123456789Z"), reads=column(STARTED, "2026-01-01 00.00.00.123457")),
        accepted(86, "nanoseconds before midnight", at("2025-12-31T23:59:59.999999999Z"), reads=column(STARTED, "2026-01-01 00.00.00.000000")),
        # That old windows are recomputed and page nobody is tested with the rollups and alerts.
        accepted(87, "3 days late", lambda: at(ahead(days=-3)), reads=column("now() - started_at > interval '71 hours'", True)),
    ]
    return found


def repeat_lines() -> list[Case]:
    """88-90; 91 to 100 are functions."""
    one = record()
    body = json.dumps(one).encode()
    reordered = json.dumps(dict(reversed(one.items())), indent=2).encode()
    outcome = column("outcome", "success")
    # The id is the retry key, so an Idempotency-Key adds nothing: the id alone decides.
    keyed = JSON | {"Idempotency-Key": "k-1"}
    return [
        Case(88, "same id, same content", 200, body, first=(body,), stored=1, answer={"id": one["id"], "status": "duplicate"}),
        Case(88, "same content in another order", 200, reordered, first=(body,), stored=1, answer={"status": "duplicate"}),
        batch(88, "same batch again", 200, b"[%s]" % body, first=(b"[%s]" % body,), stored=1, answer={"accepted": 0, "duplicates": 1}),
        Case(
            89, "same id, other content", 409, json.dumps(one | {"outcome": "failure"}).encode(), "episode-conflict", "/id", first=(body,),
            stored=1, reads=outcome,
        ),
        Case(
            89, "same id, an optional field more", 409, json.dumps(one | {"robot": MARKER}).encode(), "episode-conflict", "/id",
            first=(body,), stored=1, reads=outcome,
        ),
        Case(
            90, "same Idempotency-Key, other content of the id", 409, json.dumps(one | {"outcome": "failure"}).encode(), "episode-conflict",
            "/id", first=(body,), stored=1, headers=keyed, reads=outcome,
        ),
        accepted(90, "same Idempotency-Key, other id", written(), first=(body,), stored=2, headers=keyed),
    ]


CASES = [
    *first_lines(),
    *packed_lines(),
    *address_lines(),
    *batch_lines(),
    *number_lines(),
    *shape_lines(),
    *text_lines(),
    *link_lines(),
    *time_lines(),
    *repeat_lines(),
]

# fmt: on

# The functions of test_connections.py, by the lines they are about.
ELSEWHERE = {
    "test_a_declared_length_over_the_limit_is_refused_before_the_body_is_sent": {19},
    "test_chunks_beyond_the_limit_are_refused_while_they_come": {20},
    "test_slow_requests_are_ended_after_fifteen_seconds_and_hold_up_nobody": {21, 22},
    "test_a_client_that_goes_away_in_the_middle_of_its_body_leaves_no_trace": {23},
    "test_a_client_that_goes_away_after_its_body_can_ask_again": {24},
    "test_a_request_whose_length_is_ambiguous_is_refused_and_what_follows_it_is_not_read": {25},
    "test_a_head_of_more_than_64_kib_is_refused": {27},
    "test_fifty_equal_posts_at_once_store_one_episode": {91},
    "test_the_same_id_in_two_projects_is_two_episodes": {92},
    "test_the_key_decides_the_project_whatever_the_body_says": {93},
    "test_every_key_that_is_not_valid_gets_the_same_answer": {94},
    "test_a_key_of_another_scope_is_refused": {95},
    "test_a_key_in_the_address_is_not_taken_and_not_logged": {96},
    "test_a_header_that_is_no_key_is_refused": {97},
    "test_a_sender_over_its_rate_is_told_when_to_come_back": {98},
    "test_without_postgres_the_answer_is_503_and_a_time_to_retry": {99},
    "test_with_a_full_disk_the_answer_is_507_and_a_time_to_retry": {99},
    "test_without_redis_episodes_are_accepted": {100},
}


def assert_refused(
    answer: httpx.Response, status: int, code: str | None = None, secrets: tuple[str, ...] = (MARKER,)
) -> dict[str, Any]:
    """The one shape of every error; the code stands in the type or among the errors."""
    assert answer.status_code == status, answer.text[:2000]
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert set(body) == MEMBERS
    assert body["status"] == status
    assert re.fullmatch(r"/problems/[a-z0-9-]+", body["type"])
    assert body["title"]
    assert body["detail"]
    assert re.fullmatch(r"/requests/[A-Za-z0-9._-]{8,64}", body["instance"])
    assert body["instance"] == f"/requests/{answer.headers.get('x-request-id', body['instance'][10:])}"
    for fault in body["errors"]:
        assert {"pointer", "code", "message"} <= set(fault) <= {"pointer", "code", "message", "index"}
        assert re.fullmatch(r"[a-z0-9-]+", fault["code"])
        assert fault["message"]
    codes = {fault["code"] for fault in body["errors"]}
    assert code is None or code == body["type"].removeprefix("/problems/") or code in codes, body["errors"][:20]
    for secret in secrets:
        assert secret not in answer.text
    return body


def send(client: httpx.Client, case: Case) -> httpx.Response:
    headers = case.headers() if callable(case.headers) else case.headers
    for body in case.first:
        assert client.request(case.method, case.path, content=body, headers=headers).is_success
    body = case.body() if callable(case.body) else case.body
    return client.request(case.method, case.path, content=body, headers=headers)


def check(case: Case, project: Project, client: httpx.Client) -> None:
    answer = send(client, case)
    assert answer.elapsed.total_seconds() < ANSWERED_WITHIN_S
    if case.status >= 400:
        body = assert_refused(answer, case.status, case.code, case.secrets)
    else:
        assert answer.status_code == case.status, answer.text[:2000]
        body = answer.json()
        assert {name: body.get(name) for name in case.answer} == case.answer
        if "sent" in body:
            assert body["sent"] == sum(body[n] for n in ("accepted", "duplicates", "conflicts", "rejected"))
        for secret in case.secrets:
            assert secret not in json.dumps(body.get("errors", []))
    faults = body.get("errors", [])
    if case.code is not None and case.status < 400:
        assert case.code in {fault["code"] for fault in faults}
    if case.pointer is not None:
        named = {fault["pointer"] for fault in faults if case.code in {None, fault["code"]}}
        assert any(f"{pointer}/".startswith(f"{case.pointer}/") for pointer in named), faults[:20]
    if case.path == "/episodes/batch" and case.status in {200, 422} and case.quarantined:
        assert all(isinstance(fault["index"], int) for fault in faults)
    for name, value in case.answer_headers.items():
        assert value in answer.headers[name]
    assert project.stored() == case.stored
    in_quarantine = project.value("SELECT count(*) FROM rejected_records WHERE project_id = :p")
    assert case.quarantined is None or in_quarantine == case.quarantined
    if case.reads is not None:
        sql, expected = case.reads
        value = project.value(sql)
        assert expected(value) if callable(expected) else value == expected


@contextlib.contextmanager
def own_project(service: Service, database: Database, scope: str) -> Iterator[tuple[Project, httpx.Client]]:
    """A project with one key, and a client that spends no time on certificates: there are many cases."""
    slug = f"project-{uuid.uuid4().hex[:12]}"
    secret = Settings(data_dir=service.data_dir).server_secret()
    key = make_key(database, secret, project=slug, scope=scope, name="test")
    project = Project(slug, 0, service.url, {scope: key}, database)
    project.id = project.value("SELECT id FROM projects WHERE slug = :slug", slug=slug)
    with project.client(scope, verify=False) as client:
        yield project, client


@pytest.fixture(scope="module")
def database_of_service(service: Service) -> Iterator[Database]:
    database = Database(service.database_url)
    yield database
    database.close()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_line(case: Case, service: Service, database_of_service: Database):
    with own_project(service, database_of_service, case.scope) as (project, client):
        check(case, project, client)


def test_no_case_of_the_table_leaves_a_value_or_a_key_in_the_log(service, project):
    """Runs after the table, on the log of the same service."""
    with project.client() as client:
        client.post(
            "/episodes", content=written(outcome=MARKER), headers=JSON | {"X-Request-Id": "after-the-table"}
        )
    wait_until(lambda: "after-the-table" in service.log, what="the log line")
    assert MARKER not in service.log
    assert "Bearer gw_" not in service.log


def test_a_batch_names_the_one_bad_record_by_its_place(project):
    [case] = [case for case in CASES if case.words == "1 bad of 100"]
    with project.client() as client:
        errors = send(client, case).json()["errors"]
    assert [(fault["index"], fault["pointer"]) for fault in errors] == [(37, "/outcome")]


def test_a_record_sent_again_with_another_measure_of_the_clock_is_a_duplicate(project):
    """The difference of the clocks is measured anew with every request, and a little different each time."""
    body = written(started_at=ahead(hours=3))
    with project.client() as client:
        answers = [
            client.post(
                "/episodes", content=body, headers=JSON | {"Gapwatch-Sent-At": ahead(hours=3, seconds=late)}
            )
            for late in (0, 0.4, 2, 7)
        ]
        answers.append(client.post("/episodes", content=body, headers=JSON))
    assert [answer.status_code for answer in answers] == [201, 200, 200, 200, 200]
    assert {answer.json()["status"] for answer in answers[1:]} == {"duplicate"}
    assert project.stored() == 1


@pytest.mark.parametrize(
    "marks", ["\u0301\u0323" * 30_000, "\u0301" * 30_000 + "\u0323" * 30_000], ids=["mixed", "two runs"]
)
def test_combining_marks_in_disorder_cost_no_more_than_others(project, marks):
    """Bringing them into order takes time that grows with the square of their number."""
    body = json.dumps(record(conditions={"label": f"a{marks}"}), ensure_ascii=False).encode()
    with project.client() as client:
        for sent in (body, b"{" + body):
            answer = client.post("/episodes", content=sent, headers=JSON)
            assert_refused(answer, answer.status_code)
            assert answer.status_code in {400, 422}
            assert answer.elapsed.total_seconds() < 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('"' + r"\"" * 20_000, id="a text without end, of quotes"),
        pytest.param('"' + "\\" * 40_001, id="a text without end, of backslashes"),
        pytest.param('"' + "a" * 40_000, id="a text without end"),
        pytest.param('"",' * 13_000, id="empty texts"),
        pytest.param(r'"\ud800",' * 4_000, id="lone surrogates"),
        pytest.param("7" * 40_000, id="digits"),
        pytest.param("1e" + "7" * 40_000, id="digits of an exponent"),
        pytest.param("-" * 40_000, id="signs"),
        pytest.param("[" * 20_000 + "]" * 20_000, id="brackets"),
        pytest.param('{"a":' * 8_000, id="open objects"),
        pytest.param("{" + '"a":1,' * 6_000 + '"b":2}', id="a name again and again"),
        pytest.param("[]" * 20_000, id="empty arrays"),
        pytest.param(" \n" * 20_000, id="blanks"),
        pytest.param("\u0301\u0323" * 20_000, id="marks"),
    ],
)
def test_bodies_made_to_be_slow_are_answered_in_time(project, text):
    """40 kB each: what costs the square of its length takes seconds."""
    places = ({"contract": HERE}, {"conditions": {"label": HERE}}, {"task": HERE}, {"colour": HERE})
    with project.client() as client:
        for body in (*(spliced(text, **fields, site="[" * 40) for fields in places), b"[" * 40 + text.encode()):
            for path, headers, sent in (
                ("/episodes", JSON, body),
                ("/episodes/batch", JSON, b"[%s]" % body),
                ("/episodes/batch", NDJSON, body.replace(b"\n", b" ")),
            ):
                answer = client.post(path, content=sent, headers=headers)
                assert answer.elapsed.total_seconds() < 2, (path, body[:100])
                assert answer.status_code in {400, 422}


@pytest.mark.parametrize("depth", [*range(30, 40), *range(100, 1100, 50), 2_000, 20_000])
def test_no_depth_is_too_much_for_us(project, depth):
    """Between what is refused as too deep and what cannot be read there is no depth that fails."""
    with project.client() as client:
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            text = opening * depth + "0" + closing * depth
            for body in (
                text.encode(),
                *(
                    spliced(text, **fields)
                    for fields in (
                        {"contract": HERE},
                        {"conditions": {"a": HERE}},
                        {"task": HERE},
                        {"colour": HERE},
                    )
                ),
            ):
                for path, headers, sent in (
                    ("/episodes", JSON, body),
                    ("/episodes/batch", JSON, b"[%s]" % body),
                    ("/episodes/batch", NDJSON, body),
                ):
                    answer = client.post(path, content=sent, headers=headers)
                    if not (answer.is_success and depth <= 32):
                        assert answer.status_code in {400, 422}, (path, sent[:200])
                        assert_refused(answer, answer.status_code)


class Watch:
    """The largest resident size of a process while the block runs, looked at every 20 ms."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.at_first = self.peak = self._process.memory_info().rss

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(0.02):
            self.peak = max(self.peak, self._process.memory_info().rss)


@pytest.mark.timeout(300)
def test_no_line_of_the_catalogue_makes_the_web_process_grow_by_more_than_64_mb(tmp_path):
    service = start_service(reachable(tmp_path) / "data")
    database = Database(service.database_url)
    try:
        with own_project(service, database, "ingest") as (_, client):
            for _ in range(200):
                assert client.post("/episodes", json=record()).status_code == 201
            for _ in range(5):
                client.post("/episodes/batch", json=[record() for _ in range(200)]).raise_for_status()
                client.post("/episodes", content=b"{}", headers=JSON)
        [web] = service.children("gapwatch web")
        grown: dict[str, int] = {}
        with Watch(web) as watch:
            for case in CASES:
                before = watch.peak
                with (
                    own_project(service, database, case.scope) as (_, client),
                    contextlib.suppress(httpx.TimeoutException),
                ):
                    send(client, case)
                time.sleep(0.02 if callable(case.body) else 0)
                if watch.peak > before:
                    grown[str(case)] = (watch.peak - watch.at_first) // MIB
        assert service.children("gapwatch web") == [web]
        over = {words: f"{size} MiB" for words, size in grown.items() if size > 64}
        assert not over, f"the peak grew past 64 MiB, and further, with these: {over}"
    finally:
        database.close()
        service.stop()


def test_every_line_of_the_catalogue_is_covered():
    tree = ast.parse(Path(__file__).with_name("test_connections.py").read_text())
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert set(ELSEWHERE) <= defined
    covered = {case.line for case in CASES}.union(*ELSEWHERE.values())
    assert covered == set(range(1, 101))
