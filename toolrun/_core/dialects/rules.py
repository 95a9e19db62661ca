"""What a dialect is, as data: how a tool is put into a request, and which schemas the provider takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from toolrun._core.calls import ToolDefinition
    from toolrun._core.records import JsonObject

ANNOTATIONS: Final = frozenset(
    {
        "$comment", "$schema", "contentEncoding", "contentMediaType", "default", "deprecated", "description",
        "discriminator", "example", "examples", "readOnly", "title", "writeOnly",
    }
)  # fmt: skip
"""Keywords that say something about a value and refuse none; leaving one out changes no meaning."""

CONSTRAINTS: Final = frozenset(
    {
        "$anchor", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "additionalItems", "additionalProperties",
        "allOf", "anyOf", "const", "contains", "definitions", "dependencies", "dependentRequired", "dependentSchemas",
        "else", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "if", "items", "maxContains", "maxItems",
        "maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum",
        "multipleOf", "not", "oneOf", "pattern", "patternProperties", "prefixItems", "properties", "propertyNames",
        "required", "then", "type", "unevaluatedItems", "unevaluatedProperties", "uniqueItems",
    }
)  # fmt: skip
"""Keywords that decide which values are valid; leaving one out would."""

OPEN_FORMATS: Final = frozenset({"binary", "directory-path", "file-path", "password", "path"})
"""Formats that every string has."""


class Limits(NamedTuple):
    """Sizes that a provider counts; None for what it does not.

    Attributes:
        properties: Properties of all objects of one schema.
        depth: Objects inside each other.
        characters: Characters of all property names, definition names and values in `enum` and `const`.
        enum_values: Values of all enums of one schema.
        long_enum: From more than so many values, all strings of one enum have at most so many characters.
        tools: Tools of one request.
        request_properties: Properties of all tools of one request.
        request_optional: Properties that may be left out, of all tools of one request.
        request_unions: Properties with several types, of all tools of one request.
    """

    properties: int | None = None
    depth: int | None = None
    characters: int | None = None
    enum_values: int | None = None
    long_enum: tuple[int, int] | None = None
    tools: int | None = None
    request_properties: int | None = None
    request_optional: int | None = None
    request_unions: int | None = None


class SchemaRules(NamedTuple):
    """Which schemas a provider takes for the arguments of a tool.

    Attributes:
        sources: Where each rule is written, and the day it was read there.
        keywords: The keywords that it knows. None: all of JSON Schema.
        ignores: True if it takes a keyword that it does not know, and does not heed it.
        values: The only values that it takes for some keywords.
        formats: The only formats that it knows; None: all.
        enum_types: The JSON types of values that an enum may have; None: all.
        pattern_without: Pieces of regular expressions that it does not know.
        all_of_without_refs: True if a branch of `allOf` cannot be a reference.
        root_without: Keywords that the outermost schema must not have.
        property_names: The pattern that the whole of each property's name must match.
        closed: Every object must say that it is closed.
        all_required: Every property must be required; one that may be left out is null instead.
        some_required: At least one property of a tool must be required.
        typed: Every schema must say which types it takes.
        refs: `"kept"`; `"alone"`: with nothing beside them; `"inlined"`: it knows none.
        recursion: `"any"`; `"optional"`: only through a property that may be left out; `"none"`.
        limits: See `Limits`.
    """

    sources: Sequence[str]
    keywords: frozenset[str] | None = None
    ignores: bool = False
    values: Mapping[str, tuple[object, ...]] = MappingProxyType({})
    formats: frozenset[str] | None = None
    enum_types: frozenset[str] | None = None
    pattern_without: tuple[str, ...] = ()
    all_of_without_refs: bool = False
    root_without: frozenset[str] = frozenset()
    property_names: str | None = None
    closed: bool = False
    all_required: bool = False
    some_required: bool = False
    typed: bool = False
    refs: Literal["kept", "alone", "inlined"] = "kept"
    recursion: Literal["any", "optional", "none"] = "any"
    limits: Limits = Limits()

    def takes(self, keyword: str) -> bool:
        """Tell whether the provider knows the keyword."""
        return self.keywords is None or keyword in self.keywords


def as_list(entries: list[JsonObject]) -> list[JsonObject]:
    """The entries as they are."""
    return entries


class Dialect(NamedTuple):
    """How one provider wants to be told about tools.

    Attributes:
        name: The dialect's name.
        rules: Which schemas it takes.
        shape: Puts a tool and its schema into an entry of the request's list; the last argument is `strict`.
        parts: The keys that lead to the object with the name; and in it, the key of the description, and those that
            lead to the schema.
        kinds: What `type` can be in an entry for a function; None: it is not there.
        names: The pattern that the whole of a tool's name must match, and where that is written; None: any name.
        strict: Which schemas it takes where it guarantees that calls follow them; None if it does not.
        no_strict: What to do instead where `strict` is None.
        gather: Makes the request's `tools` of the entries.
    """

    name: str
    rules: SchemaRules
    shape: Callable[[ToolDefinition, JsonObject, bool], JsonObject]
    parts: tuple[tuple[str, ...], tuple[str, ...]]
    kinds: frozenset[str | None] = frozenset({None})
    names: tuple[str, str] | None = None
    strict: SchemaRules | None = None
    no_strict: str = ""
    gather: Callable[[list[JsonObject]], list[JsonObject]] = as_list
