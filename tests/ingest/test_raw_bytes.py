"""Whatever bytes come, the answer is a success that stored something or an error in the one shape; never a 5xx.

The seeds are fixed, so a run repeats. GAPWATCH_FUZZ_SECONDS makes it longer: every further round has a seed of its
own.
"""

import gzip
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
import zstandard
from hypothesis import HealthCheck, Phase, event, given, note, seed, settings
from hypothesis import strategies as st
from ingest.refusals import ANSWERED_WITHIN_S, assert_refused

from parts import Project, episode

SECONDS = float(os.environ.get("GAPWATCH_FUZZ_SECONDS", "15"))
FAMILIES = 4
EXAMPLES_A_ROUND = 40
PATHS = ("/episodes", "/episodes/batch")


class Verbatim(str):
    """JSON text that is written as it is, whether it is JSON or not."""


class Pairs(list):
    """An object as its pairs, so that a name may stand twice."""


ODD_NUMBERS = (
    *(
        "NaN",
        "Infinity",
        "-Infinity",
        "1e400",
        "-1e400",
        "1e-400",
        "-1e-400",
        "1e200000",
        "-0",
        "-0.0",
        "01",
        "1.",
        ".5",
    ),
    *(
        "+1",
        "0x10",
        "1_000",
        "1e",
        "--1",
        "9" * 20,
        "9" * 400,
        "9" * 4300,
        "9" * 4301,
        "0." + "3" * 5000,
        "1e" + "9" * 50,
    ),
    *map(str, (2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, -(2**31))),
)
ODD_TEXTS = (
    *(
        r'"\ud800"',
        r'"\udc00x"',
        r'"\ud800\ud800"',
        r'"\u0000"',
        r'"a\u0000b"',
        r'"\u202e"',
        r'"\ufeff"',
        '"\x01"',
    ),
    *(
        '"',
        '"\\',
        r'"\x41"',
        r'"\u12"',
        '"\n"',
        "'x'",
        '"' + "x" * 2000 + '"',
        '"' + "\u0301" * 2000 + '"',
        '""',
        '" "',
    ),
    *('"2026-01-01"', '"2026-01-01T00:00:00"', '"0001-01-01T00:00:00+23:59"', '"9999-12-31T23:59:59-23:59"'),
    *(
        '"2026-01-01T00:00:00.123456789Z"',
        '"infinity"',
        '"https://"',
        '"https://x.example"',
        '"../.."',
        '"sim"',
        '"real"',
    ),
)
ODD_REST = (
    "",
    "null",
    "true",
    "True",
    "None",
    "undefined",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "//",
    "/*",
    "{,}",
    "[,]",
    '{"a"}',
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=30),
    st.sampled_from((*ODD_NUMBERS, *ODD_TEXTS, *ODD_REST)).map(Verbatim),
)
names = st.one_of(
    st.text(max_size=10), st.sampled_from((*episode(), "a", "", "version", "labels", "__proto__", "x" * 129))
)
json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(names, inner, max_size=4),
        st.lists(st.tuples(names, inner), max_size=4).map(Pairs),
    ),
    max_leaves=12,
)
deep_values = st.builds(
    lambda depth, kind, closed: Verbatim(kind[0] * depth + ("0" + kind[1] * depth if closed else "")),
    st.sampled_from((2, 31, 32, 33, 200, 500, 990, 1100, 5000, 50_000)),
    st.sampled_from((("[", "]"), ('{"a":', "}"))),
    st.booleans(),
)


def full_record(id_: str) -> dict[str, Any]:
    """A valid record with every field in it, the same whenever it is made: examples must repeat."""
    return episode(
        id=id_,
        policy={"name": "bin-pick", "version": "1.4.0"},
        robot="ur5e-012",
        site="berlin",
        simulator={"name": "mujoco", "version": "3.3.0"},
        stage="supervised",
        started_at="2025-11-12T10:11:12.131Z",
        duration_s=11.8,
        outcome="failure",
        reward=0.41,
        metrics={"cycle_time_s": 11.8, "energy_j": 210},
        conditions={"lighting": "dim", "clutter": 3, "human_present": False, "surface": None},
        signals={"peak_force_n": 31.2, "image_brightness": 0.31},
        failure={"phase": "contact", "labels": ["slip"], "category": "visual", "note": "lost grip"},
        safety={"violations": 0, "interventions": 1, "overrides": 1},
        session="am",
        pair="scene-17/seed-4",
        contract={"action_scale": 0.5, "joint_order": ["j1", "j2"], "frames": {"base": "map"}},
        embedding=[0.12, -0.4],
        links={"video": "https://x.example/v", "recording": "https://x.example/r"},
        provenance={"git_sha": "abc", "seed": 4, "evaluator": "auto", "human": True},
    )


