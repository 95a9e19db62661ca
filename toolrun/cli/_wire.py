"""`--wire`: a built-in protocol, or one that a plugin brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from toolrun.cli._exits import InputError
from toolrun.wires import WIRES

if TYPE_CHECKING:
    from toolrun.abc import Wire


def wire_named(name: str) -> str | Wire:
    """Find what `--wire` names: `auto`, a built-in wire, or an entry point, a wire or a class without arguments.

    Raises:
        InputError: There is none of that name, or it cannot be loaded.
    """
    if name == "auto" or name in WIRES:
        return name
    from toolrun import PluginError, _plugins  # noqa: PLC0415  # only a name that is not built in needs plugins

    names = {plugin.name for plugin in _plugins.installed(_plugins.WIRES)}
    if name not in names:
        raise InputError(
            f"no wire named {name!r}; known: auto, {', '.join(sorted(names | WIRES.keys()))}", place="--wire"
        )
    try:
        found = _plugins.load(_plugins.WIRES, name)
        return cast("Wire", found() if isinstance(found, type) else found)
    except PluginError as error:
        raise InputError(str(error), place="--wire") from error
    except Exception as error:  # whatever a plugin's class raises when it is made
        raise InputError(f"{name!r} cannot be made: {type(error).__name__}: {error}", place="--wire") from error
