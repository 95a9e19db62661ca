"""The request types of the providers' own SDKs take the definitions, and lose nothing of them."""

from __future__ import annotations

from itertools import chain
from typing import Any

import botocore.session
import botocore.validate
import cohere
import mistralai.client.models as mistral
import ollama
import pytest
from anthropic.types import ToolParam
from google.genai import types as genai
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from toolrun import ToolRegistry

from .kinds import TOOLS
from .test_table import REFUSED, WRITTEN

BEDROCK = botocore.session.get_session().get_service_model("bedrock-runtime").shape_for("ToolConfiguration")


def bedrock(definitions: list[Any]) -> list[Any]:
    report = botocore.validate.ParamValidator().validate({"tools": definitions}, BEDROCK)
    assert not report.has_errors(), report.generate_report()
    return definitions


def typed(kind: Any) -> Any:
    """Keys that a TypedDict does not have are left out, and so are found."""
    return TypeAdapter(list[kind]).validate_python


def dumped(model: Any) -> Any:
    return lambda definitions: [
        model.model_validate(entry).model_dump(mode="json", by_alias=True, exclude_none=True) for entry in definitions
    ]


TAKES: dict[str, Any] = {
    "openai-chat": typed(ChatCompletionFunctionToolParam),
    "openai-responses": typed(FunctionToolParam),
    "anthropic": typed(ToolParam),
    "bedrock-converse": bedrock,
    "gemini": dumped(genai.Tool),
    "mistral": dumped(mistral.Tool),
    "cohere-v2": dumped(cohere.ToolV2),
}


@pytest.mark.parametrize(("dialect", "strict"), [case for case in WRITTEN if case[0] in TAKES])
def test_taken_as_they_are(dialect: str, strict: bool) -> None:
    kinds = [kind for kind in TOOLS if kind not in REFUSED.get((dialect, strict), {})]
    definitions = [*chain(*(ToolRegistry([TOOLS[kind]]).definitions(dialect, strict=strict) for kind in kinds))]

    taken = TAKES[dialect](definitions)

    assert without_nulls(taken) == without_nulls(definitions)


def without_nulls(value: Any) -> Any:
    """Dumping leaves nulls out: `"default": null` too."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", [kind for kind in TOOLS if kind not in REFUSED["ollama", False]])
def test_ollama_keeps_what_its_types_have_fields_for(kind: str) -> None:
    (entry,) = ToolRegistry([TOOLS[kind]]).definitions("ollama")

    function = ollama.Tool.model_validate(entry).function

    assert function is not None
    assert function.parameters is not None
    properties = entry["function"]["parameters"]["properties"]
    assert {name: held.type for name, held in (function.parameters.properties or {}).items()} == {
        name: described.get("type") for name, described in properties.items()
    }
    assert function.parameters.required == entry["function"]["parameters"].get("required")
