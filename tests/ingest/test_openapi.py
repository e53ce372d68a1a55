"""The machine-readable description is complete, and the service answers as it says, whatever it is sent."""

import itertools
import time

import httpx
import jsonschema
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from requests.adapters import HTTPAdapter
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from urllib3.util import Retry

from gapwatch.accounts import make_key
from gapwatch.settings import Settings
from parts import episode

DOCUMENT = "/api/v1/openapi.json"
SECONDS = 25
EXAMPLES_A_ROUND = 10
METHODS = {"get", "put", "post", "delete", "patch"}
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)


@pytest.fixture(scope="module")
def document(service):
    return httpx.get(f"{service.url}{DOCUMENT}").raise_for_status().json()


def operations(document):
    """Method, path and description of every operation under /api/v1."""
    for path, item in document["paths"].items():
        for method in METHODS & set(item):
            if path.startswith("/api/v1/"):
                yield method, path, item[method]


def look_up(document, value):
    """What a reference stands for."""
    while "$ref" in value:
        found = document
        for part in value["$ref"].removeprefix("#/").split("/"):
            found = found[part.replace("~1", "/").replace("~0", "~")]
        value = found
    return value


def examples_of(document, media):
    found = [look_up(document, example)["value"] for example in media.get("examples", {}).values()]
    if "example" in media:
        found.append(media["example"])
    schema = look_up(document, media.get("schema", {}))
    return [*found, *schema.get("examples", []), *([schema["example"]] if "example" in schema else [])]


def schema_with_definitions(document, schema):
    """A schema that stands alone: the document's components come along for its references."""
    return {"components": document.get("components", {}), **schema}


def test_the_episode_routes_are_described(document):
    described = {(method, path) for method, path, _ in operations(document)}
    assert {
        ("post", "/api/v1/episodes"),
        ("post", "/api/v1/episodes/batch"),
        ("get", "/api/v1/episodes"),
    } <= described


def test_every_operation_has_a_summary_a_description_and_an_example_of_its_body(document):
    missing = []
    for method, path, operation in operations(document):
        missing += [
            f"{method} {path}: no {part}"
            for part in ("summary", "description")
            if not operation.get(part, "").strip()
        ]
        body = look_up(document, operation.get("requestBody", {}))
        for kind, media in body.get("content", {}).items():
            if not examples_of(document, media):
                missing.append(f"{method} {path}: no example of {kind}")
    assert not missing


def test_examples_of_bodies_follow_their_schema(document):
    for method, path, operation in operations(document):
        body = look_up(document, operation.get("requestBody", {}))
        for kind, media in body.get("content", {}).items():
            if kind != "application/json" or "schema" not in media:
                continue
            validator = jsonschema.Draft202012Validator(schema_with_definitions(document, media["schema"]))
            for example in examples_of(document, media):
                assert not list(validator.iter_errors(example)), f"{method} {path}"


def test_every_documented_error_is_problem_json(document):
    wrong = []
    for method, path, operation in operations(document):
        for status, response in operation["responses"].items():
            if status.startswith(("4", "5")):
                content = look_up(document, response).get("content", {})
                if set(content) != {"application/problem+json"}:
                    wrong.append(f"{method} {path} {status}: {sorted(content)}")
                    continue
                schema = look_up(document, content["application/problem+json"].get("schema", {}))
                if not {"type", "title", "status", "detail", "instance", "errors"} <= set(
                    schema.get("properties", {})
                ):
                    wrong.append(f"{method} {path} {status}: not the shape of a problem")
    assert not wrong


def test_every_operation_documents_what_it_does_without_a_valid_key_and_does_it(document, service, project):
    for method, path, operation in operations(document):
        if operation.get("security", document.get("security")) == []:
            continue
        url = service.url + path.replace("{", "").replace("}", "")
        answer = httpx.request(method, url)
        assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json"), (
            f"{method} {path}"
        )
        assert {"401", "403"} <= set(operation["responses"]), f"{method} {path}"
        # One of the two has not the scope; a key of scope admin has every scope.
        statuses = set()
        for scope in ("ingest", "read"):
            with project.client(scope) as client:
                answer = client.request(method, url)
            if answer.status_code == 403:
                assert answer.headers["content-type"] == "application/problem+json"
            statuses.add(answer.status_code)
        assert 403 in statuses, f"{method} {path}"


@pytest.mark.timeout(SECONDS + 110)
def test_every_operation_answers_as_it_is_described(service, project):
    schema = schemathesis.openapi.from_url(f"{service.url}{DOCUMENT}")
    found = [result.ok() for result in schema.get_all_operations()]
    found = [operation for operation in found if operation.path.startswith("/api/v1/")]
    assert found
    secret = Settings(data_dir=service.data_dir).server_secret()
    with project.client() as client:
        # Something to find for the operations that read.
        client.post("/episodes/batch", json=[episode(id=f"e{i}") for i in range(5)]).raise_for_status()
        client.post("/episodes", json=episode(outcome="unheard-of"))
    failures = []
    for operation in found:
        # A key of its own: one operation revokes keys.
        key = make_key(project.database, secret, project=project.slug, scope="admin", name="test")
        try:
            answer_as_described(service.url, operation, key, SECONDS / len(found))
        except (Exception, BaseExceptionGroup) as error:
            failures.append(f"{operation.method.upper()} {operation.path}: {error}")
    assert not failures, "\n".join(failures)


def answer_as_described(service_url, operation, key, seconds):
    """Valid and invalid requests in turns, each round with its own fixed seed, until the time is over."""
    until = time.monotonic() + seconds
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {key}"
        # Making an example of a large schema may take as long as the server keeps an idle connection: it is closed just
        # as the next request is on its way, which is no answer to it.
        session.mount(service_url, HTTPAdapter(max_retries=Retry(total=3, allowed_methods=None, redirect=0)))
        for number, mode in enumerate(itertools.cycle(GenerationMode)):
            if number >= 2 and time.monotonic() > until:
                return

            @seed(number)
            @settings(
                max_examples=EXAMPLES_A_ROUND,
                database=None,
                deadline=None,
                phases=(Phase.generate, Phase.shrink),
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def examples(case):
                case.validate_response(case.call(session=session, timeout=60), checks=list(CHECKS))

            examples()
