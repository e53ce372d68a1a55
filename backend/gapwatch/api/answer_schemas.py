"""What the statistics calls answer, for the OpenAPI document: schemas made from the answers' own classes."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from gapwatch.answers.answer_kind import read_example
from gapwatch.answers.catalogue import DEPLOYMENT_ANSWERS
from gapwatch.answers.deployment import DeploymentAnswer
from gapwatch.answers.fleet import FleetAnswer
from gapwatch.answers.now import NowAnswer
from gapwatch.answers.trust import TrustAnswer
from gapwatch.closing.advice import AdviceAnswer
from gapwatch.closing.closures import FixListAnswer
from gapwatch.closing.fix_table import FixTableAnswer
from gapwatch.closing.week import WeekAnswer

TEMPLATE = "#/components/schemas/{name}"
ANSWERS = (
    *(kind.answer_type for kind in DEPLOYMENT_ANSWERS),
    DeploymentAnswer,
    FleetAnswer,
    NowAnswer,
    TrustAnswer,
    AdviceAnswer,
    FixListAnswer,
    FixTableAnswer,
    WeekAnswer,
)


def answer_schemas() -> dict[str, Any]:
    """Every schema that an answer is made of, by name."""
    return msgspec.json.schema_components(ANSWERS, ref_template=TEMPLATE)[1]


def answers(kind: type, words: str) -> dict[int | str, dict[str, Any]]:
    """The 200 of an operation."""
    schema = {"$ref": TEMPLATE.format(name=kind.__name__)}
    return {200: {"description": words, "content": {"application/json": {"schema": schema}}}}


def give_examples(paths: dict[str, Any]) -> None:
    """Into the finished document: the framework would take every null out of an example."""
    examples = {f"/api/v1/deployments/{{slug}}/{kind.name}": kind.example for kind in DEPLOYMENT_ANSWERS}
    examples["/api/v1/deployments"] = read_example("fleet")
    examples["/api/v1/deployments/{slug}/now"] = read_example("now")
    examples["/api/v1/policies/{name}/drop"] = read_example("drop") | {"deployment": None, "task": None}
    examples["/api/v1/simulators/{name}/trust"] = read_example("trust")
    for path, example in examples.items():
        if example is not None:
            paths[path]["get"]["responses"]["200"]["content"]["application/json"]["example"] = example


def answered(answer: Any) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")
