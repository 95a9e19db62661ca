"""From outcomes to what the model is told. No tracebacks, paths or secrets go in here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from toolrun._core.content import File, Image, content_of, describe
from toolrun._core.exceptions import ToolError, TryAgain
from toolrun._core.json_text import encodable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolrun._core.content import ContentPart
    from toolrun._core.records import ArgumentIssue

QUOTED_CHARACTERS: Final = 200
"""How much of a raw text is quoted to a model; what is kept is whole."""

NOT_RUN: Final = "Not run: "

INTERRUPTED: Final = "The program ended while the tool ran. Whether it had its effect is not known."

MAY_HAVE_RUN: Final = " It may have had an effect before it failed."

_REASONS: Final = {
    "truncated": "the arguments were cut off before they were complete. Send the whole call again; if it is long, "
    "split the work into smaller calls.",
    "no_finish": "the response ended before the call was finished. Send the whole call again.",
    "stream_error": "the response broke off before the call was finished. Send the whole call again.",
    "broken_finish": "the response did not end properly. Send the whole call again.",
    "beside_nameless": "it came without arguments next to a call without a name; the arguments may have been lost. "
    "Send the whole call again.",
    "limit": "it is over the size that is accepted. Make the call smaller.",
    "nameless": "the call has no tool name. Send it again with the name of a tool.",
    "identity_conflict": "the tool's name changed in the middle of the call. Send the call again.",
    "held": "the response was stopped early, so its calls are held. Repeat the call if it is still wanted.",
}


_DECLINED: Final = {
    "truncated": "the arguments end before they are complete. Send the whole call again; if it is long, split the work "
    "into smaller calls",
    "ambiguous": "the arguments can be read in more than one way that fits the schema. Write them as strict JSON",
    "ambiguous_quotes": 'a string holds quotation marks that are not escaped, and where it ends is not clear. Write \\" '
    "for a quotation mark inside a string",
    "ambiguous_escape": "a string holds an escape that JSON does not have, and what it stands for is not clear. Write \\\\ "
    "for a backslash",
    "several_objects": "there is more than one JSON object in the arguments. Send one object a call; for several calls, "
    "call the tool several times",
    "envelope_mismatch": "the arguments are wrapped in an envelope that names another tool, or has other keys beside "
    "it. Send the bare arguments object of the tool that is called",
    "unknown_key": "the arguments have a key that the tool does not know. Use the tool's own keys instead of",
    "lossy_number": "a number is written in a way that cannot be taken over exactly. Write a plain JSON number",
    "schema": "the arguments do not fit the tool's schema",
    "limit": "the arguments are too large to be repaired. Send strict JSON, or a smaller call",
}
"""What the model is told when a built-in repair knows why it must not decide."""


def declined_text(code: str, detail: str) -> str:
    """Say why the arguments could not be repaired, by code; `detail` says what and where."""
    where = f": {_quote(detail)}" if detail else ""
    return f"{_DECLINED[code]}{where}."


def refusal_text(code: str) -> str:
    """Say why a call that never got to its tool was not run, by code."""
    return NOT_RUN + _REASONS.get(code, "the call cannot be run as it is. Send it again.")


def syntax_text(issue: ArgumentIssue) -> str:
    """Say what is wrong with arguments that are not a strict JSON object; that they were cut is another text."""
    if issue.code == "truncated":
        return NOT_RUN + declined_text("truncated", _quote(issue.describe()))
    return f"{NOT_RUN}the arguments are not one valid JSON object: {_quote(issue.describe())}. Send the call again."


def schema_text(issues: Sequence[ArgumentIssue]) -> str:
    """Say what is wrong with arguments that do not fit the schema."""
    listed = "\n".join(f"- {_quote(issue.describe())}" for issue in issues)
    return f"{NOT_RUN}the arguments do not fit the tool's schema. Correct them and send the call again.\n{listed}"


def unknown_tool_text(name: str | None, known: Sequence[str]) -> str:
    """Say which tools there are."""
    return f"{NOT_RUN}there is no tool named {_quote(name or '')!r}. Available tools: {', '.join(known) or 'none'}."


def over_limit_text(code: str, count: int) -> str:
    """Say that a limit keeps a call from being run."""
    if code == "repeated":
        return f"{NOT_RUN}the same call was made {count} times in a row. Go on with what it told you, or do something else."
    return f"{NOT_RUN}at most {count} calls of one response are run. Repeat the call if it is still wanted."


def denied_text(reason: str) -> str:
    """Say that somebody decided against a call, in their own words if there are any."""
    told = f": {reason}" if reason else ". Do not repeat it without a reason."
    return f"{NOT_RUN}the call was denied{told}"


def error_text(error: BaseException, *, may_have_run: bool) -> str:
    """Say that a tool failed: its own words for `ToolError` and `TryAgain`, else only the kind of failure."""
    if isinstance(error, ToolError | TryAgain):
        return _own_words(error) or type(error).__name__
    doubt = MAY_HAVE_RUN if may_have_run else ""
    return f"The tool failed with an internal error ({type(error).__name__}).{doubt}"


def timeout_text(seconds: float | None, *, may_have_run: bool, stopped: bool = False) -> str:
    """Say that a tool ran out of time; what was stopped has no effect any more."""
    limit = f" of {seconds:g} seconds" if seconds is not None else ""
    effect = " It was stopped, and may have had an effect before." if stopped else " It may still have an effect."
    doubt = effect if may_have_run else ""
    return f"The tool did not finish within its time limit{limit}.{doubt}"


def value_text(value: object) -> str:
    """Write a result down: a str as it is, anything else as JSON.

    NaN and infinities become null, lone surrogates the replacement character.

    Raises:
        ValueError: It cannot be written as JSON.
    """
    if isinstance(value, str):
        return str(encodable(str.__str__(value)))
    try:
        return _to_json(value)
    except (PydanticSerializationError, ValueError, RecursionError, TypeError):
        pass
    try:  # again, without the halves of surrogate pairs that may have been the reason
        plain = value if isinstance(value, dict | list) else to_jsonable_python(value, bytes_mode="base64")
        return _to_json(encodable(plain))
    except (PydanticSerializationError, ValueError, RecursionError, TypeError) as error:
        raise ValueError(f"a {type(value).__name__} cannot be written as JSON: {error}") from error


def value_parts(value: object) -> tuple[ContentPart, ...]:
    """Write down a result that is an image or a file, or a list with one, piece by piece; `()` for any other.

    Bytes are what their first bytes say; those of no known kind are written as text, in base64.

    Raises:
        ValueError: A piece cannot be written as JSON.
    """
    shown = content_of(value) if isinstance(value, bytes) else value
    if isinstance(shown, Image | File):
        return (shown,)
    if isinstance(shown, list | tuple) and any(isinstance(item, Image | File) for item in shown):
        return tuple(item if isinstance(item, Image | File) else value_text(item) for item in shown)
    return ()


def parts_text(parts: Sequence[ContentPart]) -> str:
    """Say the same in text alone."""
    return "\n".join(part if isinstance(part, str) else describe(part) for part in parts)


def cut(text: str, limit: int, reference: str | None = None) -> str:
    """Keep the head and the tail of a text that is longer than so many characters, and say what is missing.

    What is left is plain text, also of a JSON text; with the notice it is as long as the limit, unless that is too
    short for the notice itself.
    """
    if len(text) <= limit:
        return text
    whole = f" The whole is kept: {reference}" if reference else ""
    notice = f"\n[… cut: the result has {len(text):,} characters, and at most {limit:,} are shown.{whole} …]\n"
    room = max(limit - len(notice), 0)
    tail = room // 2
    return f"{text[: room - tail]}{notice}{text[len(text) - tail :]}"


def _to_json(value: object) -> str:
    return to_json(value, inf_nan_mode="null", bytes_mode="base64").decode()


def _own_words(error: BaseException) -> str:
    try:
        return str(encodable(str(error)))
    except Exception:  # noqa: BLE001  # an error that cannot say what it is, is still that error
        return ""


def _quote(text: str) -> str:
    return text if len(text) <= QUOTED_CHARACTERS else f"{text[:QUOTED_CHARACTERS]}…"
