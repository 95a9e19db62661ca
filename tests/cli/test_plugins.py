"""Entry points, and `toolrun plugins`."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from toolrun import PluginError, _plugins
from toolrun.executors import InlineExecutor


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """Put a distribution on the path: its metadata, and a module with the code."""

    def add(name, entry_points, code=""):
        folder = tmp_path / name
        info = folder / f"{name}-1.5.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
        (info / "entry_points.txt").write_text(entry_points)
        (folder / f"{name}.py").write_text(code)
        monkeypatch.syspath_prepend(folder)
        importlib.invalidate_caches()

    yield add
    for name in [name for name, module in sys.modules.items() if str(tmp_path) in str(getattr(module, "__file__", ""))]:
        del sys.modules[name]


def test_installed_lists_the_own_entry_points_by_group_and_name():
    own = [(plugin.group, plugin.name) for plugin in _plugins.installed() if plugin.distribution == "toolrun"]

    groups = [group for group, _ in own]
    assert ("toolrun.wires", "openai-chat") in own
    assert ("toolrun.executors", "thread") in own
    assert groups == sorted(groups, key=_plugins.GROUPS.index)


def test_installed_names_distribution_version_and_target_without_importing(distribution):
    distribution(
        "acme_plugin", "[toolrun.journals]\nledger = acme_plugin:Ledger\n", "raise RuntimeError('not to be imported')"
    )

    assert _plugins.installed("toolrun.journals")[0] == (
        "toolrun.journals",
        "ledger",
        "acme_plugin",
        "1.5",
        "acme_plugin:Ledger",
    )
    assert "acme_plugin" not in sys.modules


def test_load_gives_what_the_entry_point_names():
    assert _plugins.load("toolrun.executors", "inline") is InlineExecutor


def test_load_says_what_is_installed_when_there_is_no_such_name():
    with pytest.raises(PluginError, match=r"no plugin named 'nope' in toolrun\.executors; installed: .*inline.*thread"):
        _plugins.load("toolrun.executors", "nope")


@pytest.mark.parametrize("ask", [lambda: _plugins.load("toolrun.tools", "x"), lambda: _plugins.installed("tools")])
def test_an_unknown_group_is_refused_with_the_known_ones(ask):
    with pytest.raises(PluginError, match=r"no plugin group '(toolrun\.)?tools'; there are: toolrun\.wires, "):
        ask()


def test_load_names_the_distribution_of_a_plugin_that_breaks(distribution):
    distribution("acme_broken", "[toolrun.wires]\nacme = acme_broken:Wire\n", "import a_module_that_is_not_there")

    with pytest.raises(PluginError, match=r"'acme' in toolrun\.wires \(acme_broken 1\.5\) cannot be loaded") as raised:
        _plugins.load("toolrun.wires", "acme")

    assert isinstance(raised.value.__cause__, ModuleNotFoundError)


def test_load_refuses_to_choose_between_two_distributions(distribution):
    distribution("acme_one", "[toolrun.wires]\nacme = acme_one:Wire\n")
    distribution("acme_two", "[toolrun.wires]\nacme = acme_two:Wire\n")

    with pytest.raises(
        PluginError, match=r"more than one plugin is named 'acme' in toolrun\.wires: acme_one, acme_two"
    ):
        _plugins.load("toolrun.wires", "acme")


def test_the_metadata_reader_is_not_imported_before_it_is_needed():
    code = "import sys, toolrun, toolrun._plugins, toolrun.cli; print('importlib.metadata' in sys.modules, 'rich' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.split() == ["False", "False"]


def test_the_command_lists_plugins_by_group(toolrun, distribution):
    distribution("acme_plugin", "[toolrun.journals]\nledger = acme_plugin:Ledger\n")

    ended = toolrun("plugins")

    assert (ended.code, ended.err) == (0, "")
    assert [line for line in ended.lines if not line.startswith(" ")] == [
        "toolrun.wires",
        "toolrun.repairs",
        "toolrun.executors",
        "toolrun.journals",
    ]
    assert [line.split() for line in ended.lines if "ledger" in line] == [
        ["ledger", "acme_plugin", "1.5", "acme_plugin:Ledger"]
    ]


def test_the_command_lists_plugins_as_json(toolrun):
    ended = toolrun("plugins", "--json")

    found = [plugin for plugin in ended.objects if plugin["name"] == "openai-chat"]
    assert found[0]["group"] == "toolrun.wires"
    assert found[0]["distribution"] == "toolrun"
    assert found[0]["target"] == "toolrun.wires.openai_chat:OpenAIChat"


def test_a_wire_of_a_plugin_is_taken_by_name(toolrun, distribution, chat, tmp_path: Path):
    """The class that the entry point names is made, and reads the stream."""
    code = "from toolrun.wires import OpenAIChat\nclass Wire(OpenAIChat):\n    name = 'acme'\n"
    distribution("acme_wire", "[toolrun.wires]\nacme = acme_wire:Wire\n", code)
    stream = tmp_path / "stream.jsonl"
    stream.write_text(chat(("c1", "add", "{}")))

    ended = toolrun("finalize", stream, "--wire", "acme", "--json")

    assert (ended.code, ended.objects[0]["name"], ended.objects[0]["status"]) == (0, "add", "ok")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import a_module_that_is_not_there", "cannot be loaded from acme_bad:Wire: ModuleNotFoundError"),
        ("class Wire:\n    def __init__(self, key):\n        pass\n", "'acme' cannot be made: TypeError"),
    ],
)
def test_a_wire_of_a_plugin_that_breaks_is_one_line(toolrun, distribution, chat, tmp_path: Path, code, said):
    distribution("acme_bad", "[toolrun.wires]\nacme = acme_bad:Wire\n", code)
    stream = tmp_path / "stream.jsonl"
    stream.write_text(chat(("c1", "add", "{}")))

    ended = toolrun("finalize", stream, "--wire", "acme")

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith("toolrun: --wire: ")
    assert said in ended.err
