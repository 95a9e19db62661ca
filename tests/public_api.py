"""The public API, written down: every public name with its signature, its fields and its methods.

`uv run python -m tests.public_api` writes `tests/public_api.txt` anew. Its diff is what users get to see of a change.
"""

from __future__ import annotations

import importlib
import inspect
import re
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

SNAPSHOT: Final = Path(__file__).with_suffix(".txt")
MODULES: Final = (
    "toolrun",
    "toolrun.abc",
    "toolrun.cli",
    "toolrun.executors",
    "toolrun.executors.limits",
    "toolrun.history",
    "toolrun.journals",
    "toolrun.remote",
    "toolrun.repairs",
    "toolrun.testing",
    "toolrun.wires",
    "toolrun.wires.helpers",
    "pytest_toolrun",
)
_MODULES: Final = re.compile(r"\b(?:toolrun|typing|collections\.abc|types)(?:\.\w+)*\.(?=[A-Z])")
COMMAND: Final = "uv run python -m tests.public_api"


def described() -> str:
    """The whole API, a line for each thing; what stands in two modules is described in the first."""
    known: dict[int, str] = {}
    lines: list[str] = []
    for module in map(importlib.import_module, MODULES):
        for name in names_of(module):
            own = f"{module.__name__}.{name}"
            found = getattr(module, name)
            first = known.setdefault(id(found), own)
            lines += [f"{own} is {first}"] if first != own else [*_described(own, found)]
    return "\n".join([*lines, ""])


def deprecations() -> dict[str, str]:
    """What is marked as going, with what its mark says."""
    marked = re.finditer(r"^([\w.]+).* \(deprecated: (.*)\)$", described(), re.MULTILINE)
    return {found[1]: found[2] for found in marked}


def fault_of(message: str, version: tuple[int, int]) -> str | None:
    """What is wrong with the mark of something that goes, at a version of the library; None if nothing is."""
    found = re.search(r"deprecated since (\d+)\.(\d+), goes in (\d+)\.(\d+)$", message)
    if found is None:
        return "it must end in `deprecated since X.Y, goes in X.Z`"
    since, end = (int(found[1]), int(found[2])), (int(found[3]), int(found[4]))
    if end <= version:
        return "it was to go by now"
    if end < (since[0], since[1] + 2):
        return "it has to stay for two minor releases"
    return None


def names_of(module: Any) -> list[str]:
    """`__all__`; of the plugin, its fixtures."""
    return getattr(module, "__all__", None) or [name for name, value in vars(module).items() if _function(value)]


def _function(value: object) -> Any:
    """The function behind a fixture, a class method or a function; None for anything else."""
    value = getattr(value, "_fixture_function", None) or getattr(value, "__func__", value)
    return value if inspect.isfunction(value) else None


def _described(name: str, found: object) -> Iterator[str]:
    if inspect.isclass(found):
        called = "" if issubclass(found, Enum) else _signature(found)  # Python's own, and another in each version
        yield f"{name}{_bases(found)}{called}"
        for attribute, member in sorted(_members(found)):
            yield f"{name}.{attribute}{_member(member)}"
    elif function := _function(found):
        yield f"{name}{_signature(function)}"
    else:
        yield f"{name}: {_MODULES.sub('', repr(found)) if _is_alias(found) else type(found).__name__}"


def _bases(found: type) -> str:
    """The public classes that it is one of, and those of Python's that users catch it by."""
    bases = [base.__name__ for base in found.__bases__ if base is not object and not base.__name__.startswith("_")]
    return f"[{', '.join(bases)}]" if bases else ""


def _members(found: type) -> Iterator[tuple[str, object]]:
    """Public methods, properties and fields of its own, and those of bases that have no public name."""
    seen: set[str] = set()
    for base in found.__mro__:
        if not base.__module__.startswith("toolrun"):
            continue
        annotated = inspect.get_annotations(base)
        for name, member in {**dict.fromkeys(annotated), **vars(base)}.items():
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, f": {_written(annotated[name])}" if name in annotated else member


def _member(member: object) -> str:
    if isinstance(member, Enum):
        return f" = {member.value!r}"
    if isinstance(member, str):
        return member
    if isinstance(member, property):
        return f" -> {_written(inspect.get_annotations(member.fget)['return'])}" if member.fget else ""
    if function := _function(member):
        return _signature(function)
    return f": {type(member).__name__}"


def _signature(found: Any) -> str:
    """The parameters, with annotations as they are written in the source."""
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):  # a class that Python made
        return ""
    parameters = [
        parameter.replace(annotation=_Written(parameter.annotation), default=_Default(parameter.default))
        for parameter in signature.parameters.values()
    ]
    told = signature.replace(parameters=parameters, return_annotation=_Written(signature.return_annotation))
    return f"{told}{' (async)' if inspect.iscoroutinefunction(inspect.unwrap(found)) else ''}{_mark(found)}"


def _mark(found: object) -> str:
    message = getattr(found, "__deprecated__", None)
    return f" (deprecated: {message})" if message else ""


class _Written:
    """An annotation that is shown as it is written; nothing stays nothing."""

    def __new__(cls, annotation: object) -> Any:
        return annotation if annotation is inspect.Parameter.empty else super().__new__(cls)

    def __init__(self, annotation: object) -> None:
        self._text = _written(annotation)

    def __repr__(self) -> str:
        return self._text


class _Default:
    """A default without its address in memory, and a set in the same order each time."""

    def __new__(cls, default: object) -> Any:
        return default if default is inspect.Parameter.empty else super().__new__(cls)

    def __init__(self, default: object) -> None:
        told = sorted(default, key=repr) if isinstance(default, frozenset) and default else default
        self._text = re.sub(r" at 0x[0-9a-f]+", "", repr(told))

    def __repr__(self) -> str:
        return self._text


def _written(annotation: object) -> str:
    text = getattr(annotation, "__forward_arg__", annotation)
    if inspect.isclass(text):
        return text.__name__
    return str(text).strip('"')


def _is_alias(found: object) -> bool:
    return getattr(type(found), "__module__", "") in ("collections.abc", "types", "typing")


if __name__ == "__main__":
    SNAPSHOT.write_text(described(), encoding="utf-8")
