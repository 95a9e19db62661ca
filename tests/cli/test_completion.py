"""`toolrun completion`: scripts that shells take, and what they then offer."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from toolrun.cli._parser import build_parser

needs_bash = pytest.mark.skipif(shutil.which("bash") is None or sys.platform == "win32", reason="there is no bash")


def commands() -> list[str]:
    (action,) = (action for action in build_parser()._actions if action.dest == "command")
    return list(action.choices)


@needs_bash
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (["toolrun", ""], {"completion", "finalize", "journal", "plugins", "repair", "run", "schema"}),
        (["toolrun", "f"], {"finalize"}),
        (["toolrun", "finalize", "--b"], {"--batch"}),
        (["toolrun", "run", "--wire", "ge"], {"gemini"}),
        (["toolrun", "run", "--wire", "au"], {"auto"}),
        (["toolrun", "schema", "--wire", "m"], {"mcp", "mistral"}),
        (["toolrun", "finalize", "stream"], {"stream.sse"}),
        (["toolrun", "run", "--tools", "to"], {"tools.py"}),
        (["toolrun", "completion", ""], {"bash", "fish", "zsh"}),
    ],
)
def test_bash_offers(toolrun, tmp_path, line, offered):
    """The script is loaded into a real bash, and asked as that shell asks it when TAB is pressed."""
    (tmp_path / "stream.sse").touch()
    (tmp_path / "tools.py").touch()
    script = toolrun("completion", "bash").out
    words = " ".join(f"'{word}'" for word in line)
    asked = f'{script}\nCOMP_WORDS=({words})\nCOMP_CWORD={len(line) - 1}\n_shtab_toolrun\nprintf "%s\\n" "${{COMPREPLY[@]}}"'

    done = subprocess.run(["bash", "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert {word.strip() for word in done.stdout.splitlines()} == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(toolrun, shell):
    """They are not installed everywhere; every command and every wire is in their scripts."""
    done = toolrun("completion", shell)

    assert (done.code, done.err) == (0, "")
    assert all(word in done.out for word in [*commands(), "anthropic-messages", "--max-concurrency"])


def test_an_unknown_shell(toolrun):
    assert toolrun("completion", "csh")[::2] == (
        2,
        "toolrun: argument shell: invalid choice: 'csh' (choose from 'bash', 'zsh', 'fish') (see toolrun completion --help)\n",
    )


def test_without_shtab(toolrun, monkeypatch):
    """It is an extra; who has not got it is told."""
    monkeypatch.setitem(sys.modules, "shtab", None)

    assert toolrun("completion", "bash") == (
        2,
        "",
        "toolrun: completion needs the extra toolrun[cli]: pip install 'toolrun[cli]'\n",
    )


@pytest.mark.parametrize("command", commands())
def test_help(toolrun, command):
    """The help of every command has its exit codes and examples that call it."""
    done = toolrun(command, "--help")
    _, _, examples = done.out.partition("\nexamples:\n")

    assert (done.code, done.err) == (0, "")
    assert "\nexit code:\n" in done.out
    assert f"toolrun {command}" in examples
    assert max(map(len, done.lines)) <= 100
