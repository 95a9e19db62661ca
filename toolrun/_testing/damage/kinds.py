"""The kinds of damage, each with what has to come of it, and `damaged`, which does them to arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from toolrun._core.conservation import same
from toolrun._core.json_text import parse_object
from toolrun._core.records import Grade
from toolrun._core.tools import Tool
from toolrun._testing.damage import around, hopeless, syntax, values
from toolrun._testing.damage.places import Call, NotApplicable
from toolrun.repairs.standalone import tool_from_definition

if TYPE_CHECKING:
    from types import ModuleType

    from toolrun._core.records import JsonObject

Damage: TypeAlias = Callable[[Call, Random], str]


class DamageKind(NamedTuple):
    """A way in which models, their templates and their servers break arguments.

    Attributes:
        name: As in the documentation.
        description: What is wrong with the text.
        grade: The worst grade that its repair may have; None if the call must be refused.
        certain: False if a refusal is right too: what was meant cannot always be told.
        damage: Does it; `damaged` is the way to have it done.
    """

    name: str
    description: str
    grade: Grade | None
    certain: bool
    damage: Damage


class DamagedArguments(NamedTuple):
    """A text with one kind of damage, and what has to come of it.

    Attributes:
        kind: The name of the kind.
        text: What the model wrote.
        expected: The only arguments that may come of it; None if the call must be refused.
        grade: The worst grade that they may have; None if the call must be refused.
        certain: False if a refusal is right too.
    """

    kind: str
    text: str
    expected: JsonObject | None
    grade: Grade | None
    certain: bool


class Handled(Protocol):
    """What became of a text: `RepairedArguments`, or the outcome of a call."""

    @property
    def arguments(self) -> JsonObject | None:
        """The arguments that run; None if none do."""
        ...

    @property
    def grade(self) -> Grade | None:
        """How they came to be."""
        ...

    @property
    def message(self) -> str:
        """What the model is told."""
        ...


def _all_of(module: ModuleType, grade: Grade | None) -> dict[str, DamageKind]:
    """The functions of a module that do damage, as kinds that are repaired with that grade."""
    return {
        name: DamageKind(name, function.__doc__ or "", grade, certain=True, damage=function)
        for name, function in vars(module).items()
        if getattr(function, "__module__", None) == module.__name__ and not name.startswith("_")
    }


_UNCERTAIN: Final = frozenset(
    (
        "inner_quotes", "half_key", "no_last_brace", "no_inner_closer", "wrong_closer", "extra_closer",
        "extra_inner_closer", "double_braces", "early_close",
    )
)  # fmt: skip
"""Where a quote or a bracket can stand at several places, and sometimes more than one of them fits the schema."""

_ASSUMED: Final = _UNCERTAIN | {"whole_as_text", "escaped_whole", "list_for_one", "envelope", "xml"}
"""Damage whose repair takes the schema to tell, at least for some texts."""


def _judged(kind: DamageKind) -> DamageKind:
    grade = Grade.SCHEMA_UNIQUE if kind.name in _ASSUMED else kind.grade
    return kind._replace(grade=grade, certain=kind.name not in _UNCERTAIN)


DAMAGE_KINDS: Final[Mapping[str, DamageKind]] = {
    name: _judged(kind)
    for name, kind in {
        **_all_of(syntax, Grade.LOSSLESS),
        **_all_of(around, Grade.LOSSLESS),
        **_all_of(values, Grade.SCHEMA_UNIQUE),
        **_all_of(hopeless, None),
    }.items()
}
"""Every kind of damage that is known, by name."""

_LAYOUTS: Final[tuple[Mapping[str, object], ...]] = (
    {},
    {},
    {"separators": (",", ":")},
    {"indent": 2},
    {"ensure_ascii": False},
)


def damaged(
    arguments: Mapping[str, object],
    tool: Tool | Mapping[str, object],
    *,
    seed: int = 0,
    kinds: Iterable[str] | None = None,
) -> list[DamagedArguments]:
    """Break valid arguments, once in each way that fits them.

    Args:
        arguments: Arguments that the tool takes.
        tool: The tool, or its definition as a dict in any provider's form.
        seed: The same seed does the same damage.
        kinds: Names of kinds; None for all. One that does not fit the arguments is left out, and so is damage that
            leaves arguments which the tool takes.

    Returns:
        Texts, each with what has to come of it. What is certain is so where the schema's properties have one type each;
        elsewhere nothing is certain but that no other arguments may run.

    Raises:
        KeyError: There is no such kind.
        RegistrationError: The dict is not the definition of a tool.

    Examples:
        >>> from toolrun import Tool, repair_arguments
        >>> from toolrun.testing import assert_handled, damaged
        >>> def pay(amount: int, to: str) -> None: ...
        >>> tool = Tool.from_function(pay)
        >>> for broken in damaged({"amount": 20, "to": "Kari"}, tool, kinds=["trailing_comma", "number_as_text", "cut"]):
        ...     assert_handled(broken, repair_arguments(broken.text, tool))
        ...     print(broken.kind, broken.text, broken.expected)
        trailing_comma {"amount":20,"to":"Kari",} {'amount': 20, 'to': 'Kari'}
        number_as_text {"amount": "20", "to": "Kari"} {'amount': 20, 'to': 'Kari'}
        cut {"amount": None
    """
    own = tool if isinstance(tool, Tool) else tool_from_definition(tool)
    schema = own.definition.input_schema
    layout = Random(f"{seed}").choice(_LAYOUTS)
    call = Call(schema, dict(arguments), json.dumps(arguments, **layout), own.name)  # type: ignore[arg-type]
    simple = _has_one_type_each(schema)
    found: list[DamagedArguments] = []
    for kind in map(DAMAGE_KINDS.__getitem__, DAMAGE_KINDS if kinds is None else kinds):
        try:
            text = kind.damage(call, Random(f"{seed}-{kind.name}"))
        except NotApplicable:
            continue
        if not _fits(text, own):
            expected = None if kind.grade is None else dict(arguments)
            certain = kind.grade is None or (kind.certain and simple)
            found.append(DamagedArguments(kind.name, text, expected, kind.grade, certain))
    return found


def _fits(text: str, tool: Tool) -> bool:
    """Tell whether a text is no damage at all: a key too many is none where any key is taken."""
    parsed = parse_object(text)
    return isinstance(parsed, dict) and isinstance(tool.validator.validate(text, parsed), Mapping)


def _has_one_type_each(schema: Mapping[str, object]) -> bool:
    properties = schema.get("properties")
    described = properties.values() if isinstance(properties, Mapping) else ()
    return all(isinstance(own, Mapping) and "type" in own for own in described)


def assert_handled(broken: DamagedArguments, got: Handled) -> None:
    """See to it that what came of damaged arguments is what has to.

    Args:
        broken: From `damaged`.
        got: What `repair_arguments` gave for its text, or the outcome of a call with it.

    Raises:
        AssertionError: Other arguments than the model meant would run, or arguments that nobody can tell; or none where
            it is certain what was meant.
    """
    __tracebackhide__ = True
    wrote = f"{broken.kind}: of {broken.text!r} came"
    if got.arguments is None:
        if broken.expected is not None and broken.certain:
            raise AssertionError(f"{wrote} nothing, not {broken.expected!r}; the model is told: {got.message}")
    elif broken.expected is None:
        raise AssertionError(f"{wrote} {got.arguments!r}; it must be refused")
    elif not same(got.arguments, broken.expected):
        raise AssertionError(f"{wrote} {got.arguments!r}, not {broken.expected!r}")
    elif got.grade not in _ALLOWED[broken.grade]:
        raise AssertionError(
            f"{wrote} the right arguments with the grade {got.grade}; at worst it may be {broken.grade}"
        )


_ALLOWED: Final[Mapping[Grade | None, frozenset[Grade | None]]] = {
    Grade.LOSSLESS: frozenset((Grade.LOSSLESS, Grade.HOOK)),
    Grade.SCHEMA_UNIQUE: frozenset((Grade.LOSSLESS, Grade.SCHEMA_UNIQUE, Grade.HOOK)),
}
"""The grades that are at least as good; a person's own hook may mend anything."""
