"""Results with images and files: as blocks where the wire has them, in words where it has not."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from toolrun import CallStatus, File, Image, ToolCall
from toolrun._core import results
from toolrun.abc import ToolResult
from toolrun.wires import get_wire

if TYPE_CHECKING:
    from toolrun._core.content import ContentPart

PNG = b"\x89PNG\r\n\x1a\nrest"
PDF = b"%PDF-1.7 rest"
PNG64 = b64encode(PNG).decode()
PDF64 = b64encode(PDF).decode()

PARTS: tuple[ContentPart, ...] = (
    "Two of them:",
    Image(data=PNG),
    File(data=PDF, name="bill.pdf"),
    Image(url="https://example.com/cat.png"),
    File(data=b"<svg/>", media_type="application/zip", name="all.zip"),
)
IN_WORDS = [
    "[image: image/png, 12 bytes; it cannot be shown here]",
    "[file 'bill.pdf': application/pdf, 13 bytes; it cannot be shown here]",
    "[image: at https://example.com/cat.png; it cannot be shown here]",
    "[file 'all.zip': application/zip, 6 bytes; it cannot be shown here]",
]


def result(*parts: ContentPart, **call: Any) -> ToolResult:
    told = ToolCall(
        id="c1", name="look", raw_arguments="{}", arguments={}, status=CallStatus.OK, executable=True, **call
    )
    return ToolResult(told, results.parts_text(parts), is_error=False, parts=parts)


def written(wire: str, **call: Any) -> Any:
    (message,) = get_wire(wire).result_messages([result(*PARTS, **call)])
    return message


def test_openai_responses():
    """Content items; files need a name."""
    from openai.types.responses.response_input_item_param import FunctionCallOutput
    from pydantic import TypeAdapter

    message = written("openai-responses")

    assert message["output"] == [
        {"type": "input_text", "text": "Two of them:"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG64}"},
        {"type": "input_file", "filename": "bill.pdf", "file_data": f"data:application/pdf;base64,{PDF64}"},
        {"type": "input_image", "image_url": "https://example.com/cat.png"},
        {"type": "input_file", "filename": "all.zip", "file_data": "data:application/zip;base64,PHN2Zy8+"},
    ]
    TypeAdapter(FunctionCallOutput).validate_python(message)


def test_openai_responses_files_without_a_name_and_by_url():
    """A name is made from the media type; a URL needs none."""
    (message,) = get_wire("openai-responses").result_messages(
        [result(File(data=PDF), File(url="https://example.com/bill.pdf"))]
    )

    assert message["output"] == [
        {"type": "input_file", "filename": "file.pdf", "file_data": f"data:application/pdf;base64,{PDF64}"},
        {"type": "input_file", "file_url": "https://example.com/bill.pdf"},
    ]


def test_a_screenshot():
    """An image answers a computer call; its item has room for nothing else."""
    (message,) = get_wire("openai-responses").result_messages(
        [result(Image(data=PNG), extra={"type": "computer_call"})]
    )

    assert message["output"] == {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG64}"}


def test_anthropic():
    """Images and documents; what the API does not take is described."""
    from anthropic.types import ToolResultBlockParam
    from pydantic import TypeAdapter

    message = written("anthropic-messages")
    (block,) = message["content"]

    assert block["content"] == [
        {"type": "text", "text": "Two of them:"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG64}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF64},
            "title": "bill.pdf",
        },
        {"type": "image", "source": {"type": "url", "url": "https://example.com/cat.png"}},
        {"type": "text", "text": IN_WORDS[3]},
    ]
    TypeAdapter(ToolResultBlockParam).validate_python(block)


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            File(data="Zürich".encode(), media_type="text/plain"),
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Zürich"}},
        ),
        (
            File(url="https://example.com/a.pdf"),
            {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
        ),
        (
            File(url="https://example.com/a.csv", media_type="text/csv"),
            {"type": "text", "text": "[file: text/csv, at https://example.com/a.csv; it cannot be shown here]"},
        ),
        (
            Image(data=b"<svg/>", media_type="image/svg+xml"),
            {"type": "text", "text": "[image: image/svg+xml, 6 bytes; it cannot be shown here]"},
        ),
    ],
)
def test_anthropic_documents(part: Image | File, block: dict[str, object]):
    """Plain text as text, PDFs by URL, and no other."""
    (message,) = get_wire("anthropic-messages").result_messages([result(part)])

    assert message["content"][0]["content"] == [block]


def test_gemini():
    """Beside the text, as data only."""
    from google.genai import types

    message = written("gemini")
    response = message["parts"][0]["functionResponse"]

    assert response["response"] == {"result": "\n".join(["Two of them:", IN_WORDS[2], IN_WORDS[3]])}
    assert response["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": PNG64}},
        {"inlineData": {"mimeType": "application/pdf", "data": PDF64}},
    ]
    read = types.Content.model_validate(message)
    assert read.parts[0].function_response.parts[0].inline_data.data == PNG


EXPECTED_BEDROCK = [
    {"text": "Two of them:"},
    {"image": {"format": "png", "source": {"bytes": PNG}}},
    {"document": {"format": "pdf", "name": "bill pdf", "source": {"bytes": PDF}}},
    {"text": IN_WORDS[2]},
    {"text": IN_WORDS[3]},
]


def test_bedrock_converse():
    """Bytes, as boto3 takes them; names of documents have few characters."""
    import botocore.session
    from botocore.validate import ParamValidator

    message = written("bedrock-converse")

    assert message["content"][0]["toolResult"]["content"] == EXPECTED_BEDROCK
    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    report = ParamValidator().validate(message, model.shape_for("Message"))
    assert not report.has_errors(), report.generate_report()


def test_bedrock_converse_s3():
    """The one kind of URL that it takes."""
    (message,) = get_wire("bedrock-converse").result_messages(
        [result(Image(url="s3://bucket/cat.png", media_type="image/png"))]
    )

    assert message["content"][0]["toolResult"]["content"] == [
        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://bucket/cat.png"}}}}
    ]


def test_bedrock_invoke():
    """A body is JSON, so Nova's bytes are base64; Anthropic's models take Anthropic's blocks."""
    nova = written("bedrock-invoke", extra={"toolUse": {}})
    claude = written("bedrock-invoke")

    content = nova["content"][0]["toolResult"]["content"]
    assert content[1] == {"image": {"format": "png", "source": {"bytes": PNG64}}}
    assert claude == written("anthropic-messages")


def test_mistral():
    """Chunks."""
    from mistralai.client.models import ToolMessage

    message = written("mistral")

    assert message["content"] == [
        {"type": "text", "text": "Two of them:"},
        {"type": "image_url", "image_url": f"data:image/png;base64,{PNG64}"},
        {
            "type": "document_url",
            "document_url": f"data:application/pdf;base64,{PDF64}",
            "document_name": "bill.pdf",
        },
        {"type": "image_url", "image_url": "https://example.com/cat.png"},
        {"type": "text", "text": IN_WORDS[3]},
    ]
    ToolMessage.model_validate(message)


def test_ollama():
    """Images beside the text, as data only; no files."""
    from ollama import Image as OllamaImage

    message = written("ollama")

    assert message["content"] == "\n".join(["Two of them:", *IN_WORDS[1:]])
    assert message["images"] == [PNG64]
    assert OllamaImage(value=message["images"][0]).model_dump() == PNG64


@pytest.mark.parametrize("wire", ["openai-chat", "cohere-v2"])
def test_wires_of_text(wire: str):
    """Everything in words."""
    assert written(wire)["content"] == "\n".join(["Two of them:", *IN_WORDS])
