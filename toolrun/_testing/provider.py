"""`FakeProvider`: a conversation behind HTTP, for the SDKs as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from toolrun._testing.framing import content_type
from toolrun._testing.loopback import HttpReply, HttpRequest, LoopbackServer, json_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from toolrun._core.records import JsonObject
    from toolrun._testing.conversation import Conversation


class FakeProvider:
    """A provider on the loopback interface, whose model is a `FakeModel`.

    It answers every POST, whatever its path: with a stream if the request asks for one in the way of the wire, else with
    a whole response. Messages that the model does not take are answered with status 400, as a provider would, and
    raised when the block is left.

    Made by `FakeModel.serve`, and started by entering it.

    Attributes:
        requests: The bodies of the requests so far.

    Examples:
        >>> import openai
        >>> from toolrun.testing import FakeModel
        >>> with FakeModel("Good morning.").serve() as provider:
        ...     with openai.OpenAI(base_url=provider.url, api_key="none") as client:
        ...         answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi."}])
        >>> answer.choices[0].message.content
        'Good morning.'
    """

    def __init__(self, conversation: Conversation) -> None:
        """See the class."""
        self._conversation = conversation
        self.requests: list[JsonObject] = []
        self._said: dict[object, list[object]] = {}
        self._server = LoopbackServer(self._answer)

    @property
    def url(self) -> str:
        """What to give an SDK as the base URL; add the path that it wants (`/v1`) or none."""
        return self._server.url

    def __enter__(self) -> Self:
        """Start the server."""
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the server.

        Raises:
            AssertionError: The model did not take a request, and nothing else was raised.
        """
        __tracebackhide__ = True
        self._server.__exit__(kind, error, traceback)
        if error is None:
            self._conversation.raise_refusal()

    def _answer(self, request: HttpRequest) -> HttpReply:
        self.requests.append(request.body)
        try:
            return self._reply(request)
        except Exception as error:  # noqa: BLE001  # raised in the test's own thread, when the block is left
            return json_reply(
                _refusal(str(self._conversation.refused(error))),
                status=400,
                headers={"x-amzn-errortype": "ValidationException"},
            )

    def _reply(self, request: HttpRequest) -> HttpReply:
        wire = self._conversation.wire
        messages = self._messages(request.body)
        given = self._conversation.give(messages)
        self._said[given.told.whole.get("id")] = [*messages, *_output(given.told.whole)]
        if not _STREAMS.get(wire, _asks_for_a_stream)(request):
            failed = given.failed and given.cut is None
            reply = json_reply(given.told.whole, status=500 if failed else 200)
            return reply if given.cut is None else HttpReply(pieces=reply.pieces, drop_after=0)
        return HttpReply(pieces=given.told.encoded(), content_type=content_type(wire), drop_after=given.cut)

    def _messages(self, body: Mapping[str, object]) -> list[object]:
        """The messages of a request; with those before, if a request of Responses only goes on from a response."""
        sent = body.get(_MESSAGES.get(self._conversation.wire, "messages"))
        messages = sent if isinstance(sent, list) else [{"role": "user", "content": sent}]
        return [*self._said.get(body.get("previous_response_id"), ()), *messages]


def _output(whole: Mapping[str, object]) -> list[object]:
    output = whole.get("output")
    return output if isinstance(output, list) else []


def _refusal(message: str) -> JsonObject:
    """An error in which every SDK finds its own."""
    error = {"type": "invalid_request_error", "message": message, "code": 400, "status": "INVALID_ARGUMENT"}
    return {"type": "error", "error": error, "message": message}


def _asks_for_a_stream(request: HttpRequest) -> bool:
    return request.body.get("stream") is True


_MESSAGES: Final = {"openai-responses": "input", "gemini": "contents"}
_STREAMS: Final[dict[str, Callable[[HttpRequest], bool]]] = {
    "gemini": lambda request: ":streamGenerateContent" in request.path,
    "bedrock-converse": lambda request: request.path.endswith("/converse-stream"),
    "bedrock-invoke": lambda request: request.path.endswith("/invoke-with-response-stream"),
    "ollama": lambda request: request.body.get("stream") is not False,
}