def write(value: Any) -> str:
    """JSON, with what is verbatim in it; names and texts partly escaped, as writers differ."""
    if isinstance(value, Verbatim):
        return value
    if isinstance(value, dict | Pairs):
        pairs = value.items() if isinstance(value, dict) else value
        return "{" + ",".join(f"{write(str(name))}:{write(member)}" for name, member in pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write, value)) + "]"
    # As Python writes it: NaN, Infinity and lone surrogates too.
    return json.dumps(value, ensure_ascii=not isinstance(value, str) or len(value) % 2 == 0)


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def places(value: Any) -> Iterator[tuple[Pairs | list, int]]:
    """Every member of a tree, as its container and its index there."""
    if isinstance(value, Pairs):
        for index, (_, member) in enumerate(value):
            yield value, index
            yield from places(member)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield value, index
            yield from places(member)


def as_pairs(value: Any) -> Any:
    if isinstance(value, dict):
        return Pairs((name, as_pairs(member)) for name, member in value.items())
    return [as_pairs(member) for member in value] if isinstance(value, list) else value


@st.composite
def mutated_records(draw: Callable) -> str:
    """A valid record in which a few members are dropped, doubled, renamed or replaced."""
    tree = as_pairs(full_record(str(draw(st.uuids()))))
    for _ in range(draw(st.integers(0, 3))):
        found = list(places(tree))
        if not found:
            break
        container, index = found[draw(st.integers(0, len(found) - 1))]
        member = container[index]
        name, old = member if isinstance(container, Pairs) else (None, member)
        how = draw(st.sampled_from(("drop", "double", "rename", "replace", "deepen", "move")))
        event(how)
        if how == "drop":
            del container[index]
        elif how == "double":
            container.insert(draw(st.integers(0, len(container))), member)
        elif how == "move":
            container.append(container.pop(index))
        else:
            new = old if how == "rename" else draw(deep_values if how == "deepen" else json_values)
            if how == "rename" and name is not None:
                name = draw(names)
            container[index] = new if name is None else (name, new)
    return write(tree)


documents = st.one_of(
    st.binary(max_size=300),
    st.text(max_size=300).map(encode),
    st.lists(st.sampled_from((*b'{}[],:"\\0eE+-.tfn \n\xff\x00\xef\xbb\xbf',)), max_size=60).map(bytes),
)
json_documents = st.one_of(json_values, deep_values).map(write).map(encode)


@st.composite
def damaged_records(draw: Callable) -> bytes:
    """Bytes of a record, cut or overwritten anywhere."""
    raw = bytearray(encode(draw(mutated_records())))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(raw)))
        end = draw(st.sampled_from((at, at + 1, at + 10, len(raw))))
        raw[at:end] = draw(
            st.one_of(
                st.binary(max_size=4), st.sampled_from((b"", b"\xff", b"\0", b"\\", b'"', b"}", b"[", b"NaN"))
            )
        )
    return bytes(raw)


def batches(records: st.SearchStrategy[bytes]) -> st.SearchStrategy[tuple[str, bytes]]:
    several = st.lists(records, max_size=4)
    return st.one_of(
        several.map(lambda all_: ("application/json", b"[" + b",".join(all_) + b"]")),
        several.map(lambda all_: ("application/x-ndjson", b"\n".join(all_))),
    )


