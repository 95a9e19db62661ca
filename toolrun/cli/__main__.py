"""`python -m toolrun.cli`."""

from toolrun.cli import entry

if __name__ == "__main__":
    entry()
