"""Arguments in the XML form of a chat template."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from toolrun._core.records import Edit
from toolrun._core.repair import Reading, Repaired
from toolrun.repairs._places import Schema
from toolrun.repairs._text import is_beyond

if TYPE_CHECKING:
    from toolrun._core.repair import RepairRequest

_PARAMETER: Final = re.compile(
    r"""[ \t\r\n]*+
    (?: <arg_key>(?P<pair>[\w.-]{1,100})</arg_key>[ \t\r\n]*+<arg_value>
      | <parameter[ ]name=["'](?P<named>[\w.-]{1,100})["'](?:[ ][\w-]+=["'][^"'<>]*["'])?>
      | <parameter=(?P<equal>[\w.-]{1,100})>
      | <(?P<tag>[A-Za-z_][\w.-]{0,99})>
    )(?P<text>[^<]*+)</(?P<end>[\w.-]{1,100})>[ \t\r\n]*+""",
    re.VERBOSE,
)
_AROUND: Final = re.compile(
    r"[ \t\r\n]*+(?:</?(?:tool_call|function_calls|function_call|invoke|arguments|parameters)>"
    r"|<invoke name=[\"'][^\"'<>]{1,100}[\"']>|<function=[^<>]{1,100}>|</function>)"
)


def xml_parameters(request: RepairRequest) -> Repaired | None:
    """Read arguments in the XML of chat templates, such as `<parameter name="city">Oslo</parameter>`.

    Also `<parameter=city>`, `<city>Oslo</city>` and `<arg_key>city</arg_key><arg_value>Oslo</arg_value>`. Every piece must be a known parameter, once. A text parameter takes the text as it stands, without the line breaks
    next to the tags in the form `<parameter=city>`, whose template puts them there; any other takes JSON.

    Refuses tags inside of a value, text between the parameters, and unknown names.

    Examples:
        >>> from toolrun.repairs._examples import ask
        >>> text, number = {"type": "string"}, {"type": "integer"}
        >>> ask(xml_parameters, '<parameter name="city">Oslo</parameter><days>3</days>', city=text, days=number)
        '{"city": "Oslo", "days": 3}'
        >>> ask(xml_parameters, "<city>Oslo</city> tomorrow", city=text)
    """
    text = request.text
    if is_beyond(request) or request.definition is None or not text.lstrip().startswith("<"):
        return None
    schema = Schema.of(request.definition)
    members: dict[str, str] = {}
    place = 0
    while place < len(text.rstrip()):
        if around := _AROUND.match(text, place):
            place = around.end()
            continue
        found = _PARAMETER.match(text, place)
        if found is None:
            return None
        key = found["pair"] or found["named"] or found["equal"] or found["tag"]
        end = "arg_value" if found["pair"] else "parameter" if found["tag"] is None else key
        if found["end"] != end or key in members or not schema.knows(key):
            return None
        value = _value(found["text"], schema.member(key), trimmed=found["equal"] is not None)
        if value is None:
            return None
        members[key] = value
        place = found.end()
    if not members:
        return None
    read = "{" + ", ".join(f"{json.dumps(key)}: {value}" for key, value in members.items()) + "}"
    reading = Reading(read, (Edit("xml_parameters", 0, text, read),))
    return Repaired(text=reading.text, edits=reading.edits, readings=(reading,))


def _value(inner: str, schema: Schema, *, trimmed: bool) -> str | None:
    kinds = schema.kinds
    if kinds is None or "&" in inner:
        return None
    if kinds == {"string"}:
        return json.dumps(inner.removeprefix("\n").removesuffix("\n") if trimmed else inner, ensure_ascii=False)
    return inner.strip() if "string" not in kinds and inner.strip() else None
