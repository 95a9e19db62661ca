"""What servers answer, as values, and as what a model is shown."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from mcp.types import CallToolResult

from toolrun import File, Image
from toolrun_mcp import read_result
from toolrun_mcp._content import error_text

PNG = b"\x89PNG\r\n\x1a\n..."
WAV = b"RIFF....WAVE"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def answer(*content: dict[str, Any], **more: Any) -> CallToolResult:
    return CallToolResult.model_validate({"content": list(content), **more})


PICTURE = {"type": "image", "data": encoded(PNG), "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (answer(text("fog")), "fog"),
        (answer(text("fog"), text("rain")), "fog\nrain"),
        (answer(), None),
        (answer(text("here:"), PICTURE), ["here:", Image(data=PNG)]),
        (
            answer({"type": "audio", "data": encoded(WAV), "mimeType": "audio/wav"}),
            [File(data=WAV, media_type="audio/wav")],
        ),
        (
            answer({"type": "resource", "resource": {"uri": "note://1", "text": "milk"}}),
            "note://1:\nmilk",
        ),
        (
            answer(
                {
                    "type": "resource",
                    "resource": {"uri": "f://a.pdf", "mimeType": "application/pdf", "blob": "JVBERi0="},
                }
            ),
            [File(data=b"%PDF-", media_type="application/pdf", name="f://a.pdf")],
        ),
        (
            answer({"type": "resource", "resource": {"uri": "f://a", "mimeType": "image/png", "blob": encoded(PNG)}}),
            [Image(data=PNG)],
        ),
        (
            answer({"type": "resource", "resource": {"uri": "f://a", "blob": "AAAA"}}),
            [File(data=b"\0\0\0", media_type="application/octet-stream", name="f://a")],
        ),
        (
            answer({"type": "resource_link", "uri": "http://10.0.0.1/", "name": "a", "description": "Secret."}),
            "[resource 'a': http://10.0.0.1/ (Secret.)]",
        ),
        (answer({**PICTURE, "data": "no base64"}), "[image/png: the server sent no data that can be read]"),
        (answer({**PICTURE, "data": ""}), "[image/png: the server sent no data that can be read]"),
    ],
)
def test_content(result: CallToolResult, value: object) -> None:
    """Each kind of content is one piece; text alone is one text."""
    assert read_result(result) == value


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (answer(text('{\n  "degrees": 7\n}'), structuredContent={"degrees": 7}), {"degrees": 7}),
        (answer(structuredContent={"degrees": 7}), {"degrees": 7}),
        (answer(text("7 degrees"), structuredContent={"degrees": 7}), "7 degrees"),
        (answer(text("clean"), structuredContent={"result": "clean"}), "clean"),
        (answer(text("[" * 100_000), structuredContent={"degrees": 7}), "[" * 100_000),
        (answer(PICTURE, structuredContent={"degrees": 7}), [Image(data=PNG)]),
    ],
)
def test_structured(result: CallToolResult, value: object) -> None:
    """Structured content is the value where the text says the same; what was said to the model is never dropped."""
    assert read_result(result) == value


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (answer(text("No such city."), isError=True), "No such city."),
        (answer(isError=True), "The tool failed, and its server did not say why."),
        (answer(text("Look:"), PICTURE, isError=True), "Look:\n[image/png]"),
    ],
)
def test_errors(result: CallToolResult, told: str) -> None:
    """An error has the server's own text."""
    assert error_text(result) == told
