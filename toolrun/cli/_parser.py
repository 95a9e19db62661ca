"""The arguments of the command, and its help."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final, NoReturn

from toolrun.cli._arguments import Parser, number, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAIN: Final = """\
examples:
  toolrun run examples/streams/parallel.sse --tools examples/tools.py
  toolrun finalize recorded.jsonl --json
  toolrun schema examples/tools.py --wire gemini
  toolrun repair --tool tool.json < arguments.txt
  toolrun journal calls.db --unsettled
  toolrun plugins
  toolrun completion bash

What is a stream, and what the exit codes mean: toolrun run --help
"""

_STREAMS: Final = """\
streams:
  Server-sent events, newline-delimited JSON (also {"event": ..., "data": ...}),
  or one JSON document, as the provider sent it: one response a file. `-` is
  standard input, read as it comes.

bad input:
  A file that cannot be read, is empty, or holds no event of a known provider;
  and a line that begins like an event and is not JSON, with other lines after
  it. What could be read is shown all the same. A stream whose last line is cut
  is not bad input: it was cut, and its calls are incomplete.
"""

_RUN: Final = f"""\
{_STREAMS}
exit code:
    0  every call of every stream succeeded
    1  a call did not succeed
    2  bad input; one line on standard error says what
  130  interrupted with Ctrl-C; the tools were cancelled

examples:
  toolrun run examples/streams/parallel.sse --tools examples/tools.py
  toolrun run *.sse --tools examples/tools.py:registry --json | jq .status
  curl -sN ... | toolrun run - --tools tools.py --timeout 5
"""

_FINALIZE: Final = f"""\
{_STREAMS}
exit code:
  0  the streams could be read, whatever is in them
  2  bad input; one line on standard error says what

batch:
  A line of JSON for each case, with `events`: a list of decoded events or the
  raw text of a stream; `id`, `wire` and `end` may be left out. For each case a
  line is printed: id, wire, calls, the names that may run, diagnostics.

examples:
  toolrun finalize recorded.sse
  toolrun finalize - --json < recorded.jsonl
  toolrun finalize --batch cases.jsonl | jq .executable
"""

_SCHEMA: Final = """\
exit code:
  0  the definitions were printed
  2  the tools cannot be had, or not be written for this wire; one line on
     standard error names the tool, the place and what to do

examples:
  toolrun schema examples/tools.py --wire openai-chat --strict
  toolrun schema tools.py:registry --wire anthropic-messages > tools.json
"""


_REPAIR: Final = """\
batch:
  Each line of the file is a JSON object with "raw", and optionally "id",
  "finish_reason" and "tool" (or "tool_schema"), a definition in place of --tool.

marks:
  [-taken out-] {+put in+}

exit code:
  0  the arguments fit, as they are or repaired (all of them, in a batch)
  1  refused (at least one, in a batch)
  2  bad input; one line on standard error says what

examples:
  echo "{'city': 'Oslo',}" | toolrun repair --tool examples/get_weather.json
  toolrun repair --batch calls.jsonl --tool tool.json --json | jq .refusal
"""


_JOURNAL: Final = """\
A journal has one owner: it cannot be read while an agent has it open.

exit code:
  0  the calls were shown, or the call is settled
  1  the call has an outcome already; it stays
  2  bad input; one line on standard error says what

examples:
  toolrun journal calls.db --unsettled
  toolrun journal calls.db --show 5f0c...:7:0
  toolrun journal calls.db --settle 5f0c...:7:0 --result '{"receipt": 12}'
"""


_PLUGINS: Final = """\
Nothing is imported, and installing a package changes nothing by itself.

exit code:
  0  the list was printed

examples:
  toolrun plugins
  toolrun plugins --json | jq -r 'select(.group == "toolrun.wires").name'
"""


_COMPLETION: Final = """\
The script is written by shtab, which comes with toolrun[cli].

exit code:
  0  the script was printed
  2  shtab is not installed

examples:
  toolrun completion bash > ~/.local/share/bash-completion/completions/toolrun
  toolrun completion zsh > "${fpath[1]}/_toolrun"
  toolrun completion fish > ~/.config/fish/completions/toolrun.fish
"""


class _Version(argparse.Action):
    """Looks the version up when it is asked for: reading metadata takes longer than the rest of the help."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002  # argparse's signature
        values: str | Sequence[object] | None,  # noqa: ARG002
        option_string: str | None = None,  # noqa: ARG002
    ) -> NoReturn:
        from importlib.metadata import version  # noqa: PLC0415

        print(f"toolrun {version('toolrun')}")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """Make the parser; it raises `InputError` for arguments that it does not take."""
    parser = Parser(
        prog="toolrun",
        description="Finalize the tool calls of a model's stream, and run them.",
        epilog=_MAIN,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, title="commands")
    _add_run(commands)
    _add_finalize(commands)
    _add_schema(commands)
    _add_repair(commands)
    _add_journal(commands)
    _add_plugins(commands)
    _add_completion(commands)
    return parser


