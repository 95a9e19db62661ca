"""`python -m tests.fuzz TARGET [--seconds 60]`: mutate what reaches new code, until something breaks a promise."""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import atheris

HERE = Path(__file__).parent
TARGETS = ("finalizer", "repair")


def main() -> None:
    """Run a target; atheris ends the process, with 77 if it found something, and writes the bytes to a file."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, help="a directory to begin from, and to keep what reaches new code in")
    options = parser.parse_args()
    with atheris.instrument_imports(include=["toolrun"]):
        target = import_module(f"tests.fuzz.{options.target}")
    finds = HERE / "finds" / options.target
    corpus = options.corpus or tempfile.mkdtemp()  # what reaches new code is written to the first directory
    flags = [
        f"-max_total_time={options.seconds}",
        f"-artifact_prefix={finds}/",
        "-max_len=200",
        "-len_control=0",
        "-timeout=10",
    ]
    atheris.Setup([sys.argv[0], *flags, str(corpus), str(finds)], target.check)
    atheris.Fuzz()


main()
