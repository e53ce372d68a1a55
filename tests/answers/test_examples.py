"""What the OpenAPI document says of the statistics calls is what they answer."""

import httpx
import jsonschema
import pytest
from answers.lab import attempts, real, sim

from gapwatch.answers.catalogue import DEPLOYMENT_ANSWERS

QUESTIONS = tuple(kind.name for kind in DEPLOYMENT_ANSWERS)


@pytest.fixture(scope="module")
def document(service):
    return httpx.get(f"{service.url}/api/v1/openapi.json").json()


def media(document, path):
    return document["paths"][f"/api/v1{path}"]["get"]["responses"]["200"]["content"]["application/json"]


def faults(document, path, answer):
    schema = {"components": document["components"], **media(document, path)["schema"]}
    return [fault.message for fault in jsonschema.Draft202012Validator(schema).iter_errors(answer)]


def test_every_statistics_call_is_described_with_what_it_answers(document, lab):
    fields = {"conditions": {"lighting": "dim"}, "signals": {"peak_force_n": 3.0}, "contract": {"hz": 50}}
    lab.send([*attempts(sim, 30, 10, **fields), *attempts(real, 20, 20, **fields)])
    asked = {"/deployments": "/deployments", "/deployments/{slug}": "/deployments/berlin-line-3"}
    asked |= {f"/deployments/{{slug}}/{word}": f"/deployments/berlin-line-3/{word}" for word in QUESTIONS}
    asked |= {f"/policies/{{name}}/{word}": f"/policies/bin-pick/{word}" for word in ("drop", "ledger")}
    asked |= {"/deployments/{slug}/now": "/deployments/berlin-line-3/now"}
    asked |= {"/simulators/{name}/trust": "/simulators/mujoco/trust"}
    for path, address in asked.items():
        assert not faults(document, path, lab.ask(address)), path
    # The check can fail.
    assert faults(document, "/deployments/{slug}/drop", lab.ask("/deployments"))


def test_the_examples_follow_their_schemas(document):
    for path in (
        "/deployments",
        "/deployments/{slug}/now",
        "/deployments/{slug}/drop",
        "/deployments/{slug}/ledger",
        "/policies/{name}/drop",
    ):
        assert not faults(document, path, media(document, path)["example"]), path
    assert not faults(document, "/simulators/{name}/trust", media(document, "/simulators/{name}/trust")["example"])
