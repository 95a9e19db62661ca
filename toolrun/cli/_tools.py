"""From `FILE.py[:NAME]` to the registry in that file."""

from __future__ import annotations

import sys
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from toolrun import ToolRegistry
from toolrun.cli._exits import InputError
from toolrun.cli._sources import read_file

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_NAME: Final = "registry"

# Not the file's own name: `tools.py` must not stand in for an installed `tools`.
_MODULE: Final = "__toolrun_tools__"


@contextmanager
def registry_from(spec: str) -> Iterator[ToolRegistry]:
    """Import the file, as a script is: its folder comes first on the path as long as the block lasts.

    Args:
        spec: A path, or a path, a colon and the name of the registry in that file.

    Raises:
        InputError: The file is missing or cannot be imported, or has no registry of that name.
    """
    path, name = _split(spec)
    source = read_file(path)
    folder = str(Path(path).resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield _registry(_import(path, source), name, path)
    finally:
        with suppress(ValueError):  # the file may have changed the path itself
            sys.path.remove(folder)
        sys.modules.pop(_MODULE, None)


def _split(spec: str) -> tuple[str, str]:
    path, colon, name = spec.rpartition(":")
    if colon and name.isidentifier() and not Path(spec).exists():
        return path, name
    return spec, DEFAULT_NAME


def _import(path: str, source: bytes) -> ModuleType:
    module = ModuleType(_MODULE)
    module.__file__ = str(Path(path).absolute())
    sys.modules[_MODULE] = module  # where type hints given as text are looked up
    try:
        exec(compile(source, path, "exec", dont_inherit=True), vars(module))  # noqa: S102  # the user asked for it
    except SyntaxError as error:
        place = path if error.filename is None else error.filename
        raise InputError(f"{type(error).__name__}: {error.msg}", place=place, line=error.lineno) from error
    except (Exception, SystemExit) as error:
        raise _raised(error, path) from error
    return module


def _raised(error: BaseException, path: str) -> InputError:
    """The last line of the file that the traceback goes through is where its author looks."""
    own = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return InputError(f"raised on import: {said}", place=path, line=own[-1] if own else None)


def _registry(module: ModuleType, name: str, path: str) -> ToolRegistry:
    found = vars(module)
    value = found.get(name)
    if isinstance(value, ToolRegistry):
        return value
    others = ", ".join(sorted(other for other, held in found.items() if isinstance(held, ToolRegistry))) or "none"
    if name in found:
        said = f"{name!r} is of type {type(value).__name__}, not a ToolRegistry"
    else:
        said = f"there is no {name!r}"
    raise InputError(f"{said}; registries in it: {others} (name one as {path}:NAME)", place=path)
