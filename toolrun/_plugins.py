"""Entry points: what is installed, and how one is loaded by name.

Installing a plugin changes nothing: the user names it, or passes an instance. Listing imports no plugin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from toolrun._core.exceptions import PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

WIRES: Final = "toolrun.wires"
REPAIRS: Final = "toolrun.repairs"
EXECUTORS: Final = "toolrun.executors"
JOURNALS: Final = "toolrun.journals"

GROUPS: Final = (WIRES, REPAIRS, EXECUTORS, JOURNALS)
"""The entry-point groups that are looked at."""


class Plugin(NamedTuple):
    """One entry point, not imported.

    Attributes:
        group: One of `GROUPS`.
        name: What users name it by.
        distribution: The name of the distribution that brought it; `""` if its metadata does not say.
        version: That distribution's version; `""` if its metadata does not say.
        target: `module:attribute`.
    """

    group: str
    name: str
    distribution: str
    version: str
    target: str


def installed(group: str | None = None) -> tuple[Plugin, ...]:
    """List what is installed, by group and name, without importing any of it.

    Args:
        group: One of `GROUPS`; None for all of them, in that order.

    Raises:
        PluginError: There is no such group.

    Examples:
        >>> from toolrun import _plugins
        >>> [plugin.name for plugin in _plugins.installed("toolrun.wires") if plugin.distribution == "toolrun"][:1]
        ['anthropic-messages']
    """
    return tuple(
        _describe(point)
        for known in ([_checked(group)] if group else GROUPS)
        for point in sorted(_points(known), key=lambda point: point.name)
    )


def load(group: str, name: str) -> object:
    """Import what an entry point names.

    Args:
        group: One of `GROUPS`.
        name: The name that the plugin has in that group.

    Raises:
        PluginError: There is no such group or plugin, two distributions bring one of that name, or importing
            it failed; the message says what is installed, or what went wrong.

    Examples:
        >>> from toolrun import _plugins
        >>> _plugins.load("toolrun.executors", "inline").__name__
        'InlineExecutor'
    """
    found = [point for point in _points(_checked(group)) if point.name == name]
    if not found:
        known = ", ".join(plugin.name for plugin in installed(group)) or "none"
        raise PluginError(f"no plugin named {name!r} in {group}; installed: {known}")
    if len(found) > 1:
        owners = ", ".join(sorted(_describe(point).distribution for point in found))
        raise PluginError(f"more than one plugin is named {name!r} in {group}: {owners}; uninstall all but one")
    try:
        return found[0].load()
    except Exception as error:
        raise PluginError(
            f"{name!r} in {group} ({_owner(found[0])}) cannot be loaded from {found[0].value}:"
            f" {type(error).__name__}: {error}"
        ) from error


def _checked(group: str) -> str:
    if group not in GROUPS:
        raise PluginError(f"no plugin group {group!r}; there are: {', '.join(GROUPS)}")
    return group


def _points(group: str) -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # noqa: PLC0415  # reads the disk; nothing else needs it

    return tuple(entry_points(group=group))


def _describe(point: EntryPoint) -> Plugin:
    owner = point.dist
    return Plugin(
        group=point.group,
        name=point.name,
        distribution=owner.name if owner else "",
        version=owner.version if owner else "",
        target=point.value,
    )


def _owner(point: EntryPoint) -> str:
    plugin = _describe(point)
    return f"{plugin.distribution} {plugin.version}".strip() or "unknown distribution"
