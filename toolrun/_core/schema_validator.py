"""Validation by a JSON Schema: jsonschema decides and reports; jsonschema-rs, where installed, says *valid* sooner."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import jiter

from toolrun._core.exceptions import ToolrunError
from toolrun._core.issues import issue, schema_issues
from toolrun._core.patterns import found_in

if TYPE_CHECKING:
    from jsonschema.protocols import Validator as JsonSchemaValidator

    from toolrun._core.records import ArgumentIssue, JsonObject

Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterable[Any] | None]

STEPS: Final = 50_000
"""Keywords that are looked at for any arguments, however small; further ones only for the length of the text."""

STEPS_A_CHARACTER: Final = 20


class SchemaValidator:
    """Validates by a JSON Schema; what does the work is built once, at the first call."""

    def __init__(self, schema: JsonObject, kind: type[JsonSchemaValidator], *, quick: bool) -> None:
        """Take a checked schema.

        Args:
            schema: The schema.
            kind: The class of jsonschema for its draft.
            quick: Whether the time that jsonschema-rs takes is bounded; it cannot be stopped.
        """
        self._schema = schema
        self._kind = kind
        self._quick = quick

    @cached_property
    def _validator(self) -> JsonSchemaValidator:
        return bounded(self._kind, self._schema)

    @cached_property
    def _surely_valid(self) -> Callable[[JsonObject], bool]:
        return (quick(self._schema) if self._quick else None) or _unsure

    def validate(self, text: str, arguments: JsonObject) -> Mapping[str, object] | tuple[ArgumentIssue, ...]:
        """See `Validator`."""
        try:
            with _steps(STEPS + STEPS_A_CHARACTER * len(text)):
                if not self._surely_valid(arguments):
                    found = schema_issues(self._validator.iter_errors(cast("Any", arguments)))
                    if found:
                        return found
        except (TooManySteps, RecursionError):
            return (issue("limit", [], "the arguments take too much work to check against the schema"),)
        except Exception as error:  # noqa: BLE001  # what cannot be checked is not valid
            return (issue("value", [], f"checking the arguments raised {type(error).__name__}"),)
        # The handler gets values of its own: what it does to them changes neither history nor record.
        return cast("dict[str, object]", jiter.from_json(text.encode()))


# -- jsonschema-rs ----------------------------------------------------------------------------


def _unsure(_arguments: JsonObject) -> bool:
    return False


def quick(schema: JsonObject) -> Callable[[JsonObject], bool] | None:
    """Build a validator of jsonschema-rs; None if it is not installed, or does not take the schema."""
    try:
        import jsonschema_rs  # noqa: PLC0415  # an extra
    except ImportError:
        return None
    try:
        validator = jsonschema_rs.validator_for(
            schema, validate_formats=False, pattern_options=jsonschema_rs.RegexOptions(), offline=True
        )
    except Exception:  # noqa: BLE001  # jsonschema takes it, and that is what counts
        return None

    def surely_valid(arguments: JsonObject) -> bool:
        try:
            return bool(validator.is_valid(arguments))
        except Exception:  # noqa: BLE001  # a number that it cannot hold: jsonschema can
            return False

    return surely_valid


# -- jsonschema -----------------------------------------------------------------------------


class TooManySteps(ToolrunError):
    """Looking at the arguments took more steps than they may."""


_LEFT: Final[ContextVar[list[int] | None]] = ContextVar("toolrun_steps_left", default=None)


@contextmanager
def _steps(count: int) -> Iterator[None]:
    token = _LEFT.set([count])
    try:
        yield
    finally:
        _LEFT.reset(token)


def bounded(kind: type[JsonSchemaValidator], schema: JsonObject) -> JsonSchemaValidator:
    """Build a validator of jsonschema that fetches nothing, counts its steps and never backtracks."""
    from jsonschema import validators  # noqa: PLC0415  # dear to import; few tools need it
    from referencing import Registry  # noqa: PLC0415  # see above

    keywords = {**kind.VALIDATORS, **_KEYWORDS}
    counted = {keyword: _counted(check) for keyword, check in keywords.items() if keyword in kind.VALIDATORS}
    extend: Any = validators.extend
    empty: Any = Registry()
    return cast("JsonSchemaValidator", extend(kind, counted)(schema, registry=empty))


def _counted(check: Keyword) -> Keyword:
    def step(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterable[Any] | None:
        left = _LEFT.get()
        if left is not None:
            left[0] -= 1
            if left[0] < 0:
                raise TooManySteps
        return check(validator, rule, instance, schema)

    return step


def _mismatch(message: str, path: tuple[str, ...] = ()) -> Exception:
    from jsonschema import ValidationError as Mismatch  # noqa: PLC0415  # see above

    return Mismatch(message, path=path)


def _pattern(_validator: Any, rule: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not found_in(rule, instance):
        yield _mismatch(f"does not match {rule!r}")


def _pattern_properties(validator: Any, rule: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    for key, value in instance.items() if isinstance(instance, dict) else ():
        for expression, subschema in rule.items():
            if found_in(expression, key):
                yield from validator.descend(value, subschema, path=key, schema_path=expression)


def _additional_properties(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for key in instance:
        if key in known or any(found_in(item, key) for item in patterns):
            continue
        if rule is False:
            yield _mismatch("Extra inputs are not permitted", (key,))
        else:
            yield from validator.descend(instance[key], rule, path=key)


def _unique_items(_validator: Any, rule: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    if rule and isinstance(instance, list) and len(instance) != len({_canonical(item) for item in instance}):
        yield _mismatch("has non-unique elements")


_KEYWORDS: Final[Mapping[str, Keyword]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
"""Keywords in which jsonschema would backtrack, or compare everything with everything."""


def _canonical(value: Any) -> str:
    """A text that is the same for values that JSON Schema calls equal: 1 and 1.0 are, 1 and true are not."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
