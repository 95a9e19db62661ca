"""Bounds for JSON Schemas from outside: none can take unbounded time, memory or stack, or reach out of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from toolrun._core.exceptions import RegistrationError
from toolrun._core.patterns import is_linear, is_short
from toolrun._core.schema_tree import MAX_SCHEMA_DEPTH, branches, follow, inside, references, resolve, subschemas

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolrun._core.records import JsonObject

MAX_SCHEMA_NODES: Final = 20_000
"""Objects, arrays and scalars in a schema. The largest in use, generated from whole APIs, have some thousands."""

MAX_SCHEMA_CHARACTERS: Final = 1_000_000
"""Characters in the strings of a schema."""

MAX_EXPANSION: Final = 50_000
"""Schemas in a schema with each reference replaced by what it points to, recursion aside."""

MAX_NESTED_BRANCHES: Final = 48
"""Schemas that look at the same value, one inside the other."""

_MAX_NESTING: Final = 3 * MAX_SCHEMA_DEPTH
"""Containers inside each other; a schema inside another is two or three further down."""

_UNEVALUATED: Final = ("unevaluatedProperties", "unevaluatedItems")
_MAX_UNEVALUATED: Final = 8


def check_size(schema: object) -> None:
    """See to it that a schema can be copied and walked through in no time.

    Raises:
        RegistrationError: It has too many nodes or characters, or something in it is not JSON.
    """
    nodes = characters = 0
    left: list[tuple[object, int]] = [(schema, 0)]
    while left:
        item, depth = left.pop()
        nodes += 1
        if depth > _MAX_NESTING:
            raise RegistrationError(f"the schema is more than {MAX_SCHEMA_DEPTH} schemas deep")
        if isinstance(item, Mapping):
            named = cast("Mapping[object, object]", item)
            left += [(value, depth + 1) for value in named.values()]
            characters += sum(len(key) if isinstance(key, str) else _not_json(key) for key in named)
        elif isinstance(item, list):
            left += [(value, depth + 1) for value in cast("list[object]", item)]
        elif isinstance(item, str):
            characters += len(item)
        elif not (item is None or isinstance(item, bool | int | float)):
            _not_json(item)
        if nodes + len(left) > MAX_SCHEMA_NODES or characters > MAX_SCHEMA_CHARACTERS:
            raise RegistrationError(
                f"the schema is too large; at most {MAX_SCHEMA_NODES:,} nodes and {MAX_SCHEMA_CHARACTERS:,} characters"
                " are taken"
            )


def _not_json(item: object) -> int:
    raise RegistrationError(f"{item!r} in the schema is not JSON")


def check_bounds(schema: JsonObject) -> None:
    """See to it that validating takes a bounded time and needs nothing from elsewhere.

    Raises:
        RegistrationError: A pattern can take unbounded time, a reference leads out or round in a circle, or
            references multiply the schema.
    """
    found = _reachable(schema)
    unevaluated = any(key in item for item in found for key in _UNEVALUATED)
    for item in found:
        pattern, keyed = item.get("pattern"), item.get("patternProperties")
        if isinstance(pattern, str) and not is_linear(pattern):
            raise _unbounded("pattern", pattern, "look-around and back-references")
        for key in cast("dict[str, object]", keyed) if isinstance(keyed, dict) else ():
            if not is_linear(key):
                raise _unbounded("patternProperties", key, "look-around and back-references")
            if unevaluated and not is_short(key):  # jsonschema matches these itself, and backtracks
                raise _unbounded("patternProperties", key, "repetitions, beside unevaluatedProperties")
    _measure(schema, found, branches, MAX_NESTED_BRANCHES, deepest=True)
    _measure(schema, found, _next, MAX_EXPANSION, deepest=False)


def _unbounded(keyword: str, pattern: str, without: str) -> RegistrationError:
    return RegistrationError(
        f"{keyword} {pattern!r} could take unbounded time on what a model writes; use one without {without}"
    )


def is_repetitive(schema: JsonObject) -> bool:
    """Tell whether a small value can be looked at very often: the schema is recursive, or nests what is unevaluated."""
    found = _reachable(schema)
    if sum(key in item for item in found for key in _UNEVALUATED) > _MAX_UNEVALUATED:
        return True
    try:
        _measure(schema, found, _next, MAX_EXPANSION, deepest=False, recursive=False)
    except RegistrationError:
        return True
    return False


def _reachable(schema: JsonObject) -> list[JsonObject]:
    """Every schema in the schema, and those that only references lead to.

    Raises:
        RegistrationError: A reference leads out of the schema, nowhere, or round in a circle.
    """
    found: dict[int, JsonObject] = {}
    left = [schema]
    while left:
        for item in subschemas(left.pop()):
            if id(item) in found:
                continue
            found[id(item)] = item
            left += [target for target in _targets(schema, item) if id(target) not in found]
    return list(found.values())


def _targets(schema: JsonObject, item: JsonObject) -> list[JsonObject]:
    targets = []
    for reference in references(item):
        if follow(schema, reference) is None:
            raise RegistrationError(
                f"$ref {reference!r} does not point at a schema inside this one; nothing is ever fetched"
            )
        target = resolve(schema, reference)
        targets += [target] if target is not None else []
    return targets


def _next(item: JsonObject) -> list[JsonObject]:
    return [*inside(item), *branches(item)]


def _measure(
    schema: JsonObject,
    found: list[JsonObject],
    below: Callable[[JsonObject], list[JsonObject]],
    limit: int,
    *,
    deepest: bool,
    recursive: bool = True,
) -> None:
    """Go through a schema and what it refers to, children first, and add up (or find the deepest of) what is below.

    Raises:
        RegistrationError: It is more than the limit; or it comes back to where it was, where it looks at the same
            value still, or `recursive` is False.
    """
    sizes: dict[int, int] = {}
    open_: set[int] = set()
    left: list[tuple[JsonObject, bool]] = [(item, False) for item in found]
    while left:
        item, done = left.pop()
        if id(item) in sizes:
            continue
        following = [*below(item), *_targets(schema, item)]
        if done:
            open_.discard(id(item))
            counted = [sizes.get(id(child), 1) for child in following]
            sizes[id(item)] = 1 + (max(counted, default=0) if deepest else sum(counted))
            if sizes[id(item)] > limit:
                what = (
                    "nests too many schemas for one value" if deepest else "multiplies when its references are followed"
                )
                raise RegistrationError(f"the schema {what}: more than {limit:,}")
            continue
        open_.add(id(item))
        left.append((item, True))
        for child in following:
            if id(child) not in open_:
                left.append((child, False))
            elif deepest or not recursive:
                raise RegistrationError(f"$ref {', '.join(references(item))!r} leads round in a circle")
