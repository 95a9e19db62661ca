"""What stands between tokens and says nothing: odd white space, comments, stray tags."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from toolrun._core.conservation import TAG
from toolrun._core.lexemes import INVISIBLE, WIDE
from toolrun._core.records import Edit
from toolrun.repairs._text import is_beyond, repaired, take_apart

if TYPE_CHECKING:
    from toolrun._core.lexemes import Piece
    from toolrun._core.repair import Repaired, RepairRequest
    from toolrun.repairs._text import Pieces

_ODD: Final = re.compile(f"[{INVISIBLE}]")
_COMMENT: Final = re.compile(r"//|/\*|#")
_NUMBER_ALONE: Final = re.compile(r"//[ \t]*[-+]?[0-9][0-9_.]*[ \t]*,?[ \t]*")


def odd_space(request: RepairRequest) -> Repaired | None:
    r"""Write white space that JSON does not have, between tokens, as a space.

    No-break spaces, zero-width characters and a byte order mark come from copied text and from tokenizers.

    Refuses to touch the same characters inside a string: there they are the model's own.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(odd_space, '{\u00a0"a": "x\u00a0y"}') == '{ "a": "x\u00a0y"}'
        True
        >>> ask(odd_space, '{"a": "x\u00a0y",}')
    """
    text = request.text
    if is_beyond(request) or not _ODD.search(text):
        return None
    return _without(request, "blank", "odd_space")


def wide_punctuation(request: RepairRequest) -> Repaired | None:
    r"""Write punctuation of Chinese and Japanese text, between tokens, as JSON's: a wide colon as `:`.

    Source: models that answer in these languages.

    Refuses to touch it inside a string.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(wide_punctuation, '{"a"\uff1a"x\uff0cy"\uff0c"b": 1}') == '{"a":"x\uff0cy","b": 1}'
        True
        >>> ask(wide_punctuation, '{"a": "x\uff0cy",}')
    """
    if is_beyond(request) or request.text.isascii():
        return None
    edits = [
        Edit("wide_punctuation", piece.start, piece.text, WIDE[piece.text])
        for piece in take_apart(request).clean
        if piece.kind == "wide"
    ]
    return repaired(request.text, edits)


def comments(request: RepairRequest) -> Repaired | None:
    """Take out comments: `// to the end of the line`, `# the same`, `/* between */`.

    Source: JSON5, JavaScript and Python literals.

    Refuses bare words between members: a comment without its mark, or a key that lost its value. Refuses a comment to
    the end of the line that holds a closing bracket, if one is missing, or that could be part of an expression
    (`10 // 3`). What looks like a comment inside a string stays.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(comments, '{"url": "https://e.org/#c" /* the page */}')
        '{"url": "https://e.org/#c"  }'
        >>> ask(comments, '{"done": true, ask_later "label": "x"}')
        >>> ask(comments, '{"query": "x" # "limit": 3}')
    """
    text = request.text
    if is_beyond(request) or not _COMMENT.search(text):
        return None
    parts = take_apart(request)
    if _hides_the_end(parts) or _divides(parts):
        return None
    return _without(request, "comment", "comment")


def _hides_the_end(parts: Pieces) -> bool:
    """Tell whether a comment has taken a bracket that is missing."""
    texts = [piece.text for piece in parts.clean]
    if sum(map(texts.count, "{[")) <= sum(map(texts.count, "}]")):
        return False
    return any(
        piece.kind == "comment" and not piece.text.startswith("/*") and ("}" in piece.text or "]" in piece.text)
        for piece in parts.all
    )


def _divides(parts: Pieces) -> bool:
    """Tell whether a number goes on in a comment: `10//3` is 3 in Python, and `#` joins what it touches."""
    before: Piece | None = None
    for piece in parts.all:
        follows = before is not None and before.kind == "number" and piece.kind == "comment"
        touches = before is not None and before.end == piece.start
        if follows and not piece.text.startswith("/*") and (touches or _NUMBER_ALONE.fullmatch(piece.text)):
            return True
        if piece.kind not in ("space", "blank"):
            before = piece
    return False


def _without(request: RepairRequest, kind: str, code: str) -> Repaired | None:
    """Write all pieces of a kind as a space."""
    parts = take_apart(request)
    if not parts.clean or kind not in parts.kinds:
        return None
    return repaired(
        request.text, [Edit(code, piece.start, piece.text, " ") for piece in parts.all if piece.kind == kind]
    )


def stray_tag(request: RepairRequest) -> Repaired | None:
    """Take out closing tags and template tokens between tokens: `["a", "b"]</parameter>}`.

    Source: models that were trained on a tool syntax in XML.

    Refuses a tag inside a string: an edit of a page has tags too. Refuses a text with opening tags: what follows one
    belongs to it.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> ask(stray_tag, '{"todos": ["a", "b"]</parameter>}')
        '{"todos": ["a", "b"]}'
        >>> ask(stray_tag, '{"query": "climate</query>",}')
    """
    text = request.text
    if is_beyond(request) or "<" not in text:
        return None
    found = take_apart(request).clean
    if any(piece.kind == "tag" and not piece.text.startswith(("</", "<|")) for piece in found):
        return None
    edits = [
        Edit(TAG, piece.start, piece.text, "")
        for number, piece in enumerate(found)
        if piece.kind == "tag" and number > 0
    ]
    return repaired(text, edits)