def _add_run(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "run",
        help="run the calls of streams, and show what becomes of each",
        description="Run the calls of streams, and show what becomes of each.",
        epilog=_RUN,
    )
    _add_streams(parser)
    parser.add_argument(
        "--tools",
        required=True,
        metavar="FILE.py[:NAME]",
        help="the file with the tools; NAME is its ToolRegistry, `registry` if left out",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a call, when a stream is done")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=60.0,
        metavar="SECONDS",
        help="for an attempt of a tool without a timeout of its own; 60 if left out",
    )
    parser.add_argument(
        "--max-concurrency",
        type=number,
        default=16,
        metavar="N",
        help="calls of one stream that run at once; 16 if left out",
    )
    parser.add_argument(
        "--show-messages",
        action="store_true",
        help="show the messages that go back to the model (with --json: a last object)",
    )


def _add_finalize(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "finalize",
        help="show the finished calls of streams; nothing runs",
        description="Show the finished calls of streams. Nothing runs.",
        epilog=_FINALIZE,
    )
    _add_streams(parser, nargs="*")
    parser.add_argument("--json", action="store_true", help="one JSON object a call")
    parser.add_argument("--batch", metavar="FILE.jsonl", help="many cases, a line of JSON for each; or -")


def _add_schema(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "schema",
        help="print tools as a provider's request takes them",
        description="Print tools as a provider's request takes them: a JSON array.",
        epilog=_SCHEMA,
    )
    parser.add_argument(
        "tools",
        metavar="FILE.py[:NAME]",
        help="the file with the tools; NAME is its ToolRegistry, `registry` if left out",
    )
    parser.add_argument("--wire", required=True, metavar="NAME", help="the provider protocol, or `mcp`")
    parser.add_argument(
        "--strict",
        action="store_true",
        default=None,
        help="as strict definitions, if the registry does not make them so anyway",
    )


def _add_repair(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "repair",
        help="repair the arguments of a call, and show each edit; nothing runs",
        description="Repair the argument text on standard input, and show each edit in its place. Nothing runs.",
        epilog=_REPAIR,
    )
    parser.add_argument(
        "--tool",
        metavar="TOOL.json",
        help="the definition of the tool, in any provider's form, alone or in a list of one; not needed for a batch",
    )
    parser.add_argument(
        "--finish-reason",
        default="tool_calls",
        metavar="REASON",
        help="how the model stopped, as sent; `tool_calls` if left out, `none` if it is not known",
    )
    parser.add_argument("--batch", metavar="FILE.jsonl", help="many texts from a file, in place of standard input")
    parser.add_argument("--json", action="store_true", help="one JSON object a text")


def _add_journal(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "journal",
        help="list, show and settle the calls of a journal",
        description="List the calls of a journal in a SQLite file, show one, or settle one.",
        epilog=_JOURNAL,
    )
    parser.add_argument("path", metavar="PATH", help="the file")
    parser.add_argument("--unsettled", action="store_true", help="only calls of turns that are not finished")
    parser.add_argument("--show", metavar="KEY", help="all that is known of one call")
    parser.add_argument("--settle", metavar="KEY", help="record what became of a call that has no outcome")
    parser.add_argument("--result", metavar="JSON", help="with --settle: it succeeded, and returned this")
    parser.add_argument("--error", metavar="TEXT", help="with --settle: it failed, and the model is told this")
    parser.add_argument("--json", action="store_true", help="one JSON object a call")


def _add_plugins(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "plugins",
        help="list what is installed",
        description="List the wires, repairs, executors and journals of installed packages.",
        epilog=_PLUGINS,
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a plugin")


def _add_completion(commands: argparse._SubParsersAction[Parser]) -> None:
    parser = commands.add_parser(
        "completion",
        help="print a script that completes this command in a shell",
        description="Print a script that completes this command in a shell.",
        epilog=_COMPLETION,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def _add_streams(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    parser.add_argument("streams", nargs=nargs, metavar="STREAM", help="a file with one response, or -")
    parser.add_argument(
        "--wire",
        default="auto",
        metavar="NAME",
        help="the provider protocol; `auto`, the default, tells by the events; `toolrun plugins` lists the names",
    )
    parser.add_argument(
        "--end",
        default="auto",
        choices=("auto", "normal", "eof", "error"),
        help="how the stream ended; `auto`, the default, finds out",
    )
