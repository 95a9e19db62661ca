"""`toolrun-mcp serve` as a process, asked by the SDK's own client."""

from __future__ import annotations

import gc
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters, types

from toolrun_mcp._cli import main

TOOLS = '''
from neighbour import FACTOR
from toolrun import ToolRegistry

print("imported")
registry = ToolRegistry()
others = ToolRegistry()


@registry.tool
def scale(n: int) -> int:
    """Scale a number."""
    print("scaling")
    return FACTOR * n


@others.tool
async def hang() -> None:
    import anyio
    print("begun", flush=True)
    await anyio.sleep_forever()
'''

OPEN_GENERATORS = (
    "ignore:Async generator 'httpx2:ResourceWarning",
    "ignore:Async generator 'httpcore2:ResourceWarning",
)
"""What the SDK and httpx2 leave open on trio."""


@pytest.fixture
def tools(tmp_path: Path) -> str:
    (tmp_path / "neighbour.py").write_text("FACTOR = 7\n", "utf-8")
    path = tmp_path / "tools.py"
    path.write_text(TOOLS, "utf-8")
    return str(path)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "toolrun_mcp", *arguments]


def said(result: types.CallToolResult) -> tuple[bool, str]:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return result.is_error, block.text


async def test_stdio(tools: str) -> None:
    """Over stdio; what the file and the tools print stays out of the connection."""
    program, *arguments = command("serve", "--tools", tools, "--name", "scales")

    with anyio.fail_after(30):
        async with Client(StdioServerParameters(command=program, args=arguments)) as client:
            assert client.server_info is not None
            assert client.server_info.name == "scales"
            assert said(await client.call_tool("scale", {"n": 6})) == (False, "42")
            assert said(await client.call_tool("scale", {"n": True}))[0]


def test_interrupted(tools: str) -> None:
    """Over stdio, Ctrl-C ends it at once."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command("serve", "--tools", tools), **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert process.stdout.readline().startswith(b'{"jsonrpc":"2.0","id":1')
        process.send_signal(signal.SIGINT)

        assert process.wait(10) == -signal.SIGINT


@pytest.fixture
def served(tools: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve over HTTP; give the URL and the process."""
    arguments = command("serve", "--tools", f"{tools}:others", "--http", "127.0.0.1:0", "--timeout", "30")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(arguments, **pipes, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "imported\n"
        found = re.fullmatch(r"toolrun-mcp: serving hang at (http://127\.0\.0\.1:\d+/mcp)\n", process.stderr.readline())
        assert found is not None
        yield found[1], process
        process.kill()
    gc.collect()  # see the fixture `http_server`


@pytest.mark.filterwarnings(*OPEN_GENERATORS)
async def test_http(served: tuple[str, subprocess.Popen[str]]) -> None:
    """Over HTTP, until Ctrl-C; a call that runs then is answered."""
    url, process = served

    async def hang(client: Client) -> None:
        with pytest.raises(MCPError, match="Server returned an error response"):
            await client.call_tool("hang", {})

    with anyio.fail_after(30):
        async with Client(url) as client, anyio.create_task_group() as group:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["hang"]
            group.start_soon(hang, client)
            assert process.stdout is not None
            assert await anyio.to_thread.run_sync(process.stdout.readline) == "begun\n"
            process.send_signal(signal.SIGINT)
            await anyio.to_thread.run_sync(process.wait)

    assert process.returncode == 130


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tools", "missing.py"], "missing.py: no such file or directory"),
        (["--tools", "broken.py"], "broken.py:1: raised on import: ZeroDivisionError: division by zero"),
        (
            ["--tools", "tools.py:more"],
            "tools.py: there is no 'more'; registries in it: others, registry (name one as tools.py:NAME)",
        ),
        ([], "the following arguments are required: --tools (see toolrun-mcp serve --help)"),
        *(
            (
                ["--tools", "tools.py", "--http", where],
                f"argument --http: {where!r} is no HOST:PORT, such as 127.0.0.1:8000 (see toolrun-mcp serve --help)",
            )
            for where in ("8000", "host:70000", "host:", "host:²")
        ),
        (
            ["--tools", "tools.py", "--timeout", "soon"],
            "argument --timeout: 'soon' is not a number of seconds above 0 (see toolrun-mcp serve --help)",
        ),
    ],
)
def test_bad_input(
    arguments: list[str],
    message: str,
    tools: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is wrong is one line on standard error, and nothing on standard output."""
    monkeypatch.chdir(Path(tools).parent)
    Path("broken.py").write_text("1 / 0\n", "utf-8")

    assert main(["serve", *arguments]) == 2

    out, error = capfd.readouterr()
    assert (out, error.replace("imported\n", "")) == ("", f"toolrun-mcp: {message}\n")


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    """The help is no error."""
    assert main(["serve", "--help"]) == 0
    assert "--tools FILE.py[:NAME]" in capsys.readouterr().out


def test_taken_port(tools: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An address that cannot be had is said plainly."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert main(["serve", "--tools", tools, "--http", f"127.0.0.1:{port}"]) == 2

    assert re.search(r"\ntoolrun-mcp: .*already in use", capsys.readouterr().err)