def squeeze(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


TYPES = (
    *(
        "application/json; charset=utf-8",
        "application/json;charset=utf-16",
        "application/json, text/html",
        "text/plain",
        "",
    ),
    *("application/json", "application/x-ndjson"),
)
printable = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
PACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": squeeze, "zstd": zstandard.compress, "identity": bytes}


def one_in(n: int) -> st.SearchStrategy[bool]:
    return st.sampled_from((False,) * (n - 1) + (True,))


@st.composite
def requests(draw: Callable, records: st.SearchStrategy[bytes]) -> tuple[str, bytes, dict[str, str]]:
    """Mostly what a sender would send, so that what is odd about it is reached."""
    if draw(one_in(2)):
        path, kind, body = "/episodes/batch", *draw(batches(records))
    else:
        path, kind, body = "/episodes", "application/json", draw(records)
    headers = {"Content-Type": kind}
    if draw(one_in(10)):
        path = draw(st.sampled_from(PATHS))
        headers["Content-Type"] = draw(st.sampled_from(TYPES) | printable)
    if draw(one_in(5)):
        encoding = draw(st.sampled_from((*PACKERS, "GZIP")))
        headers["Content-Encoding"] = encoding
        body = PACKERS[encoding.lower()](body)
        if draw(one_in(3)):
            cut = draw(st.integers(0, len(body)))
            body = body[:cut] + draw(st.binary(max_size=3))
    elif draw(one_in(20)):
        headers["Content-Encoding"] = draw(st.sampled_from(("gzip", "zstd", "br", "gzip, gzip", "")) | printable)
    if draw(one_in(8)):
        headers["Prefer"] = draw(
            st.sampled_from(("handling=strict", "handling=lenient", "handling = strict")) | printable
        )
    if draw(one_in(10)):
        headers["Gapwatch-Sent-At"] = draw(
            st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat) | printable
        )
    return path, body, headers


class Ledger:
    """Sends, and holds the service to what it answers."""

    def __init__(self, project: Project, client: httpx.Client) -> None:
        self._project = project
        self._client = client
        self._stored = 0
        self.answers: dict[int, int] = {}

    def post(self, path: str, body: bytes, headers: dict[str, str]) -> None:
        note(f"POST {path} {headers}\n{body[:2000]!r} … {len(body)} bytes")
        answer = self._client.post(path, content=body, headers=headers)
        assert answer.elapsed.total_seconds() < ANSWERED_WITHIN_S
        status = answer.status_code
        self.answers[status] = self.answers.get(status, 0) + 1
        event(f"{path} {status}")
        before, self._stored = self._stored, self._project.stored()
        new = self._stored - before
        if not answer.is_success:
            assert status < 500, answer.text
            assert_refused(answer, status, secrets=())
            assert new == 0
        elif path == "/episodes":
            assert new == {201: 1, 200: 0}[status]
            assert answer.json()["status"] == {201: "accepted", 200: "duplicate"}[status]
            assert self._project.value(
                "SELECT count(*) FROM episodes WHERE project_id = :p AND id = :id", id=answer.json()["id"]
            )
        else:
            found = answer.json()
            counts = [found[name] for name in ("accepted", "duplicates", "conflicts", "rejected")]
            assert status == 200
            assert found["sent"] == sum(counts)
            assert new == found["accepted"]
            assert found["accepted"] + found["duplicates"] > 0
            places_of_errors = {fault["index"] for fault in found["errors"]}
            assert len(places_of_errors) == found["conflicts"] + found["rejected"]
            assert places_of_errors <= set(range(found["sent"]))


def run_for(seconds: float, strategy: st.SearchStrategy, do: Callable) -> None:
    """Rounds of examples, each with its own fixed seed, until the time is over."""
    until = time.monotonic() + seconds
    for number in itertools.count():
        if time.monotonic() > until and number:
            return

        @seed(number)
        @settings(
            max_examples=EXAMPLES_A_ROUND,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def examples(request):
            do(*request)

        examples()


@pytest.mark.timeout(SECONDS + 110)
@pytest.mark.parametrize(
    "records",
    [
        pytest.param(documents, id="bytes"),
        pytest.param(json_documents, id="JSON"),
        pytest.param(mutated_records().map(encode), id="records with a fault"),
        pytest.param(damaged_records(), id="damaged records"),
    ],
)
def test_no_request_whatever_its_bytes_fails_on_our_side(project, records):
    # A connection for each request: what one answer does to its connection is not the next one's matter.
    limits = httpx.Limits(max_keepalive_connections=0)
    with project.client(limits=limits) as client:
        ledger = Ledger(project, client)
        run_for(SECONDS / FAMILIES, requests(records), ledger.post)
    assert sum(ledger.answers.values()) >= EXAMPLES_A_ROUND


def test_a_record_without_a_fault_is_accepted(project):
    """What the mutations start from, written by the writer they use; otherwise they would test nothing."""
    with project.client() as client:
        answer = client.post(
            "/episodes",
            content=encode(write(as_pairs(full_record("whole")))),
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code == 201, answer.text
